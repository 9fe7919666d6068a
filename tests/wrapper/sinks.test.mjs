// What a sink can't do to the one who waits for it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel } from "evenkeel";
import { fakeClock } from "evenkeel/testing";

describe("keel.flush", () => {
  it("gives up after 30 s on a sink whose own flush never settles", async () => {
    const clock = fakeClock({ now: 0 });
    const flushed = [];
    const never = { write() {}, flush: () => new Promise(() => {}) };
    const good = { write() {}, flush: () => void flushed.push(clock.now()) };
    const keel = createKeel({ clock, ledger: [never, good] });
    await clock.run(() => keel.flush());
    assert.equal(clock.now(), 30_000);
    assert.deepEqual(flushed, [0]);
  });

  it("gives a write and the flush after it 30 s together", async () => {
    const clock = fakeClock({ now: 0 });
    const never = { write: () => new Promise(() => {}), flush: () => new Promise(() => {}) };
    const keel = createKeel({ clock, ledger: never, fetch: async () => Response.json({}) });
    await clock.run(() => keel.fetch("https://api.openai.com/v1/models"));
    const startedAt = clock.now();
    await clock.run(() => keel.flush());
    assert.equal(clock.now() - startedAt, 30_000);
  });

  it("leaves no timer behind where all is flushed at once", async () => {
    const clock = fakeClock();
    const keel = createKeel({ clock, ledger: { write() {}, flush() {} } });
    await keel.flush();
    assert.equal(clock.pending, 0);
  });
});
