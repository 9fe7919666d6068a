// An upstream decides how long the chunks of its body are.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { createKeel } from "evenkeel";
import { fakeClock } from "evenkeel/testing";

const U = "https://api.openai.com/v1/chat/completions";
const utf8 = new TextEncoder();
const TOKEN = 'data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}\n\n';
const END = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const ERROR = 'data: {"error":{"message":"boom","type":"server_error"}}\n\n';

function answering(chunks, type, options = {}) {
  const records = [];
  const keel = createKeel({
    ledger: (record) => records.push(record),
    retry: { maxAttempts: 1 },
    breaker: false,
    fetch: async () => {
      const rest = chunks()[Symbol.iterator]();
      const pull = (controller) => {
        const next = rest.next();
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { headers: { "content-type": type } });
    },
    ...options,
  });
  const call = () => keel.fetch(U, { method: "POST", body: '{"model":"gpt-5","stream":true}' });
  return { call, records };
}

/** What a reader gets, and whether it ended in an error. */
async function read(response) {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body) text += decoder.decode(chunk, { stream: true });
    return { text, error: undefined };
  } catch (error) {
    return { text, error };
  }
}

function* cut(text, size) {
  const bytes = utf8.encode(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

describe("an empty chunk", () => {
  it("stops no reader, wherever it stands in a stream that ends well or in an error", async () => {
    for (const commitOn of ["first-content", "end"]) {
      for (const [whole, ends] of [
        [TOKEN + TOKEN + END, true],
        [TOKEN + TOKEN + ERROR, false],
        [ERROR, false],
      ]) {
        for (let at = 0; at <= whole.length; at += 1) {
          const chunks = () => [utf8.encode(whole.slice(0, at)), new Uint8Array(0), utf8.encode(whole.slice(at))];
          const { call } = answering(chunks, "text/event-stream", { stream: { commitOn } });
          const { text, error } = await read(await call());
          assert.equal(text, whole, `${commitOn}, ${at}`);
          assert.equal(error === undefined, ends, `${commitOn}, ${at}`);
        }
      }
    }
  });
});

describe("short chunks", () => {
  it("come back as the bytes that they were, in whole answers, held streams and streams that go on", async () => {
    const text = Array.from({ length: 40 }, (_, at) => TOKEN.replace("a", `größe ${at}`)).join("");
    const json = JSON.stringify({ choices: [{ message: { content: "ü".repeat(3_000) }, finish_reason: "stop" }] });
    for (const size of [1, 3, 63, 64, 65, 1_023, 1_024, 1_025]) {
      for (const commitOn of ["head", "first-content", "end"]) {
        const { call } = answering(() => cut(text + END, size), "text/event-stream", { stream: { commitOn } });
        assert.deepEqual(await read(await call()), { text: text + END, error: undefined }, `${commitOn}, ${size}`);
      }
      const { call } = answering(() => cut(json, size), "application/json");
      assert.equal(await (await call()).text(), json);
      const long = answering(() => cut(json, size), "application/json", { body: { maxBufferedBytes: 1_024 } });
      assert.equal(await (await long.call()).text(), json);
    }
  });

  it("are kept as few long ones", async () => {
    const own = Uint8Array.prototype.set;
    let kept;
    Uint8Array.prototype.set = function (...args) {
      if (kept !== undefined) kept += 1;
      return own.apply(this, args);
    };
    try {
      const json = `{"choices":[{"message":{"content":"${"x".repeat(100_000)}"},"finish_reason":"stop"}]}`;
      function* chunks() {
        yield* cut(json, 1);
        // What is put together from now on is what was kept.
        kept = 0;
      }
      const { call } = answering(chunks, "application/json");
      assert.equal((await call()).status, 200);
      assert.ok(kept > 0 && kept < 2_000, `${kept} pieces`);
    } finally {
      Uint8Array.prototype.set = own;
    }
  });

  it("that were held are given on as few long ones", async () => {
    const readsOf = async (count) => {
      const blank = utf8.encode(": ping\n\n");
      function* chunks() {
        for (let at = 0; at < count; at += 1) yield blank;
        yield utf8.encode(TOKEN + END);
      }
      const { call } = answering(chunks, "text/event-stream");
      const response = await call();
      let reads = 0;
      for await (const _ of response.body) reads += 1;
      return reads;
    };
    assert.ok((await readsOf(64_000)) < 2_000);
  });
});

describe("an answer that is longer than what is kept", () => {
  const json = JSON.stringify({ choices: [{ message: { content: "x".repeat(9_000) }, finish_reason: "stop" }] });
  const lines = `${JSON.stringify({ message: { content: "x".repeat(3_000) }, done: false })}\n`.repeat(3);
  const array = JSON.stringify(Array.from({ length: 900 }, (_, at) => ({ at })));

  it("is asked for once and passes whole, in whatever pieces it comes", async () => {
    for (const [text, type] of [
      [json, "application/json"],
      [lines, "application/json"],
      [array, "application/json"],
      [json, "text/plain"],
    ]) {
      for (const size of [100, 1_025, 5_000]) {
        let asked = 0;
        const chunks = () => {
          asked += 1;
          return cut(text, size);
        };
        const more = { body: { maxBufferedBytes: 1_024 }, retry: { maxAttempts: 3, baseMs: 1 } };
        const { call, records } = answering(chunks, type, more);
        const response = await call();
        assert.equal(response.headers.get("x-should-retry"), null);
        assert.equal(await response.text(), text);
        assert.deepEqual([asked, records.map(({ status }) => status)], [1, ["succeeded", "succeeded"]], `${size}`);
      }
    }
  });

  it("lets the upstream and the caller's signal go when its time is up or the caller aborts, read or not", async () => {
    for (const act of ["time", "abort", "abort before it is read"]) {
      for (const reads of [false, true]) {
        const upstream = new AbortController();
        const clock = fakeClock();
        const keel = createKeel({
          clock,
          body: { maxBufferedBytes: 1_024 },
          timeouts: { totalMs: 5_000 },
          fetch: async () =>
            new Response(
              new ReadableStream(
                {
                  start: (controller) => controller.enqueue(utf8.encode(json.slice(0, 2_000))),
                  pull: () => new Promise(() => {}),
                  cancel: () => upstream.abort(),
                },
                { highWaterMark: 0 },
              ),
              { headers: { "content-type": "application/json" } },
            ),
        });
        const caller = new AbortController();
        const init = { method: "POST", body: '{"model":"gpt-5"}', signal: caller.signal };
        const response = await keel.fetch(U, init);
        const text = reads ? assert.rejects(response.text()) : undefined;
        if (act === "abort") await new Promise(setImmediate);
        if (act === "time") await clock.advance(6_000);
        else caller.abort(new Error("gone"));
        await text;
        assert.ok(upstream.signal.aborted, `${act}, ${reads}`);
        assert.equal(getEventListeners(caller.signal, "abort").length, 0, `${act}, ${reads}`);
        if (!reads) await assert.rejects(response.text(), act === "time" ? /too long/ : /gone/);
      }
    }
  });
});
