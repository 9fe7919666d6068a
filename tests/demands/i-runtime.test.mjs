/** One core under many calls: contexts, hostile input, re-entrance, and what is left when calls have ended. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { KeelError } from "evenkeel";
import { rig, timed } from "../clients/rig.mjs";
import { openai } from "../upstream/bodies.mjs";

const HUNDRED = Array.from({ length: 100 }, (_, i) => i);

describe("I4 calls share data, and nothing that belongs to one of them", () => {
  it("I4 a hundred interleaved calls each run in their own async context: fetch and sink", async (t) => {
    const context = new AsyncLocalStorage();
    const failed = new Set();
    /** @type {[string, unknown][]} */
    const seenBySink = [];
    /** @type {[string, unknown][]} */
    const seenByFetch = [];
    const { chat, keel } = await rig(
      t,
      (/** @type {any} */ request) => {
        const prompt = request.json.messages[0].content;
        const step = { ...openai.chat(prompt), delayHeadMs: (Number(prompt) * 7) % 30 };
        if (failed.has(prompt)) return step;
        failed.add(prompt);
        return Number(prompt) % 2 ? openai.overloaded() : step;
      },
      {
        retry: { budget: false },
        breaker: false,
        concurrency: false,
        ledger: (/** @type {any} */ record) =>
          void (record.type === "notice" || seenBySink.push([record.user_or_tenant_id, context.getStore()])),
        fetch: (/** @type {string} */ url, /** @type {any} */ init) => {
          const body = typeof init.body === "string" ? init.body : new TextDecoder().decode(init.body);
          seenByFetch.push([JSON.parse(body).messages[0].content, context.getStore()]);
          return fetch(url, init);
        },
      },
    );
    await Promise.all(
      HUNDRED.map((i) =>
        context.run(String(i), async () => {
          const response = await chat({ prompt: String(i), fetch: keel.with({ tenant: String(i) }).fetch });
          assert.equal((await response.json()).choices[0].message.content, String(i));
          assert.equal(context.getStore(), String(i));
        }),
      ),
    );
    await keel.flush();
    assert.equal(seenByFetch.length, 150);
    for (const [own, store] of seenByFetch) assert.equal(store, own);
    assert.equal(seenBySink.length, 250, "150 attempts and 100 calls");
    for (const [own, store] of seenBySink) assert.equal(store, own);
  });

  it("I4 calls that are aborted take nobody with them", async (t) => {
    const { chat, calls } = await rig(t, (/** @type {any} */ request) => ({
      ...openai.chat(request.json.messages[0].content),
      delayHeadMs: 80,
    }));
    const results = await Promise.allSettled(
      HUNDRED.map((i) =>
        chat({ prompt: String(i), signal: i % 4 === 0 ? AbortSignal.timeout(20) : AbortSignal.timeout(20_000) }),
      ),
    );
    assert.deepEqual(
      results.map((result) => result.status),
      HUNDRED.map((i) => (i % 4 === 0 ? "rejected" : "fulfilled")),
    );
    const statuses = (await calls()).map((call) => call.status);
    assert.deepEqual(
      [
        statuses.filter((status) => status === "cancelled").length,
        statuses.filter((status) => status === "succeeded").length,
      ],
      [25, 75],
    );
  });
});

describe("I7 no answer breaks the core", () => {
  const many = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`x-header-${i}`, `v${i}`]));
  /** @type {[string, object, number | string][]} What comes, and its status or the class of the error that it ends in. */
  const hostile = [
    ["hundreds of headers", { status: 503, headers: many, body: "no" }, 503],
    ["a retry-after of 8,000 digits", { status: 429, headers: { "retry-after": "9".repeat(8000) }, body: "{}" }, 429],
    ["an error body of 20 MB", { status: 500, body: () => Array(320).fill("x".repeat(65536)) }, 500],
    [
      "invalid UTF-8",
      {
        status: 400,
        headers: { "content-type": "application/json" },
        body: new Uint8Array([0x7b, 0xff, 0xfe, 0xc3, 0x28, 0x7d]),
      },
      400,
    ],
    [
      "JSON nested 100,000 deep",
      { status: 429, headers: { "content-type": "application/json" }, body: "[".repeat(100_000) },
      429,
    ],
    ["an empty body", { status: 500, body: "" }, 500],
    [
      "HTML",
      { status: 502, headers: { "content-type": "text/html" }, body: "<html><body>502 Bad Gateway</body></html>" },
      502,
    ],
    ["a 204", { status: 204 }, 204],
    ["an unknown status", { status: 799, body: "what" }, 799],
    ["no HTTP at all", { raw: "\u0000\u0001\u0002", close: true }, "connection_error"],
    [
      "NUL bytes in a stream",
      { headers: { "content-type": "text/event-stream" }, body: ["\0\0\0data: \0\n\n", "data: [DONE]\n\n"] },
      "stream_interrupted",
    ],
  ];
  for (const [name, step, expected] of hostile) {
    it(`I7 after ${name} the next call is an ordinary one`, async (t) => {
      const { chat, attempts, calls, notices } = await rig(t, (/** @type {any} */ request) =>
        request.json.messages[0].content === "hostile" ? step : openai.chat("fine"),
      );
      const { ms, value, error } = await timed(async () => {
        const response = await chat({ prompt: "hostile" });
        await response.arrayBuffer();
        return response.status;
      });
      assert.ok(ms < 8000, `${ms} ms`);
      if (typeof expected === "number") {
        assert.equal(error, undefined);
        assert.equal(value, expected);
      } else {
        assert.ok(error instanceof KeelError, `${error}, ${value}`);
        assert.equal(error.class, expected);
      }
      assert.equal((await (await chat({ prompt: "ordinary" })).json()).choices[0].message.content, "fine");
      assert.equal((await calls()).length, 2);
      assert.ok((await attempts()).length >= 2);
      assert.deepEqual(
        (await notices()).filter((notice) => /core/.test(notice.kind)),
        [],
        "the core was not restarted",
      );
    });
  }

  it("I7 a request body that is no JSON goes out as it is", async (t) => {
    const { chat, upstream, attempts } = await rig(t, [openai.badRequest()]);
    await chat({ body: "{not json" });
    assert.equal(upstream.seen[0]?.body, "{not json");
    assert.equal((await attempts())[0].model, null);
  });
});

describe("I8 the core may be called from everywhere at any time", () => {
  it("I8 a sink, a hook and a fetch that call keel.fetch themselves", async (t) => {
    /** @type {Promise<Response>[]} */
    const inner = [];
    let nested = 0;
    /** @type {any} */
    let outer;
    const again = () => {
      if (nested++ < 60) inner.push(outer.chat({ prompt: "nested" }));
    };
    outer = await rig(
      t,
      (/** @type {any} */ request) => (request.n % 3 === 1 ? openai.overloaded() : openai.chat("fine")),
      {
        retry: { budget: false },
        breaker: false,
        concurrency: false,
        ledger: again,
        classify: (/** @type {unknown} */ _signal, /** @type {unknown} */ builtIn) => {
          again();
          return builtIn;
        },
        fetch: (/** @type {string} */ url, /** @type {RequestInit} */ init) => {
          again();
          return fetch(url, init);
        },
      },
    );
    const responses = await Promise.all(HUNDRED.map(() => outer.chat()));
    while (inner.length > 0) responses.push(...(await Promise.all(inner.splice(0))));
    assert.ok(responses.length >= 160);
    for (const response of responses) assert.ok([200, 503].includes(response.status));
  });

  it("I8 a sink that throws or never ends touches no call", async (t) => {
    const { upstream, chat } = await rig(t, () => openai.chat("fine"), {
      ledger: [
        () => {
          throw new Error("the sink is broken");
        },
        () => Promise.reject(new Error("the sink is broken, later")),
        () => new Promise(() => {}),
      ],
    });
    for (let i = 0; i < 5; i++) assert.equal((await chat()).status, 200);
    assert.equal(upstream.seen.length, 5);
  });
});

describe("I9 nothing is left on the caller's signal", () => {
  const listeners = (/** @type {AbortSignal} */ signal) => getEventListeners(signal, "abort").length;

  it("I9 a hundred calls on one signal leave no listener behind, one after the other", async (t) => {
    const { chat } = await rig(
      t,
      (/** @type {any} */ request) => (request.n % 5 === 0 ? openai.overloaded() : openai.chat("fine")),
      { retry: { budget: false }, breaker: false, concurrency: false },
    );
    const { signal } = new AbortController();
    for (const _ of HUNDRED) {
      await (await chat({ signal })).text();
      assert.ok(listeners(signal) <= 1, `${listeners(signal)} listeners`);
    }
    assert.equal(listeners(signal), 0);
  });

  it("I9 nor side by side, where each call has one at most", async (t) => {
    const { chat, upstream } = await rig(t, () => ({ ...openai.chat("fine"), delayHeadMs: 50 }));
    const { signal } = new AbortController();
    const calls = HUNDRED.map(async () => (await chat({ signal })).text());
    await upstream.waitForRequests(50);
    assert.ok(listeners(signal) <= 100, `${listeners(signal)} listeners`);
    await Promise.all(calls);
    assert.equal(listeners(signal), 0);
  });

  it("I9 nor after failures, timeouts, streams and streams that were broken off", async (t) => {
    const { signal } = new AbortController();
    const stream = openai.chatStream("one two three");
    const body = JSON.stringify({ model: "gpt-5", stream: true, messages: [] });
    const outage = await rig(t, () => openai.overloaded());
    await outage.chat({ signal });
    assert.equal(listeners(signal), 0, "after a failure");

    const silent = await rig(t, () => ({ hang: "head" }), { timeouts: { totalMs: 60 } });
    await assert.rejects(silent.chat({ signal }));
    assert.equal(listeners(signal), 0, "after a timeout");

    const streaming = await rig(t, [stream, { ...stream, hang: 400 }, { ...stream, resetAtByte: 400 }]);
    await (await streaming.chat({ body, signal })).text();
    assert.equal(listeners(signal), 0, "after a stream");
    await (await streaming.chat({ body, signal })).body.cancel();
    assert.equal(listeners(signal), 0, "after a stream that was broken off");
    await assert.rejects(async () => (await streaming.chat({ body, signal })).text());
    assert.equal(listeners(signal), 0, "after a stream that broke");
  });
});
