// Responses as the caller gets them, whatever ids and statuses there are.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { inspect } from "node:util";
import { createKeel } from "evenkeel";
import { fakeClock, scriptedUpstream } from "evenkeel/testing";

const OPENAI = "https://api.openai.com/v1/chat/completions";
const POST = { method: "POST", body: '{"model":"gpt-5"}' };
const ONCE = { retry: { maxAttempts: 1 }, breaker: false };

describe("what a header can't hold", () => {
  const context = { logicalRequestId: "größe-日本-\ud800" };
  const encoded = "gr%C3%B6%C3%9Fe-%E6%97%A5%E6%9C%AC-%EF%BF%BD";

  it("is percent-encoded on a failure that the upstream answered", async () => {
    const keel = createKeel({
      ...ONCE,
      fetch: async () => new Response("{}", { status: 503 }),
      classify: (_signal, builtIn) => ({ ...builtIn, retryable: false, reason: "überlastet" }),
    });
    const response = await keel.with(context).fetch(OPENAI, POST);
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("x-evenkeel-logical-request-id"), encoded);
    assert.equal(response.headers.get("x-evenkeel-reason"), "%C3%BCberlastet");
  });

  it("is percent-encoded on a failure that has no answer", async () => {
    const fetch = () => Promise.reject(new TypeError("fetch failed"));
    const keel = createKeel({ ...ONCE, fetch, transportFailure: "response" });
    const response = await keel.with(context).fetch(OPENAI, POST);
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("x-evenkeel-logical-request-id"), encoded);
  });
});

describe("a status that no Response can be made with", () => {
  /** What a host's own `fetch` gives where such a status came by a real socket. */
  const odd = (status) =>
    Object.defineProperties(new Response("what", { headers: { "x-own": "1" } }), {
      status: { value: status },
      statusText: { value: "Odd" },
      ok: { value: false },
    });

  for (const status of [600, 799, 999]) {
    it(`such as ${status} is given on with its body`, async () => {
      const keel = createKeel({ ...ONCE, fetch: async () => odd(status) });
      const response = await keel.fetch(OPENAI, POST);
      assert.deepEqual([response.status, response.statusText, response.ok], [status, "Odd", false]);
      assert.equal(response.headers.get("x-own"), "1");
      assert.equal(response.headers.get("x-evenkeel-attempts"), "1");
      assert.equal(await response.text(), "what");
    });
  }
});

describe("an answer that is held in memory", () => {
  const TEXT = '{"text":"grüße"}';
  const upstream = () =>
    Object.defineProperties(
      new Response(TEXT, {
        status: 201,
        statusText: "Made",
        headers: { "content-type": "application/json; charset=utf-8", "x-own": "1" },
      }),
      { url: { value: OPENAI }, redirected: { value: true }, type: { value: "basic" } },
    );
  const keel = createKeel({ ...ONCE, fetch: async () => upstream() });
  const answer = () => keel.fetch(OPENAI, POST);
  const bytes = new TextEncoder().encode(TEXT);

  it("is a Response, with all that the upstream's had", async () => {
    const response = await answer();
    assert.ok(response instanceof Response);
    assert.equal(response.constructor, Response);
    assert.equal(Object.prototype.toString.call(response), "[object Response]");
    const { status, statusText, ok, url, redirected, type } = response;
    assert.deepEqual([status, statusText, ok], [201, "Made", true]);
    assert.deepEqual([url, redirected, type], [OPENAI, true, "basic"]);
    assert.equal(response.headers.get("x-own"), "1");
    response.headers.set("x-own", "2");
    assert.equal(response.headers.get("x-own"), "2", "they are the caller's");
    assert.match(inspect(response), /^Response \{\s+status: 201/);
  });

  const readers = {
    text: async (response) => assert.equal(await response.text(), TEXT),
    json: async (response) => assert.deepEqual(await response.json(), JSON.parse(TEXT)),
    arrayBuffer: async (response) => assert.deepEqual(new Uint8Array(await response.arrayBuffer()), bytes),
    blob: async (response) => {
      const blob = await response.blob();
      assert.equal(blob.type, "application/json;charset=utf-8");
      assert.deepEqual(new Uint8Array(await blob.arrayBuffer()), bytes);
    },
    ...("bytes" in Response.prototype
      ? { bytes: async (response) => assert.deepEqual(await response.bytes(), bytes) }
      : {}),
    body: async (response) => assert.equal(await new Response(response.body).text(), TEXT),
  };
  for (const [name, read] of Object.entries(readers)) {
    it(`gives its ${name} once, to whom it is asked of`, async () => {
      const response = await answer();
      assert.equal(response.bodyUsed, false);
      await read(response);
      assert.equal(response.bodyUsed, true);
      for (const again of ["text", "json", "arrayBuffer", "blob"]) {
        await assert.rejects(response[again](), { name: "TypeError", message: /unusable|already been read|locked/ });
      }
      assert.throws(() => response.clone(), TypeError);
      assert.equal((await response.body?.getReader) === undefined, false);
      assert.throws(() => response.body.getReader() && response.body.getReader());
    });

    it(`gives the same ${name} to a copy, whichever is read first`, async () => {
      for (const touch of [false, true]) {
        const response = await answer();
        if (touch) assert.ok(response.body instanceof ReadableStream);
        response.headers.set("x-own", "2");
        const copy = response.clone();
        assert.ok(copy instanceof Response);
        assert.deepEqual([copy.status, copy.url, copy.headers.get("x-own")], [201, OPENAI, "2"]);
        copy.headers.set("x-own", "3");
        assert.equal(response.headers.get("x-own"), "2");
        const [one, two] = touch ? [response, copy] : [copy, response];
        await read(one);
        await read(two);
      }
    });
  }

  it("gives each reader bytes of its own", async () => {
    const response = await answer();
    const copy = response.clone();
    new Uint8Array(await response.arrayBuffer()).fill(0);
    assert.equal(await copy.text(), TEXT);
  });

  it("can be read into the reader's own buffer", async () => {
    const reader = (await answer()).body.getReader({ mode: "byob" });
    let seen = "";
    for (let buffer = new ArrayBuffer(8); ; ) {
      const { done, value } = await reader.read(new Uint8Array(buffer));
      if (done) break;
      seen += Buffer.from(value).toString("latin1");
      buffer = value.buffer;
    }
    assert.deepEqual(new Uint8Array(Buffer.from(seen, "latin1")), bytes);
  });

  it("can be passed on as another Response's body and init, and through a proxy", async () => {
    const response = await answer();
    const again = new Response(response.body, response);
    assert.deepEqual([again.status, again.statusText, again.headers.get("x-own")], [201, "Made", "1"]);
    assert.deepEqual(await again.json(), JSON.parse(TEXT));
    const proxied = new Proxy(await answer(), {
      get: (target, name) => Reflect.get(target, name),
    });
    assert.deepEqual(await proxied.json(), JSON.parse(TEXT));
  });

  it("has its byte order mark taken off, as by the host", async () => {
    const other = createKeel({ ...ONCE, fetch: async () => new Response("\ufefftext") });
    assert.equal(await (await other.fetch(OPENAI, POST)).text(), "text");
  });

  it("is whole JSON behind a byte order mark, long or short, and cut short without its end", async () => {
    for (const size of [0, 200_000]) {
      const json = `{"choices":[{"message":{"content":"${"a".repeat(size)}"}}]}`;
      const of = (body) => async () =>
        new Response(`\ufeff${body}`, { headers: { "content-type": "application/json" } });
      const response = await createKeel({ ...ONCE, fetch: of(json) }).fetch(OPENAI, POST);
      assert.equal((await response.json()).choices.length, 1);
      const cut = createKeel({ ...ONCE, fetch: of(json.slice(0, -2)) }).fetch(OPENAI, POST);
      await assert.rejects(cut, { class: "stream_interrupted" });
    }
  });

  it("has no body where the upstream's has none", async () => {
    for (const status of [200, 204, 404]) {
      const other = createKeel({ ...ONCE, fetch: async () => new Response(null, { status }) });
      const response = await other.fetch("https://example.com/", { method: "DELETE" });
      assert.deepEqual([response.status, response.body, await response.text()], [status, null, ""]);
    }
  });

  it("gives a form", async () => {
    const form = new FormData();
    form.set("a", "b");
    const other = createKeel({ ...ONCE, fetch: async () => new Response(form) });
    assert.equal((await (await other.fetch(OPENAI, POST)).formData()).get("a"), "b");
  });

  it("rejects JSON that is none with the error that JSON.parse gives", async () => {
    const other = createKeel({ ...ONCE, fetch: async () => new Response("no", { status: 500 }) });
    await assert.rejects((await other.fetch(OPENAI, POST)).json(), SyntaxError);
  });
});

describe("an answer that is too long to be kept", () => {
  const BIG = "x".repeat(5_000);
  const stalled = { headers: { "content-type": "text/plain" }, body: BIG, end: "stall" };

  /** Reads an answer that stalls; gives what came, how it ended, and how long that took. */
  async function until(options, context = {}) {
    const clock = fakeClock();
    const upstream = scriptedUpstream([stalled], { clock });
    const keel = createKeel({ fetch: upstream.fetch, clock, body: { maxBufferedBytes: 1_024 }, ...options });
    const startedAt = clock.now();
    const response = await clock.run(() => keel.with(context).fetch(OPENAI, POST));
    let size = 0;
    const error = await clock
      .run(async () => {
        for await (const chunk of response.body) size += chunk.byteLength;
      })
      .then(assert.fail, (thrown) => thrown);
    return { size, error, took: clock.now() - startedAt };
  }

  for (const [name, took, options, context] of [
    ["its own deadline", 5_000, {}, { deadlineMs: 5_000 }],
    ["the total of its preset", 60_000, { preset: "interactive" }],
    ["its provider's total", 7_000, { providers: { openai: { timeouts: { totalMs: 7_000 } } } }],
    ["the default", 600_000, {}],
  ]) {
    it(`is given on under ${name}`, async () => {
      const { size, error, took: ms } = await until(options, context);
      assert.equal(size, BIG.length);
      assert.match(error.message, /took too long/);
      assert.equal(ms, took);
    });
  }
});

describe("a status text that no Response can be made with", () => {
  const TEXTS = ["✓ fine", "日本", "\u0001", "Ünïcode", ""];
  const TYPES = {
    "application/json": '{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}',
    "text/event-stream": 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  };
  /** What a host's own `fetch` gives where such a text came by a real socket. */
  const said = (statusText, body, status, type) =>
    Object.defineProperty(new Response(body, { status, headers: { "content-type": type } }), "statusText", {
      value: statusText,
    });

  it("loses no answer, good or failed, whole or streamed, and is kept, in a clone too", async () => {
    for (const statusText of TEXTS) {
      for (const [type, body] of Object.entries(TYPES)) {
        for (const status of [200, 400, 503]) {
          for (const maxBufferedBytes of [1_024, 33_554_432]) {
            const long = type === "application/json" ? body + " ".repeat(2_000) : body;
            const keel = createKeel({
              ...ONCE,
              body: { maxBufferedBytes },
              fetch: async () => said(statusText, long, status, type),
            });
            const response = await keel.fetch(OPENAI, { method: "POST", body: '{"model":"gpt-5","stream":true}' });
            assert.deepEqual([response.status, response.statusText], [status, statusText]);
            if (statusText === "" || maxBufferedBytes > 1_024) {
              const copy = response.clone();
              assert.equal(copy.status, status);
              assert.equal(await copy.text(), long);
            }
            assert.equal(await response.text(), long);
            assert.equal(keel.state().permits.held, 0);
          }
        }
      }
    }
  });
});

describe("a host whose Response is frozen", () => {
  it("gives answers all the same", () => {
    const code = `
      import { createKeel } from "evenkeel";
      for (const one of [Response, Headers, AbortSignal, ReadableStream]) Object.freeze(one.prototype);
      const body = { choices: [{ message: { content: "hi" }, finish_reason: "stop" }] };
      const keel = createKeel({ fetch: async () => Response.json(body) });
      const response = await keel.fetch("${OPENAI}", { method: "POST", body: "{}" });
      console.log((await response.json()).choices.length);`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
    assert.equal(stdout, "1\n", stderr);
  });
});
