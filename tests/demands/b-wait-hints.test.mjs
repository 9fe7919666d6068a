/** Wait hints: kept, never shortened, never slept through, and read with suspicion. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rig, timed } from "../clients/rig.mjs";
import { openai } from "../upstream/bodies.mjs";

const SIXTEEN_DAYS_S = 16 * 24 * 3600;
/** Backoff without chance, so that a gap can be told from a hint. */
const STEADY = { retry: { baseMs: 60, capMs: 60, jitter: "none" } };

function gaps(/** @type {import("../upstream/upstream.mjs").Upstream} */ upstream) {
  return upstream.seen.slice(1).map((seen, i) => seen.at - Number(upstream.seen[i]?.endAt));
}

describe("B2 a wait that doesn't fit isn't begun", { concurrency: true }, () => {
  it("B2 sixteen days: the call fails at once, with the time in the answer and on the ledger", async (t) => {
    const { chat, upstream, attempts, calls } = await rig(t, () =>
      openai.rateLimited({ "retry-after": String(SIXTEEN_DAYS_S) }),
    );
    const { value: response, ms } = await timed(() => chat());
    assert.ok(ms < 1500, `${ms} ms`);
    assert.equal(upstream.seen.length, 1);
    assert.deepEqual(
      [response.status, response.headers.get("retry-after"), response.headers.get("x-should-retry")],
      [429, String(SIXTEEN_DAYS_S), "false"],
    );
    assert.equal(response.headers.get("x-evenkeel-class"), "rate_limited");
    assert.ok(response.headers.get("x-evenkeel-reason"));
    const [attempt] = await attempts();
    assert.deepEqual([attempt.retry_after_ms, attempt.decision], [SIXTEEN_DAYS_S * 1000, "return"]);
    assert.equal((await calls())[0].status, "failed");
  });

  it("B2 longer than maxWaitMs, though the deadline would allow it", async (t) => {
    const { chat, upstream } = await rig(t, () => openai.rateLimited({ "retry-after": "2" }), {
      retry: { maxWaitMs: 1000 },
    });
    const { value: response, ms } = await timed(() => chat());
    assert.equal(response.status, 429);
    assert.equal(upstream.seen.length, 1);
    assert.ok(ms < 1500, `${ms} ms`);
  });

  it("B2 longer than the deadline, though maxWaitMs would allow it", async (t) => {
    const { chat, upstream } = await rig(t, () => openai.rateLimited({ "retry-after": "3" }), {
      timeouts: { totalMs: 2000 },
    });
    const { value: response, ms } = await timed(() => chat());
    assert.equal(response.status, 429);
    assert.equal(upstream.seen.length, 1);
    assert.ok(ms < 1500, `${ms} ms`);
  });
});

describe("B3 a malformed hint is no hint", { concurrency: true }, () => {
  for (const value of ["Wed, 99 Foo 2026 07:28:00 GMT", "soon", "NaN", "1e999", "0x10", "١٢", "1;2", "Infinity"]) {
    it(`B3 ${value}: the ordinary backoff, not a tight loop`, async (t) => {
      // Bytes above 127 go over the wire as UTF-8, as a careless server would send them.
      const header = Buffer.from(value, "utf8").toString("latin1");
      const { chat, upstream, attempts } = await rig(t, () => openai.rateLimited({ "retry-after": header }), STEADY);
      assert.equal((await chat()).status, 429);
      assert.equal(upstream.seen.length, 3);
      for (const gap of gaps(upstream)) assert.ok(gap >= 55, `a gap of ${gap} ms`);
      assert.deepEqual(
        (await attempts()).map((attempt) => attempt.retry_after_ms),
        [null, null, null],
      );
    });
  }
});

describe("B4 a hint that points backwards", { concurrency: true }, () => {
  for (const value of ["-5", "-0.5", "-86400"]) {
    it(`B4 ${value} is never a date in 2001, and never a loop`, async (t) => {
      const { chat, upstream, attempts } = await rig(t, () => openai.rateLimited({ "retry-after": value }), STEADY);
      const { value: response, ms } = await timed(() => chat());
      assert.equal(response.status, 429);
      assert.equal(upstream.seen.length, 3);
      assert.ok(ms < 3000, `${ms} ms`);
      for (const attempt of await attempts())
        assert.ok(attempt.retry_after_ms === null || attempt.retry_after_ms === 0);
    });
  }

  it("B4 a date in the past means now", async (t) => {
    const past = new Date(Date.now() - 3_600_000).toUTCString();
    const { chat, upstream, attempts } = await rig(t, [
      openai.rateLimited({ "retry-after": past }),
      openai.chat("fine"),
    ]);
    const { value: response, ms } = await timed(() => chat());
    assert.equal(response.status, 200);
    assert.ok(ms < 2000, `${ms} ms`);
    assert.equal(upstream.seen.length, 2);
    assert.equal((await attempts())[0].retry_after_ms, 0);
  });

  it("B4 a date ahead is waited for", async (t) => {
    const ahead = new Date(Date.now() + 2000).toUTCString(); // whole seconds: 1 to 2 s from now
    const { chat, upstream } = await rig(t, [openai.rateLimited({ "retry-after": ahead }), openai.chat("fine")]);
    assert.equal((await chat()).status, 200);
    assert.equal(upstream.seen.length, 2);
    assert.ok((gaps(upstream)[0] ?? 0) >= 950, `a gap of ${gaps(upstream)[0]} ms`);
  });
});

describe("B9 whoever is refused learns until when", () => {
  it("B9 the upstream's own hint reaches the caller untouched", async (t) => {
    const hints = {
      "retry-after": "90",
      "retry-after-ms": "90000",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "1m30s",
    };
    const { chat } = await rig(t, () => openai.rateLimited(hints));
    const response = await chat();
    for (const [name, value] of Object.entries(hints)) assert.equal(response.headers.get(name), value);
  });

  it("B9 a refusal of keel's own carries retry-after", async (t) => {
    const { openai: sdk, upstream } = await rig(t, () => openai.serverError(), {
      retry: { maxAttempts: 1 },
      breaker: { consecutiveFailures: 3, cooldownMs: 20_000 },
    });
    const ask = () => sdk().chat.completions.create({ model: "gpt-5", messages: [{ role: "user", content: "hello" }] });
    for (let i = 0; i < 3; i++) await assert.rejects(ask(), { status: 500 });
    const { error } = await timed(ask);
    assert.equal(upstream.seen.length, 3, "the breaker is open");
    assert.equal(error.status, 503);
    const seconds = Number(error.headers.get("retry-after"));
    assert.ok(seconds >= 15 && seconds <= 21, `retry-after: ${error.headers.get("retry-after")}`);
    assert.equal(error.headers.get("x-should-retry"), "false");
  });
});
