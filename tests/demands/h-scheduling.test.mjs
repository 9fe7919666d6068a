/** Quotas and schedules: what one keel knows, and nobody else does. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel } from "evenkeel";
import { fakeClock, openai, scriptedUpstream } from "evenkeel/testing";

const CHAT = "https://api.openai.com/v1/chat/completions";
const headers = {
  "x-ratelimit-limit-tokens": "100",
  "x-ratelimit-remaining-tokens": "0",
  "x-ratelimit-reset-tokens": "9s",
};

/** Two keels with the same options before the same provider, as two isolates of one Worker are. */
function twins(script, options = {}) {
  const clock = fakeClock({ now: Date.UTC(2026, 10, 30, 8) });
  const upstream = scriptedUpstream(script, { clock });
  const pair = [1, 2].map((seed) => createKeel({ fetch: upstream.fetch, clock, seed, ...options }));
  const call = (keel) =>
    clock.run(() =>
      keel.fetch(CHAT, { method: "POST", body: '{"model":"gpt-5"}' }).then(
        (r) => r,
        (error) => error,
      ),
    );
  return { clock, upstream, pair, call };
}

describe("H6 the state of a keel is its own: per process, and per isolate", () => {
  it("H6 what one learned of a rate limit the other doesn't know", async () => {
    const { upstream, pair, call, clock } = twins([
      { ...openai.chat("one"), headers },
      openai.chat("two"),
      openai.chat("three"),
    ]);
    const [first, second] = pair;
    await call(first);
    const began = clock.now();
    await call(second);
    assert.equal(clock.now() - began, 0, "the other sends at once");
    await call(first);
    assert.ok(clock.now() - began >= 9_000, "the one waits for its own reset");
    assert.equal(upstream.seen.length, 3);
    assert.deepEqual(
      pair.map((keel) => keel.state().vendor[0].limits.length),
      [1, 0],
    );
  });

  it("H6 nor of an outage", async () => {
    const { pair, call } = twins(() => ({ status: 500, json: { error: { message: "no", type: "server_error" } } }), {
      breaker: { consecutiveFailures: 2 },
    });
    const [first, second] = pair;
    await call(first);
    assert.equal((await call(first)).reason, "breaker_open");
    const opened = (keel) => keel.state().breakers.filter((one) => one.state === "open").length;
    assert.ok(opened(first) > 0);
    assert.deepEqual([opened(second), second.state().permits.given, second.state().vendor], [0, 0, []]);
  });

  it("H6 nor do two keels in one process share a limit: each lets its own number out", async () => {
    const clock = fakeClock();
    const upstream = scriptedUpstream(() => ({ ...openai.chat("fine"), delayMs: 100 }), { clock });
    const make = () => createKeel({ fetch: upstream.fetch, clock, concurrency: { max: 2 } });
    const calls = [make(), make()].flatMap((keel) =>
      Array.from({ length: 4 }, () => keel.fetch(CHAT, { method: "POST", body: '{"model":"gpt-5"}' })),
    );
    await clock.advance(50);
    assert.equal(upstream.seen.length, 4, "two of each");
    await clock.run(() => Promise.all(calls));
    assert.equal(upstream.seen.length, 8);
  });

  it("H6 and it begins anew with each keel: what is not written down is gone", async () => {
    const { call, upstream } = twins(() => openai.chat("fine"));
    const options = { fetch: upstream.fetch, clock: fakeClock(), seed: 3 };
    const before = createKeel(options);
    await call(before);
    assert.equal(before.state().vendor.length, 1);
    assert.deepEqual(createKeel(options).state().vendor, []);
  });
});
