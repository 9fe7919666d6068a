/** Retry storms: everything is counted, and nothing comes back in step. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rig } from "../clients/rig.mjs";
import { openai } from "../upstream/bodies.mjs";

describe("C2 every attempt is logged and counted", () => {
  it("C2 as many records as requests, numbered, with the number on the answer", async (t) => {
    const { chat, upstream, attempts, calls } = await rig(t, () => openai.overloaded());
    const response = await chat();
    const records = await attempts();
    const [call] = await calls();
    assert.equal(upstream.seen.length, 3);
    assert.deepEqual(
      records.map((record) => record.attempt_no),
      [1, 2, 3],
    );
    assert.equal(new Set(records.map((record) => record.attempt_id)).size, 3);
    assert.deepEqual(new Set(records.map((record) => record.logical_request_id)), new Set([call.logical_request_id]));
    assert.deepEqual([call.attempts, response.headers.get("x-evenkeel-attempts")], [3, "3"]);
    assert.deepEqual(
      records.map((record) => record.decision),
      ["retry", "retry", "return"],
    );
  });

  it("C2 an SDK above joins the same logical request, and the doubled layer is reported once", async (t) => {
    const { chat, upstream, calls, notices } = await rig(t, () => openai.overloaded());
    for (const count of ["0", "1", "2"])
      await chat({ headers: { "x-stainless-retry-count": count, "x-stainless-lang": "js" } });
    assert.equal(upstream.seen.length, 3, "the retries of the layer above draw on the same three attempts");
    assert.equal(new Set((await calls()).map((call) => call.logical_request_id)).size, 1);
    assert.equal((await notices()).filter((notice) => /layer|doubled/.test(notice.kind)).length, 1);
  });

  it("C2 the same words asked anew are a request of their own", async (t) => {
    const { chat, upstream, calls } = await rig(t, () => openai.badRequest());
    for (let i = 0; i < 3; i++) await chat({ headers: { "x-stainless-retry-count": "0", "x-stainless-lang": "js" } });
    assert.equal(upstream.seen.length, 3);
    assert.equal(new Set((await calls()).map((call) => call.logical_request_id)).size, 3);
  });
});

/** Fails the first request of each prompt. */
function firstFails() {
  const failed = new Set();
  return (/** @type {any} */ request) => {
    const prompt = request.json.messages[0].content;
    if (failed.has(prompt)) return openai.chat("fine");
    failed.add(prompt);
    return openai.overloaded();
  };
}

describe("C6 a fan-out doesn't come back in step", () => {
  it("C6 fifty calls that fail in one instant spread their retries", async (t) => {
    const { chat, attempts } = await rig(t, firstFails(), {
      retry: { baseMs: 400, capMs: 400, jitter: "full", budget: false },
      breaker: false,
      concurrency: false,
    });
    const responses = await Promise.all(Array.from({ length: 50 }, (_, i) => chat({ prompt: `call ${i}` })));
    assert.ok(responses.every((response) => response.status === 200));
    const waits = (await attempts())
      .filter((attempt) => attempt.decision === "retry")
      .map((attempt) => attempt.backoff_ms);
    assert.equal(waits.length, 50);
    assert.ok(new Set(waits).size >= 25, `only ${new Set(waits).size} different waits`);
    assert.ok(Math.max(...waits) - Math.min(...waits) >= 150, `from ${Math.min(...waits)} to ${Math.max(...waits)} ms`);
  });

  it("C6 two instances draw different waits", async (t) => {
    const drawn = [];
    for (let i = 0; i < 2; i++) {
      const { chat, attempts } = await rig(t, firstFails(), {
        retry: { baseMs: 300, capMs: 300, budget: false },
        breaker: false,
        concurrency: false,
      });
      await Promise.all(Array.from({ length: 10 }, (_, n) => chat({ prompt: `call ${n}` })));
      drawn.push(
        (await attempts())
          .filter((attempt) => attempt.decision === "retry")
          .map((attempt) => attempt.backoff_ms)
          .join(),
      );
    }
    assert.notEqual(drawn[0], drawn[1]);
  });

  it("C6 a hint is kept by all, and jittered upwards", async (t) => {
    const failed = new Set();
    const { chat, upstream } = await rig(
      t,
      (/** @type {any} */ request) => {
        const prompt = request.json.messages[0].content;
        if (failed.has(prompt)) return openai.chat("fine");
        failed.add(prompt);
        return openai.rateLimited({ "retry-after-ms": "500" });
      },
      { retry: { budget: false }, breaker: false, concurrency: false },
    );
    await Promise.all(Array.from({ length: 20 }, (_, i) => chat({ prompt: `call ${i}` })));
    const first = new Map();
    for (const seen of upstream.seen) {
      const prompt = /** @type {any} */ (seen.json).messages[0].content;
      if (!first.has(prompt)) first.set(prompt, seen.endAt);
      else assert.ok(seen.at - first.get(prompt) >= 495, `${prompt} came back after ${seen.at - first.get(prompt)} ms`);
    }
  });

  it("C6 retries stay a share of the calls when the upstream is down", async (t) => {
    const { chat, upstream, attempts } = await rig(t, () => openai.overloaded(), {
      retry: { budget: { ratio: 0.2, minPerSecond: 1 } },
      breaker: false,
      concurrency: false,
    });
    for (let batch = 0; batch < 10; batch++) {
      await Promise.all(Array.from({ length: 20 }, (_, i) => chat({ prompt: `call ${batch}.${i}` })));
    }
    const retries = upstream.seen.length - 200;
    assert.ok(retries >= 1, "some retries are allowed");
    assert.ok(retries <= 200 * 0.2 + 60, `${retries} retries for 200 calls`);
    assert.ok(
      (await attempts()).some((attempt) => /budget/.test(attempt.reason)),
      "the ledger says why",
    );
  });
});
