/** The real OpenAI SDK, with its own defaults, over `keel.fetch`. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import OpenAI from "openai";
import { bytesOf, openai } from "../upstream/bodies.mjs";
import { refusedUrl } from "../upstream/upstream.mjs";
import { API_KEY, rig, timed } from "./rig.mjs";

const TEXT = "Keep the keel even, whatever the wind does.";
const ASK = { model: "gpt-5", messages: [{ role: /** @type {const} */ ("user"), content: "What does a keel do?" }] };

async function textOf(/** @type {AsyncIterable<any>} */ stream) {
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  return text;
}

describe("the OpenAI SDK over keel.fetch", { concurrency: true }, () => {
  it("gets a completion as it came, with one attempt and one call on the ledger", async (t) => {
    const { upstream, openai: sdk, attempts, calls } = await rig(t, [openai.chat(TEXT)]);
    const { data, response } = await sdk()
      .chat.completions.create({ ...ASK, max_tokens: 64 })
      .withResponse();
    assert.equal(data.choices[0]?.message.content, TEXT);
    assert.equal(response.headers.get("x-request-id"), "req_0000000000000001");
    assert.equal(response.url, `${upstream.url}/v1/chat/completions`);
    const [attempt, ...moreAttempts] = await attempts();
    assert.deepEqual(moreAttempts, []);
    assert.deepEqual(
      [attempt.model, attempt.status, attempt.http_status, attempt.delivery, attempt.error_class, attempt.attempt_no],
      ["gpt-5", "succeeded", 200, "answered", null, 1],
    );
    assert.equal(attempt.provider_request_id, "req_0000000000000001");
    assert.equal(attempt.max_output_tokens, 64);
    const [call, ...moreCalls] = await calls();
    assert.deepEqual(moreCalls, []);
    assert.deepEqual(
      [call.status, call.attempts, call.logical_request_id],
      ["succeeded", 1, attempt.logical_request_id],
    );
  });

  it("gets a stream as it came", async (t) => {
    const { openai: sdk, attempts, calls } = await rig(t, [openai.chatStream(TEXT, { usage: true })]);
    assert.equal(await textOf(await sdk().chat.completions.create({ ...ASK, stream: true })), TEXT);
    assert.equal((await attempts()).length, 1);
    assert.deepEqual(
      (await calls()).map((call) => call.status),
      ["succeeded"],
    );
  });

  it("passes a stream through byte for byte, however it is cut", async (t) => {
    const step = openai.chatStream(TEXT);
    const { chat } = await rig(t, [{ ...step, body: step.body.join(""), drip: { bytes: 7, everyMs: 0 } }]);
    const response = await chat({ body: JSON.stringify({ ...ASK, stream: true }) });
    assert.equal(await response.text(), step.body.join(""));
    assert.match(response.headers.get("content-type") ?? "", /text\/event-stream/);
  });

  it("gets the Responses API, whole and streamed", async (t) => {
    const { openai: sdk } = await rig(t, (/** @type {any} */ request) =>
      request.json.stream ? openai.responseStream(TEXT) : openai.response(TEXT),
    );
    assert.equal((await sdk().responses.create({ model: "gpt-5", input: "hello" })).output_text, TEXT);
    let text = "";
    for await (const event of await sdk().responses.create({ model: "gpt-5", input: "hello", stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    assert.equal(text, TEXT);
  });

  it("makes requests without a body", async (t) => {
    const { openai: sdk, upstream } = await rig(t, [
      openai.overloaded(),
      { json: { object: "list", data: [{ id: "gpt-5", object: "model" }] } },
    ]);
    assert.deepEqual(
      (await sdk().models.list()).data.map((model) => model.id),
      ["gpt-5"],
    );
    assert.deepEqual(
      upstream.seen.map((seen) => [seen.method, seen.path]),
      [
        ["GET", "/v1/models"],
        ["GET", "/v1/models"],
      ],
    );
  });

  it("is spared an overload, without retrying itself", async (t) => {
    const {
      openai: sdk,
      upstream,
      attempts,
    } = await rig(t, [openai.overloaded(), openai.serverError(), openai.chat(TEXT)]);
    assert.equal((await sdk().chat.completions.create(ASK)).choices[0]?.message.content, TEXT);
    assert.deepEqual(
      upstream.seen.map((seen) => seen.headers["x-stainless-retry-count"]),
      ["0", "0", "0"],
    );
    assert.deepEqual(
      upstream.seen.map((seen) => seen.body),
      Array(3).fill(upstream.seen[0]?.body),
    );
    assert.deepEqual(
      (await attempts()).map((attempt) => attempt.error_class),
      ["overloaded", "server_error", null],
    );
    assert.deepEqual(
      (await attempts()).map((attempt) => attempt.decision),
      ["retry", "retry", "return"],
    );
  });

  it("is spared an overload before a stream", async (t) => {
    const { openai: sdk, upstream } = await rig(t, [openai.overloaded(), openai.chatStream(TEXT)]);
    assert.equal(await textOf(await sdk().chat.completions.create({ ...ASK, stream: true })), TEXT);
    assert.equal(upstream.seen.length, 2);
  });

  it("sees three requests in an outage, not nine, and gets the upstream's own error", async (t) => {
    const { openai: sdk, upstream, attempts, calls } = await rig(t, () => openai.overloaded());
    const { error } = await timed(() => sdk().chat.completions.create(ASK));
    assert.ok(error instanceof OpenAI.InternalServerError);
    assert.deepEqual([error.status, error.code], [503, "server_is_overloaded"]);
    assert.match(error.message, /currently overloaded/);
    assert.equal(upstream.seen.length, 3);
    assert.equal(error.headers?.get("x-should-retry"), "false");
    assert.equal(error.headers?.get("x-evenkeel-attempts"), "3");
    assert.equal(error.headers?.get("x-evenkeel-class"), "overloaded");
    assert.equal(error.headers?.get("x-evenkeel-logical-request-id"), (await calls())[0].logical_request_id);
    assert.equal((await attempts()).length, 3);
  });

  it("sees no more in an outage when it may retry five times", async (t) => {
    const { openai: sdk, upstream } = await rig(t, () => openai.serverError());
    await assert.rejects(sdk({ maxRetries: 5 }).chat.completions.create(ASK), { status: 500 });
    assert.equal(upstream.seen.length, 3);
  });

  it("gets a rate limit's end waited for, and not a millisecond less", async (t) => {
    const {
      openai: sdk,
      upstream,
      attempts,
    } = await rig(t, [openai.rateLimited({ "retry-after-ms": "300", "retry-after": "7" }), openai.chat(TEXT)]);
    await sdk().chat.completions.create(ASK);
    const [first, second] = upstream.seen;
    assert.ok(first && second && second.at - Number(first.endAt) >= 295, `${second?.at} - ${first?.endAt}`);
    assert.deepEqual(
      (await attempts()).map((attempt) => attempt.retry_after_ms),
      [300, null],
    );
  });

  for (const [name, step, status, code, errorClass] of /** @type {const} */ ([
    ["an empty account", openai.billing(), 429, "insufficient_quota", "quota_exhausted"],
    ["a wrong key", openai.badKey(), 401, "invalid_api_key", "auth_error"],
    ["a bad request", openai.badRequest(), 400, "decimal_above_max_value", "bad_request"],
    ["an unknown model", openai.modelNotFound(), 404, "model_not_found", "not_found"],
    ["too long a prompt", openai.contextTooLong(), 400, "context_length_exceeded", "request_too_large"],
  ])) {
    it(`is told of ${name} at once, by one request`, async (t) => {
      const { openai: sdk, upstream, attempts } = await rig(t, () => step);
      const { error } = await timed(() => sdk().chat.completions.create(ASK));
      assert.deepEqual([error.status, error.code], [status, code]);
      assert.equal(upstream.seen.length, 1);
      assert.deepEqual(
        (await attempts()).map((attempt) => attempt.error_class),
        [errorClass],
      );
    });
  }

  for (const [name, trouble] of /** @type {const} */ ([
    ["reset in its middle", { resetAtByte: 100 }],
    ["reset after its head", { resetAtByte: 0 }],
    ["shorter than its content-length", { endAtByte: 100 }],
    ["chunked and without its last chunk", { chunked: true, endAtByte: 100 }],
    ["JSON that stops in the middle", { json: undefined, body: JSON.stringify(openai.chat(TEXT).json).slice(0, 150) }],
    ["silent after its first bytes", { hang: 100 }],
    ["dripping past the attempt's limit", { drip: { bytes: 4, everyMs: 20 } }],
  ])) {
    it(`never sees a body that is ${name}`, async (t) => {
      const { openai: sdk, upstream } = await rig(t, [{ ...openai.chat(TEXT), ...trouble }, openai.chat(TEXT)], {
        timeouts: { attemptMs: 600 },
      });
      assert.equal((await sdk().chat.completions.create(ASK)).choices[0]?.message.content, TEXT);
      assert.equal(upstream.seen.length, 2);
    });
  }

  it("gets an answer that it obeys when nobody could be reached", async (t) => {
    const { openai: sdk, attempts } = await rig(t, []);
    const { error } = await timed(async () =>
      sdk({ baseURL: `${await refusedUrl()}/v1` }).chat.completions.create(ASK),
    );
    assert.equal(error.status, 503);
    assert.equal(error.headers.get("x-should-retry"), "false");
    assert.equal(error.headers.get("x-evenkeel-synthesized"), "connection_error");
    assert.equal((await attempts()).length, 3);
    assert.deepEqual(
      (await attempts()).map((attempt) => attempt.delivery),
      ["not_sent", "not_sent", "not_sent"],
    );
  });

  it("gets a 504 that it obeys when the time is over", async (t) => {
    const { openai: sdk, upstream } = await rig(t, () => ({ hang: "head" }), { timeouts: { totalMs: 800 } });
    const { error, ms } = await timed(() => sdk().chat.completions.create(ASK));
    assert.equal(error.status, 504);
    assert.equal(error.headers.get("x-evenkeel-synthesized"), "timeout");
    assert.ok(ms >= 790 && ms < 4000, `${ms} ms`);
    assert.equal(upstream.seen.length, 1);
  });

  it("can abort while the answer is awaited, and the upstream notices", async (t) => {
    const { openai: sdk, upstream, attempts, calls } = await rig(t, () => ({ hang: "head" }));
    const controller = new AbortController();
    const pending = assert.rejects(
      sdk().chat.completions.create(ASK, { signal: controller.signal }),
      OpenAI.APIUserAbortError,
    );
    await upstream.waitForRequests(1);
    controller.abort();
    await pending;
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true);
    assert.equal(upstream.seen.length, 1);
    assert.deepEqual(
      (await attempts()).map((attempt) => [attempt.status, attempt.error_class]),
      [["cancelled", "cancelled"]],
    );
    assert.deepEqual(
      (await calls()).map((call) => call.status),
      ["cancelled"],
    );
  });

  it("can break off a stream, and the upstream notices", async (t) => {
    const step = openai.chatStream(TEXT);
    const {
      openai: sdk,
      upstream,
      calls,
    } = await rig(t, [{ ...step, body: [...step.body.slice(0, 4), 60_000, ...step.body.slice(4)] }]);
    for await (const chunk of await sdk().chat.completions.create({ ...ASK, stream: true })) {
      if (chunk.choices[0]?.delta.content) break;
    }
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true);
    assert.equal(upstream.seen.length, 1);
    assert.deepEqual(
      (await calls()).map((call) => call.status),
      ["cancelled"],
    );
  });

  it("gets no second try for a stream that broke after its first words", async (t) => {
    const step = openai.chatStream(TEXT);
    const { openai: sdk, upstream, calls } = await rig(t, [{ ...step, resetAtByte: bytesOf(step.body, 4) }, step]);
    let text = "";
    await assert.rejects(async () => {
      for await (const chunk of await sdk().chat.completions.create({ ...ASK, stream: true }))
        text += chunk.choices[0]?.delta?.content ?? "";
    });
    assert.equal(text, "Keep the keel");
    assert.equal(upstream.seen.length, 1);
    assert.deepEqual(
      (await calls()).map((call) => [call.status, call.error_class]),
      [["failed", "stream_interrupted"]],
    );
  });

  it("may set a timeout under a second, which its header rounds to nothing", async (t) => {
    const { openai: sdk, upstream } = await rig(t, [openai.chat(TEXT)]);
    await sdk().chat.completions.create(ASK, { timeout: 900 });
    assert.equal(upstream.seen[0]?.headers["x-stainless-timeout"], "0");
  });

  it("doesn't multiply its own timeouts with keel's retries", async (t) => {
    const { openai: sdk, upstream, calls } = await rig(t, () => ({ hang: "head" }));
    const { error, ms } = await timed(() => sdk().chat.completions.create(ASK, { timeout: 1000 }));
    assert.ok(error);
    assert.ok(upstream.seen.length <= 3, `${upstream.seen.length} requests`);
    assert.ok(ms < 6000, `${ms} ms`);
    assert.equal(new Set((await calls()).map((call) => call.logical_request_id)).size, 1);
  });

  it("uploads a file again as it was", async (t) => {
    const { openai: sdk, upstream } = await rig(t, [openai.overloaded(), { json: { id: "file-1", object: "file" } }]);
    const file = new File(['{"a":1}\n'.repeat(1000)], "batch.jsonl");
    assert.equal((await sdk().files.create({ file, purpose: "batch" })).id, "file-1");
    assert.equal(upstream.seen.length, 2);
    for (const seen of upstream.seen) {
      assert.ok(seen.body.includes('{"a":1}\n'.repeat(1000)));
      assert.match(seen.headers["content-type"] ?? "", /^multipart\/form-data; boundary=/);
    }
  });

  it("serves fifty calls side by side, each with its own answer", async (t) => {
    const failed = new Set();
    const { openai: sdk, calls } = await rig(
      t,
      (/** @type {any} */ request) => {
        const prompt = request.json.messages[0].content;
        if (failed.has(prompt)) return { ...openai.chat(prompt), delayHeadMs: 5 };
        failed.add(prompt);
        return openai.overloaded();
      },
      { retry: { budget: false }, breaker: false, concurrency: false },
    );
    const client = sdk();
    const prompts = Array.from({ length: 50 }, (_, i) => `question ${i}`);
    const answers = await Promise.all(
      prompts.map((content) =>
        client.chat.completions.create({ model: "gpt-5", messages: [{ role: "user", content }] }),
      ),
    );
    assert.deepEqual(
      answers.map((answer) => answer.choices[0]?.message.content),
      prompts,
    );
    assert.deepEqual(new Set((await calls()).map((call) => call.attempts)), new Set([2]));
  });

  it("sends the key to the upstream, and nowhere else", async (t) => {
    const { openai: sdk, upstream, records, keel } = await rig(t, [openai.badKey()]);
    await assert.rejects(sdk().chat.completions.create(ASK));
    await keel.flush();
    assert.equal(upstream.seen[0]?.headers["authorization"], `Bearer ***${API_KEY.slice(-4)}`);
    assert.ok(!JSON.stringify(records).includes(API_KEY));
  });
});
