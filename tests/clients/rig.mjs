/**
 * What a test of `keel.fetch` needs: a scripted upstream, a keel with short times whose records are kept, and clients
 * that go through both. Everything is closed when the test ends.
 */
import Anthropic from "@anthropic-ai/sdk";
import { createKeel } from "evenkeel";
import OpenAI from "openai";
import { startUpstream } from "../upstream/upstream.mjs";

export const API_KEY = "sk-test-not-a-real-key-0123456789";

/** Waits of tens of milliseconds, and no time that has to be left over for an attempt to be begun. */
export const FAST = {
  retry: { baseMs: 10, capMs: 40 },
  timeouts: { minAttemptMs: 10 },
};

/** Options on top of `FAST`, group by group. */
export function fast(/** @type {Record<string, any>} */ options = {}) {
  return {
    ...FAST,
    ...options,
    retry: { ...FAST.retry, ...options["retry"] },
    timeouts: { ...FAST.timeouts, ...options["timeouts"] },
  };
}

/**
 * @param {{ after: (fn: () => unknown) => void }} t The test's context.
 * @param {any} script For the upstream; the last step of a list repeats.
 * @param {Record<string, any>} [options] For `createKeel`, on top of `FAST`.
 */
export async function rig(t, script, options = {}) {
  const upstream = await startUpstream({ script, repeatLast: true });
  t.after(() => upstream.close());
  /** @type {any[]} */
  const records = [];
  const keel = createKeel(
    /** @type {any} */ ({ ledger: (/** @type {any} */ record) => void records.push(record), ...fast(options) }),
  );
  t.after(() => keel.close());
  const ofType = async (/** @type {string} */ type) => {
    await keel.flush();
    return records.filter((record) => record.type === type);
  };
  return {
    upstream,
    keel,
    records,
    attempts: () => ofType("attempt"),
    calls: () => ofType("call"),
    notices: () => ofType("notice"),
    openai: (/** @type {object} */ more = {}) =>
      new OpenAI({ baseURL: `${upstream.url}/v1`, apiKey: API_KEY, fetch: keel.fetch, ...more }),
    anthropic: (/** @type {object} */ more = {}) =>
      new Anthropic({ baseURL: upstream.url, apiKey: API_KEY, fetch: keel.fetch, ...more }),
    /** A chat request by `keel.fetch` itself, without an SDK. */
    chat: (
      /** @type {Record<string, any>} */ {
        prompt = "hello",
        fetch = keel.fetch,
        url = upstream.url,
        body,
        headers,
        ...init
      } = {},
    ) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${API_KEY}`, ...headers },
        body: body ?? JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: prompt }] }),
        ...init,
      }),
  };
}

/** Milliseconds that `promise` takes, with what it comes to. */
export async function timed(/** @type {() => Promise<any>} */ run) {
  const startedAt = performance.now();
  const [result] = await Promise.allSettled([run()]);
  return {
    ms: performance.now() - startedAt,
    value: result?.status === "fulfilled" ? result.value : undefined,
    error: result?.status === "rejected" ? result.reason : undefined,
  };
}

/** Reads a body to its end: what came, and the error if that is how it ended. */
export async function drain(/** @type {Response} */ response) {
  const chunks = [];
  /** @type {any} */
  let error;
  try {
    for await (const chunk of /** @type {any} */ (response.body)) chunks.push(chunk);
  } catch (thrown) {
    error = thrown;
  }
  return { text: Buffer.concat(chunks).toString(), error };
}
