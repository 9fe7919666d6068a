// The contract's smaller members: budgets of a business request, limits of one provider, attempts over all targets.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel, KeelConfigError, KeelError } from "evenkeel";
import { fakeClock, scriptedUpstream } from "evenkeel/testing";

const OPENAI = "https://api.openai.com/v1/chat/completions";
const POST = { method: "POST", body: '{"model":"gpt-5"}' };

describe("budgets", () => {
  it("give the model call what earlier stages left over, and never what postprocessing needs", async () => {
    const clock = fakeClock();
    const keel = createKeel({ clock });
    const budget = keel.budget({ totalMs: 10_000, inputBuildMs: 2_000, postprocessMs: 1_000 });
    assert.equal(budget.deadlineOf("inputBuild") - budget.startedAt, 2_000);
    assert.equal(budget.leftMs("modelCall"), 9_000);
    await clock.advance(500);
    assert.equal(budget.leftMs("modelCall"), 8_500);
    await clock.advance(9_000);
    assert.equal(budget.leftMs("modelCall"), 0);
    assert.equal(budget.leftMs("postprocess"), 500);
  });

  it("bound each call made under them", async () => {
    const clock = fakeClock();
    const { fetch } = scriptedUpstream([{ hang: true }], { clock });
    const keel = createKeel({ clock, fetch });
    const budget = keel.budget({ totalMs: 5_000, postprocessMs: 1_000 });
    await clock.advance(1_000);
    const error = await clock.run(() =>
      keel
        .with({ budget, risk: "normal" })
        .fetch(OPENAI, POST)
        .then(assert.fail, (e) => e),
    );
    assert.ok(error instanceof KeelError);
    assert.equal(error.reason, "deadline_exceeded");
    assert.equal(clock.now() - budget.startedAt, 4_000);
  });

  it("that make no sense are refused", () => {
    const keel = createKeel();
    for (const [parts, path] of [
      [{}, "totalMs"],
      [{ totalMs: Number.NaN }, "totalMs"],
      [{ totalMs: 100, modelCallMs: 90, postprocessMs: 20 }, "totalMs"],
      [{ totalMs: 100, total: 5 }, "total"],
    ]) {
      assert.throws(
        () => keel.budget(parts),
        (e) => e instanceof KeelConfigError && e.path === path,
        path,
      );
    }
    assert.throws(() => keel.with({ budget: { leftMs: () => 5 } }), KeelConfigError);
  });
});

describe("limits of one provider", () => {
  it("hold for it and for no other", async () => {
    const clock = fakeClock();
    const { fetch, seen } = scriptedUpstream(() => ({ status: 500, body: "{}" }), { clock });
    const keel = createKeel({
      clock,
      fetch,
      breaker: false,
      providers: { "gw.acme.io": { retry: { maxAttempts: 1 }, breaker: { consecutiveFailures: 1 } } },
    });
    await clock.run(() => keel.fetch("https://gw.acme.io/v1/chat/completions", POST));
    const refused = await keel.fetch("https://gw.acme.io/v1/chat/completions", POST).catch((e) => e);
    assert.equal(refused.reason, "breaker_open");
    assert.equal(seen.length, 1);
    for (let n = 0; n < 3; n += 1) await clock.run(() => keel.fetch(OPENAI, POST));
    assert.equal(seen.length, 10);
  });

  it("are never more attempts than all targets together may make", async () => {
    const clock = fakeClock();
    const { fetch, seen } = scriptedUpstream(() => ({ status: 500, body: "{}" }), { clock });
    const keel = createKeel({ clock, fetch, retry: { maxAttempts: 5, maxTotalAttempts: 2 } });
    await clock.run(() => keel.fetch(OPENAI, POST));
    assert.equal(seen.length, 2);
  });
});
