/** A client that is gone: the upstream is told, whatever the call was doing. */
import assert from "node:assert/strict";
import http from "node:http";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { rig } from "../clients/rig.mjs";
import { openai } from "../upstream/bodies.mjs";

const STREAM = JSON.stringify({ model: "gpt-5", stream: true, messages: [{ role: "user", content: "hello" }] });
const slow = () => ({ ...openai.chatStream("Keep the keel even, whatever the wind does."), delayBetweenChunksMs: 60 });

/**
 * A server of a few lines before `keel.fetch`, as people write it: the client's connection is the call's signal.
 *
 * @param {{ after: (fn: () => unknown) => void }} t
 * @param {typeof fetch} keelFetch
 * @param {string} target
 */
async function serverBefore(t, keelFetch, target) {
  const server = http.createServer(async (request, response) => {
    const gone = new AbortController();
    response.on("close", () => {
      if (!response.writableFinished) gone.abort(new Error("the client is gone"));
    });
    try {
      const body = Buffer.concat(await request.toArray());
      const headers = { "content-type": "application/json", authorization: "Bearer sk-test-0123456789" };
      const upstream = await keelFetch(`${target}${request.url}`, {
        method: "POST",
        headers,
        body,
        signal: gone.signal,
      });
      response.writeHead(upstream.status, { "content-type": upstream.headers.get("content-type") ?? "" });
      Readable.fromWeb(/** @type {any} */ (upstream.body))
        .on("error", () => response.destroy())
        .pipe(response);
    } catch {
      response.destroy();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
}

/** Asks, and hangs up when `when` says so; `got` is called with each piece of the answer. */
function ask(/** @type {string} */ url) {
  const request = http.request(`${url}/v1/chat/completions`, { method: "POST" });
  request.on("error", () => {});
  request.end(STREAM);
  return request;
}

describe("K1 the upstream is told that the client is gone, in every phase", { concurrency: true }, () => {
  /**
   * @type {[phase: string, script: any, ready: (upstream: import("../upstream/upstream.mjs").Upstream) => boolean][]}
   */
  const phases = [
    ["while the head is awaited", () => ({ hang: "head" }), (upstream) => upstream.seen.length === 1],
    [
      "before the first token",
      () => ({ ...openai.chatStream("Keep"), hang: 200 }),
      (upstream) => (upstream.seen[0]?.sentBytes ?? 0) >= 200,
    ],
    ["within the stream", slow, (upstream) => (upstream.seen[0]?.sentBytes ?? 0) > 500],
    [
      "within a body",
      () => ({ ...openai.chat("Keep the keel even."), hang: 60 }),
      (upstream) => (upstream.seen[0]?.sentBytes ?? 0) >= 60,
    ],
  ];
  for (const [phase, script, ready] of phases) {
    it(`K1 ${phase}`, async (t) => {
      const { keel, upstream, attempts, calls } = await rig(t, script);
      const request = ask(await serverBefore(t, keel.fetch, upstream.url));
      request.on("response", (response) => response.on("error", () => {}).resume());
      await upstream.waitUntil(() => ready(upstream));
      const goneAt = performance.now();
      request.destroy();
      await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true, 2000);
      assert.ok(performance.now() - goneAt < 1000, `${performance.now() - goneAt} ms`);
      await upstream.waitUntil(() => upstream.inFlight() === 0);
      assert.deepEqual(
        (await attempts()).map((attempt) => [attempt.status, attempt.error_class]),
        [["cancelled", "cancelled"]],
      );
      assert.deepEqual(
        (await calls()).map((call) => call.status),
        ["cancelled"],
      );
      assert.equal(upstream.seen.length, 1, "nothing is sent after it");
    });
  }

  it("K1 within a backoff nothing more is sent", async (t) => {
    const script = [openai.rateLimited({ "retry-after": "1" }), openai.chatStream("Keep")];
    const { keel, upstream, calls } = await rig(t, script);
    const request = ask(await serverBefore(t, keel.fetch, upstream.url));
    await upstream.waitUntil(() => upstream.seen[0]?.completed === true);
    await new Promise((resolve) => setTimeout(resolve, 50));
    request.destroy();
    await new Promise((resolve) => setTimeout(resolve, 1300));
    assert.equal(upstream.seen.length, 1);
    assert.equal((await calls())[0].status, "cancelled");
  });

  it("K1 a client that leaves the queue is never sent for, and its place goes to the next", async (t) => {
    const { keel, upstream, calls } = await rig(t, [slow(), openai.chatStream("Keep")], { concurrency: { max: 1 } });
    const url = await serverBefore(t, keel.fetch, upstream.url);
    const first = ask(url);
    const firstEnd = new Promise((resolve) => first.on("response", (response) => response.resume().on("end", resolve)));
    await upstream.waitForRequests(1);
    const second = ask(url);
    const third = ask(url);
    const thirdEnd = new Promise((resolve) => third.on("response", (response) => response.resume().on("end", resolve)));
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(upstream.seen.length, 1, "two are waiting");
    second.destroy();
    await firstEnd;
    await thirdEnd;
    assert.equal(upstream.seen.length, 2);
    assert.deepEqual((await calls()).map((call) => [call.status, call.attempts]).sort(), [
      ["cancelled", 0],
      ["succeeded", 1],
      ["succeeded", 1],
    ]);
  });
});
