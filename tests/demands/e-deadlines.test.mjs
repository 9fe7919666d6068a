/** Timeouts, deadlines and aborts: a deadline is an instant, and everything ends by it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { KeelError } from "evenkeel";
import { rig, timed } from "../clients/rig.mjs";
import { openai } from "../upstream/bodies.mjs";

describe("E2 one way out of every sleep", { concurrency: true }, () => {
  it("E2 an abort within a wait rejects at once, with the caller's own reason", async (t) => {
    const { chat, upstream, attempts, calls } = await rig(t, () => openai.rateLimited({ "retry-after": "20" }));
    const controller = new AbortController();
    const reason = new Error("the user went home");
    const pending = timed(() => chat({ signal: controller.signal }));
    await upstream.waitUntil(() => upstream.seen[0]?.completed === true);
    setTimeout(() => controller.abort(reason), 60);
    const { error, ms } = await pending;
    assert.equal(error, reason);
    assert.ok(ms < 3000, `${ms} ms`);
    assert.equal(upstream.seen.length, 1);
    assert.equal((await attempts())[0].status, "failed", "the attempt itself had failed before");
    assert.deepEqual(
      (await calls()).map((call) => [call.status, call.error_class]),
      [["cancelled", "cancelled"]],
    );
  });

  it("E2 an abort before the start sends nothing", async (t) => {
    const { chat, upstream } = await rig(t, [openai.chat("fine")]);
    const reason = new Error("never mind");
    await assert.rejects(chat({ signal: AbortSignal.abort(reason) }), (error) => error === reason);
    assert.equal(upstream.seen.length, 0);
  });

  it("E2 a caller's AbortSignal.timeout rejects with its TimeoutError", async (t) => {
    const { chat } = await rig(t, () => ({ hang: "head" }));
    await assert.rejects(chat({ signal: AbortSignal.timeout(80) }), { name: "TimeoutError" });
  });

  it("E2 an abort within a body ends the upstream's work", async (t) => {
    const { chat, upstream } = await rig(t, () => ({ ...openai.chat("fine"), hang: 50 }));
    const controller = new AbortController();
    const pending = assert.rejects(chat({ signal: controller.signal }), { name: "AbortError" });
    await upstream.waitUntil(() => upstream.seen[0]?.headAt != null);
    controller.abort();
    await pending;
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true);
  });
});

describe("E3 a total deadline over all attempts", { concurrency: true }, () => {
  it("E3 ten silent attempts end by the deadline", async (t) => {
    const { chat, upstream } = await rig(t, () => ({ hang: "head" }), {
      retry: { maxAttempts: 10, budget: false },
      timeouts: { totalMs: 1500, attemptMs: 250 },
    });
    const { error, ms } = await timed(() => chat());
    assert.ok(error instanceof KeelError);
    assert.equal(error.class, "timeout");
    assert.ok(ms <= 8000, `${ms} ms`);
    assert.ok(upstream.seen.length >= 2 && upstream.seen.length <= 6, `${upstream.seen.length} requests`);
  });

  it("E3 an overload that lasts ends by the deadline too", async (t) => {
    const { chat } = await rig(t, () => openai.overloaded(), {
      retry: { maxAttempts: 20, baseMs: 50, capMs: 50, budget: false },
      timeouts: { totalMs: 400 },
      breaker: false,
      concurrency: false,
    });
    const { value: response, ms } = await timed(() => chat());
    assert.equal(response.status, 503);
    assert.ok(ms <= 8000, `${ms} ms`);
  });
});

describe("E4 a deadline bounds the attempt that is under way", { concurrency: true }, () => {
  it("E4 300 ms against a server that answers after ten seconds", async (t) => {
    const { chat, upstream, attempts } = await rig(t, () => ({ ...openai.chat("late"), delayHeadMs: 10_000 }), {
      timeouts: { totalMs: 300 },
    });
    const { error, ms } = await timed(() => chat());
    assert.ok(error instanceof KeelError);
    assert.deepEqual([error.class, error.retryable], ["timeout", true]);
    assert.ok(ms >= 290 && ms <= 8000, `${ms} ms`);
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true);
    assert.deepEqual(
      (await attempts()).map((attempt) => [attempt.status, attempt.error_class, attempt.delivery]),
      [["failed", "timeout", "maybe_sent"]],
    );
  });

  it("E4 the same by deadlineMs of one call", async (t) => {
    const { chat, keel } = await rig(t, () => ({ ...openai.chat("late"), delayHeadMs: 10_000 }));
    const { error, ms } = await timed(() => chat({ fetch: keel.with({ deadlineMs: 300 }).fetch }));
    assert.ok(error instanceof KeelError);
    assert.ok(ms >= 290 && ms <= 8000, `${ms} ms`);
  });

  it("E4 the second attempt gets what the first has left", async (t) => {
    const { chat, upstream } = await rig(t, () => ({ hang: "head" }), { timeouts: { totalMs: 3000, attemptMs: 1800 } });
    const { ms } = await timed(() => chat());
    assert.equal(upstream.seen.length, 2);
    assert.ok(ms <= 8000, `${ms} ms`);
  });

  it("E4 a body that drips doesn't outlive it", async (t) => {
    const { chat } = await rig(
      t,
      () => ({ ...openai.chat("a long answer ".repeat(50)), drip: { bytes: 2, everyMs: 20 } }),
      { timeouts: { totalMs: 300 } },
    );
    const { error, ms } = await timed(() => chat());
    assert.ok(error instanceof KeelError);
    assert.ok(ms >= 290 && ms <= 8000, `${ms} ms`);
  });

  it("E4 a wait that would leave no time isn't begun", async (t) => {
    const { chat, attempts } = await rig(t, () => openai.rateLimited({ "retry-after-ms": "900" }), {
      timeouts: { totalMs: 1000, minAttemptMs: 500 },
    });
    const { value: response, ms } = await timed(() => chat());
    assert.equal(response.status, 429);
    assert.ok(ms < 5000, `${ms} ms`);
    assert.equal((await attempts())[0].reason, "not_enough_time_budget");
    assert.equal(response.headers.get("x-evenkeel-reason"), "not_enough_time_budget");
  });
});

describe("E5 an attempt's time is not the call's", () => {
  it("E5 all four attempts run, each with its own limit", async (t) => {
    const { chat, upstream, attempts } = await rig(t, () => ({ hang: "head" }), {
      retry: { maxAttempts: 4, budget: false },
      timeouts: { attemptMs: 80, totalMs: 20_000 },
    });
    await assert.rejects(chat(), KeelError);
    assert.equal(upstream.seen.length, 4);
    for (const attempt of await attempts())
      assert.ok(attempt.latency_ms >= 75 && attempt.latency_ms < 10_000, `${attempt.latency_ms} ms`);
  });
});

describe("E6 waiting and working are told apart", () => {
  it("E6 the ledger counts queue, attempts, backoff and the whole", async (t) => {
    const { chat, attempts, calls } = await rig(t, [
      { ...openai.rateLimited({ "retry-after-ms": "600" }), delayHeadMs: 60 },
      { ...openai.chat("fine"), delayHeadMs: 60 },
    ]);
    await chat();
    const [first, second] = await attempts();
    const [call] = await calls();
    for (const attempt of [first, second]) {
      assert.ok(attempt.latency_ms >= 55 && attempt.latency_ms < 10_000, `an attempt of ${attempt.latency_ms} ms`);
      assert.ok(
        attempt.first_byte_ms >= 55 && attempt.first_byte_ms <= attempt.latency_ms,
        `first byte after ${attempt.first_byte_ms} ms`,
      );
      assert.equal(attempt.queue_ms, 0);
    }
    assert.ok(first.backoff_ms >= 600, `${first.backoff_ms} ms of backoff`);
    assert.ok(
      call.latency_ms >= first.latency_ms + first.backoff_ms + second.latency_ms - 20,
      `${call.latency_ms} ms in all`,
    );
  });
});

describe("E7 nobody has to guess which limit it was", { concurrency: true }, () => {
  for (const [name, timeouts, step, reason] of /** @type {const} */ ([
    ["the first byte", { firstByteMs: 80 }, { hang: "head" }, /first_byte/],
    ["the attempt", { attemptMs: 80 }, { ...openai.chat("x"), hang: 20 }, /attempt/],
    ["the total", { totalMs: 80 }, { hang: "head" }, /deadline|total|time_budget/],
  ])) {
    it(`E7 ${name}: in the reason, and in words that a person understands`, async (t) => {
      const { chat, attempts } = await rig(t, () => step, { timeouts, retry: { maxAttempts: 2 } });
      const { error } = await timed(() => chat());
      assert.ok(error instanceof KeelError, String(error));
      assert.match((await attempts()).map((attempt) => attempt.reason).join(), reason);
      assert.match(error.message, /\d/, "how often or how long");
      assert.ok(error.message.length > 30, error.message);
    });
  }
});

describe("E8 a silent route isn't asked for ever", { concurrency: true }, () => {
  it("E8 the only route there is gets its allowed attempts, each bounded, and no more", async (t) => {
    const { chat, upstream, attempts } = await rig(t, () => ({ hang: "head" }), { timeouts: { firstByteMs: 80 } });
    const { error, ms } = await timed(() => chat());
    assert.ok(error instanceof KeelError);
    assert.ok(upstream.seen.length <= 3, `${upstream.seen.length} requests`);
    assert.ok(ms < 10_000, `${ms} ms`);
    for (const attempt of await attempts()) {
      assert.deepEqual([attempt.error_class, attempt.delivery], ["timeout", "maybe_sent"]);
      assert.match(`${attempt.reason} ${attempt.rule}`, /first_byte/);
    }
    assert.equal(error.attempts.length, upstream.seen.length);
  });

  it("E8 not once more where ambiguous outcomes may not be retried", async (t) => {
    const { chat, upstream } = await rig(t, () => ({ hang: "head" }), {
      timeouts: { firstByteMs: 80 },
      retry: { ambiguous: "never" },
    });
    await assert.rejects(chat(), KeelError);
    assert.equal(upstream.seen.length, 1);
  });
});
