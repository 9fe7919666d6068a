import { createKeel } from "evenkeel";
import { fakeClock, openai, scriptedUpstream } from "evenkeel/testing";
import { afterEach, describe, expect, test, vi } from "vitest";
import { summarize } from "./summarize.js";

function setup(script) {
  const clock = fakeClock();
  const upstream = scriptedUpstream(script, { clock });
  const keel = createKeel({ fetch: upstream.fetch, clock, seed: 1 });
  return { clock, upstream, summary: () => clock.run(() => summarize("something long", keel.fetch)) };
}

test("a rate limit is waited out, for as long as the provider says", async () => {
  const { clock, upstream, summary } = setup([openai.rateLimited(7), openai.chat("Short.")]);
  const began = clock.now();
  expect(await summary()).toBe("Short.");
  expect(upstream.seen).toHaveLength(2);
  expect(clock.now() - began).toBeGreaterThanOrEqual(7_000); // seven seconds that took none
});

test("an outage gives the user a sentence instead of an exception", async () => {
  const { upstream, summary } = setup(() => openai.overloaded());
  expect(await summary()).toBe("No summary right now.");
  expect(upstream.seen).toHaveLength(3);
});

test("a provider that can't be reached is an error that says so", async () => {
  const { summary } = setup(() => ({ fail: "refused" }));
  await expect(summary()).rejects.toMatchObject({ name: "KeelError", class: "connection_error", retryable: true });
});

describe("where Vitest's own fake timers are on", () => {
  afterEach(() => vi.useRealTimers());

  test("a clock that was made before them keeps the host's, and works", async () => {
    const { summary } = setup([openai.overloaded(), openai.chat("Short.")]);
    vi.useFakeTimers();
    expect(await summary()).toBe("Short.");
  });
});
