/**
 * What the cases stand on, without a test framework and without anything that only some hosts have: a list of named
 * cases, assertions that compare by value, and a rig of scripted provider, clock and keel.
 */

const URL_OF_CHAT = "https://api.openai.com/v1/chat/completions";
const CASE_MS = 20_000;

export const assert = {
  ok(value, message = "expected something true") {
    if (!value) throw new Error(message);
  },
  equal(got, expected, what = "") {
    if (!Object.is(got, expected)) throw new Error(`${what} got ${show(got)}, expected ${show(expected)}`.trim());
  },
  deepEqual(got, expected, what = "") {
    if (show(got) !== show(expected)) throw new Error(`${what} got ${show(got)}, expected ${show(expected)}`.trim());
  },
  match(text, pattern) {
    if (!pattern.test(text)) throw new Error(`got ${show(text)}, expected something like ${pattern}`);
  },
  between(got, low, high, what = "") {
    if (!(got >= low && got <= high)) throw new Error(`${what} got ${got}, expected ${low} to ${high}`.trim());
  },
  /** Resolves to what `promise` rejects with. */
  async rejects(promise) {
    let value;
    try {
      value = await promise;
    } catch (error) {
      return error;
    }
    throw new Error(`expected a rejection, got ${show(value)}`);
  },
  throws(run) {
    let value;
    try {
      value = run();
    } catch (error) {
      return error;
    }
    throw new Error(`expected an exception, got ${show(value)}`);
  },
};

function show(value) {
  const text = JSON.stringify(value, (_, inner) => (inner === undefined ? "(undefined)" : inner));
  return text === undefined ? String(value) : text.length > 600 ? `${text.slice(0, 600)} …` : text;
}

/** Collects cases by group. */
export class Cases {
  list = [];

  /** Gives a group's `test(name, run)`. */
  group(prefix) {
    return (name, run) => this.list.push({ name: `${prefix}: ${name}`, run });
  }
}

/** Runs one case; resolves to the error, or `undefined`. One that hangs is an error too. */
export async function perform({ run }) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not ended after ${CASE_MS} ms`)), CASE_MS);
  });
  try {
    await Promise.race([run(), late]);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
  }
}

/** Makes the `rig(script, options)` of a library and its testing kit. */
export function rigFor({ createKeel }, { fakeClock, scriptedUpstream }) {
  return (script, options = {}) => {
    const clock = fakeClock();
    const upstream = scriptedUpstream(script, { clock });
    const records = [];
    const keel = createKeel({
      fetch: upstream.fetch,
      clock,
      seed: 1,
      hashKey: "conformance",
      ledger: (record) => void records.push(record),
      ...options,
    });
    const began = clock.now();
    const of = (type) => records.filter((record) => record.type === type);
    return {
      clock,
      upstream,
      keel,
      records,
      attempts: () => of("attempt"),
      calls: () => of("call"),
      notices: () => of("notice"),
      elapsed: () => clock.now() - began,
      /** Does something with the clock going. */
      run: (work) => clock.run(work),
      /** A chat request. */
      chat: ({ prompt = "hello", stream = false, url = URL_OF_CHAT, fetch = keel.fetch, body, ...init } = {}) =>
        fetch(url, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: "Bearer sk-test-0123456789abcdef" },
          body: body ?? JSON.stringify({ model: "gpt-5", stream, messages: [{ role: "user", content: prompt }] }),
          ...init,
        }),
    };
  };
}

/** Reads a stream to its end: the text that came, and what it ended with. */
export async function drain(response) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let text = "";
  for (;;) {
    try {
      const { done, value } = await reader.read();
      if (done) return { text: text + decoder.decode(), error: undefined };
      text += decoder.decode(value, { stream: true });
    } catch (error) {
      return { text, error };
    }
  }
}
