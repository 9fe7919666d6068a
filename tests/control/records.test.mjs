// What a record says of a call that did not come to its end.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel } from "evenkeel";
import { fakeClock, openai, scriptedUpstream } from "evenkeel/testing";

const CHAT = "https://api.openai.com/v1/chat/completions";

function rig(script, options = {}) {
  const clock = fakeClock();
  const records = [];
  const upstream = scriptedUpstream(script, { clock });
  const keel = createKeel({ clock, seed: 1, fetch: upstream.fetch, ledger: (r) => records.push(r), ...options });
  const call = (context = {}, init = {}) =>
    keel.with(context).fetch(CHAT, { method: "POST", body: '{"model":"gpt-5"}', ...init });
  return { clock, call, of: (type) => records.filter((record) => record.type === type) };
}

describe("the bytes of an answer of which only a part came", () => {
  const part = (end) => () => ({ ...openai.chat("a sentence of some length"), cutAt: 40, end });
  const once = { retry: { maxAttempts: 1 } };

  for (const end of ["reset", "stall", "close"]) {
    it(`are counted where it ended in a ${end}`, async () => {
      const { clock, call, of } = rig(part(end), once);
      await clock.run(() => call().then(assert.fail, () => {}));
      assert.deepEqual(
        of("attempt").map(({ bytes, http_status }) => [bytes, http_status]),
        [[40, 200]],
      );
    });
  }

  it("are counted where the caller gave up", async () => {
    const { clock, call, of } = rig(part("stall"), once);
    const controller = new AbortController();
    clock.setTimeout(() => controller.abort(), 500);
    await clock.run(() => call({}, { signal: controller.signal }).then(assert.fail, () => {}));
    assert.deepEqual(
      of("attempt").map(({ status, bytes }) => [status, bytes]),
      [["cancelled", 40]],
    );
  });
});

describe("the time in a queue", () => {
  const slow = () => ({ ...openai.chat("x"), delayMs: 5_000 });

  it("stands in the record of a call that left it without being sent", async () => {
    const { clock, call, of } = rig(slow, { concurrency: { max: 1, queueMs: 300 } });
    await clock.run(() => Promise.allSettled([call(), call()]));
    assert.deepEqual(
      of("call").map(({ reason, queue_ms, latency_ms }) => [reason, queue_ms, latency_ms]),
      [
        ["queue_timeout", 300, 300],
        [null, 0, 5_000],
      ],
    );
  });

  it("stands in the record of a call whose caller gave up", async () => {
    const { clock, call, of } = rig(slow, { concurrency: { max: 1 } });
    const controller = new AbortController();
    clock.setTimeout(() => controller.abort(), 700);
    await clock.run(() => Promise.allSettled([call(), call({}, { signal: controller.signal })]));
    assert.deepEqual(
      of("call").map(({ status, queue_ms }) => [status, queue_ms]),
      [
        ["cancelled", 700],
        ["succeeded", 0],
      ],
    );
  });
});
