// The signal that an attempt is sent with, as a `fetch` sees it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel } from "evenkeel";
import { fakeClock } from "evenkeel/testing";

const OPENAI = "https://api.openai.com/v1/chat/completions";
const POST = { method: "POST", body: "{}" };

describe("the signal of an attempt", () => {
  it("is a genuine one of its own, the same however often it is asked for, and survives a copy of init", async () => {
    const seen = [];
    const keel = createKeel({
      retry: { baseMs: 1, capMs: 1 },
      fetch: async (_input, init) => {
        assert.ok(init.signal instanceof AbortSignal);
        assert.equal(init.signal, init.signal);
        assert.equal({ ...init }.signal, init.signal);
        seen.push(init.signal);
        return new Response("{}", { status: seen.length === 1 ? 503 : 200 });
      },
    });
    const { signal } = new AbortController();
    await keel.fetch(OPENAI, { ...POST, signal });
    assert.equal(new Set([...seen, signal]).size, 3);
    assert.deepEqual(
      seen.map(({ aborted }) => aborted),
      [true, false],
    );
  });

  it("is aborted with the caller's reason, also for who asks only then", async () => {
    for (const early of [true, false]) {
      let given;
      const keel = createKeel({
        fetch: (_input, init) => {
          given = init;
          if (early) assert.equal(init.signal.aborted, false);
          return new Promise(() => {});
        },
      });
      const controller = new AbortController();
      const reason = new Error("enough");
      const call = keel.fetch(OPENAI, { ...POST, signal: controller.signal });
      await Promise.resolve();
      controller.abort(reason);
      assert.equal(await call.catch((error) => error), reason);
      assert.equal(given.signal.aborted, true);
      assert.equal(given.signal.reason, reason);
    }
  });

  it("is aborted when the attempt's time is up", async () => {
    const clock = fakeClock();
    let given;
    const keel = createKeel({
      clock,
      timeouts: { attemptMs: 2_000 },
      retry: { maxAttempts: 1 },
      fetch: (_input, init) => {
        given = init;
        return new Promise(() => {});
      },
    });
    const error = await clock.run(() => keel.fetch(OPENAI, POST).catch((thrown) => thrown));
    assert.equal(error.class, "timeout");
    assert.equal(given.signal.aborted, true);
  });
});
