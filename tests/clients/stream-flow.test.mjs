/**
 * The flow of a stream through `keel.fetch`: a slow reader slows the upstream, a reader that stops costs bounded memory,
 * and one who gives up is heard at the upstream at once.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { event, openai, partsBefore } from "../upstream/bodies.mjs";
import { rig } from "./rig.mjs";

const MB = 1_048_576;
const PIECE = event({ choices: [{ index: 0, delta: { content: "even ".repeat(13_000) } }] });

/** A stream of about `megabytes`, written as fast as it is taken. */
function long(/** @type {number} */ megabytes) {
  const [role, ...rest] = openai.chatStream("Keep").body;
  return {
    ...openai.chatStream(""),
    *body() {
      yield/** @type {string} */ (role);
      for (let sent = 0; sent < megabytes * MB; sent += PIECE.length) yield PIECE;
      yield* rest;
    },
  };
}

/** Options of a request that asks for a stream. */
const streamed = (rest = {}) => ({
  body: JSON.stringify({ model: "gpt-5", stream: true, messages: [{ role: "user", content: "hello" }] }),
  ...rest,
});

/** Bytes that are in use once the garbage is gone. */
async function inUse() {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  for (let n = 0; n < 3; n++) {
    gc();
    await pause(20);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until the upstream has not got rid of a byte for a while; says how many it has in all. */
async function standstill(/** @type {import("../upstream/upstream.mjs").Upstream} */ upstream) {
  const sent = () => upstream.seen.reduce((sum, seen) => sum + seen.sentBytes, 0);
  for (let before = -1; before !== sent(); await pause(250)) before = sent();
  return sent();
}

/** Reads to the end; the bytes that came, and the error if one ended it. */
async function drain(/** @type {ReadableStreamDefaultReader<Uint8Array>} */ reader) {
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { bytes, error: undefined };
      bytes += value.byteLength;
    }
  } catch (error) {
    return { bytes, error };
  }
}

const readerOf = (/** @type {Response} */ response) =>
  /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();

describe("backpressure", () => {
  it("a reader that stops slows the upstream down, and gets the rest when it goes on", async (t) => {
    const { chat, upstream, attempts } = await rig(t, [long(48)]);
    const reader = readerOf(await chat(streamed()));
    const { value } = await reader.read();
    const sent = await standstill(upstream);
    assert.ok(sent < 24 * MB, `the upstream has got rid of ${sent} bytes while nobody read`);
    const { bytes, error } = await drain(reader);
    assert.equal(error, undefined);
    assert.equal(bytes + (value?.byteLength ?? 0), upstream.seen[0]?.sentBytes, "not a byte more or less");
    const [attempt] = await attempts();
    assert.equal(attempt.status, "succeeded");
    assert.equal(attempt.bytes, upstream.seen[0]?.sentBytes);
  });

  it("a hundred streams whose readers stop hold bounded memory", async (t) => {
    const { chat, upstream } = await rig(t, () => long(8), { concurrency: false });
    await (await chat()).arrayBuffer();
    const before = await inUse();
    const readers = await Promise.all(Array.from({ length: 100 }, async () => readerOf(await chat(streamed()))));
    await Promise.all(readers.map((reader) => reader.read()));
    await standstill(upstream);
    const grown = (await inUse()) - before;
    t.diagnostic(`${Math.round(grown / 1024 / 100)} KB a stream, the test's own upstream included`);
    assert.ok(grown < 150 * MB, `${Math.round(grown / MB)} MB for a hundred streams of 8 MB each`);
    await Promise.all(readers.map((reader) => reader.cancel()));
    await upstream.waitUntil(() => upstream.inFlight() === 0);
  });

  it("the time in which nobody reads is no gap of the upstream's", async (t) => {
    const { chat, attempts } = await rig(t, [long(8)], { timeouts: { chunkGapMs: 250, contentGapMs: 250 } });
    const reader = readerOf(await chat(streamed()));
    await reader.read();
    await pause(700);
    await reader.read();
    await pause(700);
    assert.equal((await drain(reader)).error, undefined);
    const [attempt] = await attempts();
    assert.equal(attempt.status, "succeeded");
    assert.ok(attempt.longest_gap_ms < 250, `${attempt.longest_gap_ms} ms`);
  });

  it("a process that was busy doesn't take its upstream for silent", async (t) => {
    const upstream = new Worker(new URL("../upstream/in-worker.mjs", import.meta.url), {
      workerData: { ...openai.chatStream("Keep the keel even, whatever the wind does."), delayBetweenChunksMs: 100 },
    });
    t.after(() => upstream.terminate());
    const [url] = await once(upstream, "message");
    const { chat, attempts } = await rig(t, [], { timeouts: { chunkGapMs: 400 } });
    const reader = readerOf(await chat(streamed({ url })));
    // The role and the first word were held; the next word has to be waited for.
    await reader.read();
    await reader.read();
    const next = reader.read();
    // Behind an I/O of its own: timers are looked at before sockets after that.
    await readFile(new URL(import.meta.url));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
    await next;
    assert.equal((await drain(reader)).error, undefined);
    assert.equal((await attempts())[0].status, "succeeded");
  });

  it("a silence of the upstream's is one, however slowly it was read before", async (t) => {
    const whole = openai.chatStream("Keep the keel even.");
    const said = whole.body.slice(0, partsBefore(whole.body, "keel") + 1);
    const { chat, attempts } = await rig(t, [{ ...whole, body: [...said, 60_000] }], {
      timeouts: { chunkGapMs: 200 },
    });
    const reader = readerOf(await chat(streamed()));
    await reader.read();
    await pause(400);
    const { error } = await drain(reader);
    assert.equal(/** @type {any} */ (error).class, "stream_interrupted");
    assert.equal((await attempts())[0].reason, "chunk_gap_timeout");
  });
});

describe("cancellation", { concurrency: true }, () => {
  const slow = () => ({
    ...openai.chatStream("Keep the keel even, whatever the wind does."),
    delayBetweenChunksMs: 50,
  });

  it("a reader that cancels ends the upstream's work at once, and its record says what was delivered", async (t) => {
    const { chat, upstream, attempts, calls } = await rig(t, slow);
    const reader = readerOf(await chat(streamed()));
    const { value } = await reader.read();
    const delivered = (value?.byteLength ?? 0) + ((await reader.read()).value?.byteLength ?? 0);
    const cancelledAt = performance.now();
    await reader.cancel("seen enough");
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true, 1000);
    assert.ok(performance.now() - cancelledAt < 500);
    const [attempt, ...more] = await attempts();
    assert.equal(more.length, 0);
    assert.equal(attempt.status, "cancelled");
    assert.equal(attempt.error_class, "cancelled");
    assert.ok(attempt.bytes >= delivered, `${attempt.bytes} bytes in the record, ${delivered} read`);
    assert.notEqual(attempt.first_token_ms, null);
    assert.equal(attempt.terminal_marker, false);
    assert.deepEqual(
      (await calls()).map((call) => call.status),
      ["cancelled"],
    );
  });

  it("an abort rejects the read under way with the caller's own reason, never with a normal end", async (t) => {
    const { chat, upstream, calls } = await rig(t, slow);
    const controller = new AbortController();
    const reason = new Error("the user closed the tab");
    const reader = readerOf(await chat(streamed({ signal: controller.signal })));
    await reader.read();
    setTimeout(() => controller.abort(reason), 80);
    const { error } = await drain(reader);
    assert.equal(error, reason);
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true, 1000);
    assert.deepEqual(
      (await calls()).map((call) => [call.status, call.error_class]),
      [["cancelled", "cancelled"]],
    );
  });

  it("an abort while nobody reads rejects the next read with the caller's reason", async (t) => {
    const { chat, upstream } = await rig(t, slow);
    const controller = new AbortController();
    const reason = new Error("the user closed the tab");
    const reader = readerOf(await chat(streamed({ signal: controller.signal })));
    await reader.read();
    controller.abort(reason);
    assert.equal((await drain(reader)).error, reason);
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true, 1000);
  });

  it("an abort while the head is held rejects with the caller's reason and ends the upstream's work", async (t) => {
    const { chat, upstream, calls } = await rig(t, () => ({ ...slow(), delayBetweenChunksMs: 2000 }));
    const controller = new AbortController();
    const reason = new Error("the user closed the tab");
    const pending = chat(streamed({ signal: controller.signal }));
    await upstream.waitUntil(() => (upstream.seen[0]?.sentBytes ?? 0) > 0);
    controller.abort(reason);
    await assert.rejects(pending, (error) => error === reason);
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true, 1000);
    assert.equal((await calls())[0].status, "cancelled");
  });

  it("an abort after the end changes nothing", async (t) => {
    const { chat, calls } = await rig(t, [openai.chatStream("Keep the keel even.")]);
    const controller = new AbortController();
    const response = await chat(streamed({ signal: controller.signal }));
    const text = await response.text();
    controller.abort();
    assert.ok(text.endsWith("data: [DONE]\n\n"));
    assert.deepEqual(
      (await calls()).map((call) => call.status),
      ["succeeded"],
    );
  });
});
