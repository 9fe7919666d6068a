/** Signals: each attempt has its own, made from the caller's and the attempt's limit. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rig } from "../clients/rig.mjs";
import { openai } from "../upstream/bodies.mjs";

describe("G7 a signal that has timed out doesn't kill the next attempt", () => {
  it("G7 over real sockets", async (t) => {
    const { chat, upstream } = await rig(t, [{ hang: "head" }, { ...openai.chat("fine"), delayHeadMs: 40 }], {
      timeouts: { firstByteMs: 300 },
    });
    const controller = new AbortController();
    const response = await chat({ signal: controller.signal });
    assert.equal((await response.json()).choices[0].message.content, "fine");
    assert.equal(controller.signal.aborted, false);
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true);
    assert.equal(upstream.seen[1]?.completed, true);
  });

  it("G7 each attempt is handed a fresh signal", async (t) => {
    /** @type {AbortSignal[]} */
    const signals = [];
    const { chat } = await rig(t, [{ hang: "head" }, openai.chat("fine")], {
      timeouts: { firstByteMs: 300 },
      fetch: (/** @type {string} */ url, /** @type {RequestInit} */ init) => {
        assert.ok(init.signal);
        signals.push(init.signal);
        assert.equal(init.signal.aborted, false, "not aborted when the attempt begins");
        return fetch(url, init);
      },
    });
    assert.equal((await chat()).status, 200);
    assert.equal(signals.length, 2);
    assert.notEqual(signals[0], signals[1]);
    assert.deepEqual(
      signals.map((signal) => signal.aborted),
      [true, false],
    );
  });
});
