/** Hosts as they really are: patched, polyfilled, old. */
const URL_OF_CHAT = "https://api.openai.com/v1/chat/completions";

export default function (test, { lib, testing: { openai }, assert, rig }) {
  const withGlobal = async (name, value, work) => {
    const own = globalThis[name];
    globalThis[name] = value;
    try {
      return await work();
    } finally {
      globalThis[name] = own;
    }
  };

  test("the global fetch that is patched later is the one that is used", async () => {
    const { createKeel } = lib;
    const keel = createKeel();
    const patched = async () => new Response("patched");
    const text = await withGlobal("fetch", patched, async () => (await keel.fetch(URL_OF_CHAT)).text());
    assert.equal(text, "patched");
  });

  test("keels that are installed as the global fetch, one over the other, call neither themselves nor each other for ever", async () => {
    const calls = [];
    const host = async (input) => {
      calls.push(String(input));
      return new Response("host");
    };
    const text = await withGlobal("fetch", host, async () => {
      globalThis.fetch = lib.createKeel().fetch;
      globalThis.fetch = lib.createKeel().fetch;
      return (await fetch(URL_OF_CHAT)).text();
    });
    assert.deepEqual([text, calls], ["host", [URL_OF_CHAT]]);
  });

  test("a fetch that throws at once instead of rejecting is a failed one", async () => {
    const { run, chat } = rig([], {
      fetch: () => {
        throw new TypeError("fetch failed");
      },
    });
    const error = await assert.rejects(run(() => chat()));
    assert.equal(error.class, "connection_error");
  });

  test("a fetch that does not listen to its signal is left behind all the same", async () => {
    const { run, chat, elapsed } = rig([], { fetch: () => new Promise(() => {}), timeouts: { totalMs: 3_000 } });
    assert.equal((await assert.rejects(run(() => chat()))).class, "timeout");
    assert.equal(elapsed(), 3_000);
  });

  test("a subclass of Response is an answer", async () => {
    class Traced extends Response {}
    const { run, chat } = rig([], {
      fetch: async () => new Traced('{"choices":[]}', { status: 202, headers: { "x-a": "1" } }),
    });
    const response = await run(() => chat());
    assert.deepEqual(
      [response.status, response.headers.get("x-a"), await response.text()],
      [202, "1", '{"choices":[]}'],
    );
  });

  test("an answer of another fetch (node-fetch's kind), whose body is no web stream, is one too", async () => {
    const stream = openai.chatStream("one two");
    const encoder = new TextEncoder();
    const foreign = (parts, type) => ({
      status: 200,
      statusText: "OK",
      ok: true,
      type: "default",
      url: URL_OF_CHAT,
      redirected: false,
      headers: new Headers({ "content-type": type }),
      body: (async function* () {
        for (const part of parts) yield encoder.encode(part);
      })(),
    });
    const answers = [foreign(['{"choices"', ":[]}"], "application/json"), foreign(stream.chunks, "text/event-stream")];
    const { run, chat, calls } = rig([], { fetch: async () => answers.shift() });
    assert.equal(await run(async () => (await chat()).text()), '{"choices":[]}');
    assert.equal(await run(async () => (await chat({ stream: true })).text()), stream.chunks.join(""));
    assert.deepEqual(
      calls().map((call) => call.status),
      ["succeeded", "succeeded"],
    );
  });

  test("a host without byte streams is served, streams too", async () => {
    const Own = ReadableStream;
    class Plain extends Own {
      constructor(source, strategy) {
        if (source?.type !== undefined) throw new RangeError("byte streams are not supported");
        super(source, strategy);
      }
    }
    const stream = openai.chatStream("one two");
    await withGlobal("ReadableStream", Plain, async () => {
      const { run, chat } = rig([openai.overloaded(), stream]);
      assert.equal(await run(async () => (await chat({ stream: true })).text()), stream.chunks.join(""));
    });
  });
}
