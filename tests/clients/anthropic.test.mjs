/** The real Anthropic SDK, with its own defaults, over `keel.fetch`. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { anthropic } from "../upstream/bodies.mjs";
import { refusedUrl } from "../upstream/upstream.mjs";
import { rig, timed } from "./rig.mjs";

const TEXT = "Keep the keel even, whatever the wind does.";
const ASK = {
  model: "claude-sonnet-5-5",
  max_tokens: 64,
  messages: [{ role: /** @type {const} */ ("user"), content: "What does a keel do?" }],
};
const textOf = (/** @type {any} */ message) => message.content[0]?.text;

describe("the Anthropic SDK over keel.fetch", { concurrency: true }, () => {
  it("gets a message as it came, with one attempt and one call on the ledger", async (t) => {
    const { anthropic: sdk, attempts, calls } = await rig(t, [anthropic.message(TEXT)]);
    const { data, response } = await sdk().messages.create(ASK).withResponse();
    assert.equal(textOf(data), TEXT);
    assert.equal(response.headers.get("request-id"), "req_011EXAMPLE000000000001");
    const [attempt] = await attempts();
    assert.deepEqual(
      [attempt.model, attempt.status, attempt.http_status, attempt.max_output_tokens, attempt.provider_request_id],
      ["claude-sonnet-5-5", "succeeded", 200, 64, "req_011EXAMPLE000000000001"],
    );
    assert.deepEqual(
      (await calls()).map((call) => [call.status, call.attempts]),
      [["succeeded", 1]],
    );
  });

  it("gets a stream, by events and by its helper", async (t) => {
    const { anthropic: sdk, upstream } = await rig(t, () => anthropic.messageStream(TEXT));
    let text = "";
    for await (const event of await sdk().messages.create({ ...ASK, stream: true })) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text;
    }
    assert.equal(text, TEXT);
    assert.equal(await sdk().messages.stream(ASK).finalText(), TEXT);
    assert.equal(upstream.seen.length, 2);
  });

  it("is spared an overload, whole and streamed", async (t) => {
    const { anthropic: sdk, upstream } = await rig(t, [
      anthropic.overloaded(),
      anthropic.message(TEXT),
      anthropic.overloaded(),
      anthropic.messageStream(TEXT),
    ]);
    assert.equal(textOf(await sdk().messages.create(ASK)), TEXT);
    assert.equal(await sdk().messages.stream(ASK).finalText(), TEXT);
    assert.deepEqual(
      upstream.seen.map((seen) => seen.headers["x-stainless-retry-count"]),
      ["0", "0", "0", "0"],
    );
  });

  it("sees three requests in an outage, not nine, and gets the upstream's own error", async (t) => {
    const { anthropic: sdk, upstream, attempts } = await rig(t, () => anthropic.overloaded());
    const { error } = await timed(() => sdk().messages.create(ASK));
    assert.ok(error instanceof Anthropic.APIError);
    assert.equal(error.status, 529);
    assert.equal(error.headers?.get("x-should-retry"), "false");
    assert.equal(upstream.seen.length, 3);
    assert.deepEqual(
      (await attempts()).map((attempt) => attempt.error_class),
      ["overloaded", "overloaded", "overloaded"],
    );
  });

  it("sees the upstream's wish to be retried taken back after the last failure", async (t) => {
    const { anthropic: sdk, upstream } = await rig(t, () =>
      anthropic.rateLimited({ "retry-after-ms": "20", "x-should-retry": "true" }),
    );
    const { error } = await timed(() => sdk().messages.create(ASK));
    assert.ok(error instanceof Anthropic.RateLimitError);
    assert.equal(error.headers?.get("x-should-retry"), "false");
    assert.equal(upstream.seen.length, 3);
  });

  for (const [name, step, status, errorClass] of /** @type {const} */ ([
    ["a spend limit, though it comes as a 429", anthropic.spendLimit(), 429, "quota_exhausted"],
    ["an empty account, though it comes as a 400", anthropic.billing(), 400, "quota_exhausted"],
    ["a wrong key", anthropic.badKey(), 401, "auth_error"],
    ["a bad request", anthropic.badRequest(), 400, "bad_request"],
    ["too long a prompt", anthropic.promptTooLong(), 400, "request_too_large"],
  ])) {
    it(`is told of ${name} at once, by one request`, async (t) => {
      const { anthropic: sdk, upstream, attempts } = await rig(t, () => step);
      const { error } = await timed(() => sdk().messages.create(ASK));
      assert.equal(error.status, status);
      assert.match(error.message, new RegExp(/** @type {any} */ (step.json).error.message.slice(0, 20)));
      assert.equal(upstream.seen.length, 1);
      assert.deepEqual(
        (await attempts()).map((attempt) => attempt.error_class),
        [errorClass],
      );
    });
  }

  for (const [name, trouble] of /** @type {const} */ ([
    ["reset in its middle", { resetAtByte: 100 }],
    ["shorter than its content-length", { endAtByte: 100 }],
    ["silent after its first bytes, which the SDK alone would wait for without end", { hang: 100 }],
  ])) {
    it(`never sees a body that is ${name}`, async (t) => {
      const { anthropic: sdk, upstream } = await rig(
        t,
        [{ ...anthropic.message(TEXT), ...trouble }, anthropic.message(TEXT)],
        { timeouts: { attemptMs: 600 } },
      );
      assert.equal(textOf(await sdk().messages.create(ASK)), TEXT);
      assert.equal(upstream.seen.length, 2);
    });
  }

  it("gets an answer in its provider's own form when nobody could be reached", async (t) => {
    const { anthropic: sdk, attempts } = await rig(t, []);
    const { error } = await timed(async () => sdk({ baseURL: await refusedUrl() }).messages.create(ASK));
    assert.ok(error instanceof Anthropic.APIError);
    assert.equal(error.status, 503);
    assert.deepEqual(
      [/** @type {any} */ (error.error).type, typeof (/** @type {any} */ (error.error).error.message)],
      ["error", "string"],
    );
    assert.equal((await attempts()).length, 3);
  });

  it("bounds the call by the timeout that the SDK states", async (t) => {
    const { anthropic: sdk, upstream, calls } = await rig(t, () => ({ hang: "head" }));
    const { error, ms } = await timed(() => sdk({ timeout: 1000 }).messages.create(ASK));
    assert.ok(error);
    assert.ok(ms < 6000, `${ms} ms`);
    assert.ok(upstream.seen.length <= 3, `${upstream.seen.length} requests`);
    assert.equal(new Set((await calls()).map((call) => call.logical_request_id)).size, 1);
  });

  it("can abort while a rate limit is waited for", async (t) => {
    const { anthropic: sdk, upstream, calls } = await rig(t, () => anthropic.rateLimited({ "retry-after": "30" }));
    const controller = new AbortController();
    const pending = timed(() => sdk().messages.create(ASK, { signal: controller.signal }));
    await upstream.waitUntil(() => upstream.seen[0]?.completed === true);
    setTimeout(() => controller.abort(), 50);
    const { error, ms } = await pending;
    assert.ok(error instanceof Anthropic.APIUserAbortError, String(error));
    assert.ok(ms < 3000, `${ms} ms`);
    assert.equal(upstream.seen.length, 1);
    assert.deepEqual(
      (await calls()).map((call) => call.status),
      ["cancelled"],
    );
  });
});
