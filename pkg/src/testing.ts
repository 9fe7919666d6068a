/**
 * `evenkeel/testing`: see how your code behaves when the provider fails, without a socket and without waiting.
 *
 * A scripted upstream is a `fetch` that answers as told; a fake clock makes waits of minutes take no time; seeds make
 * every run the same. Nothing here needs more than `Response`, `ReadableStream` and `AbortSignal`, so it runs wherever
 * evenkeel does.
 *
 * @example
 * ```ts
 * const clock = fakeClock();
 * const upstream = scriptedUpstream([openai.overloaded(), openai.chat("hello")], { clock });
 * const keel = createKeel({ fetch: upstream.fetch, clock, seed: 1 });
 * const response = await clock.run(() => keel.fetch("https://api.openai.com/v1/chat/completions", { method: "POST", body }));
 * ```
 *
 * @module
 */
export { anthropic, openai, type StreamStep, sse } from "./testing/answers.js";
export { type FakeClock, type FakeClockOptions, fakeClock } from "./testing/clock.js";
export { type FaultKind, type RuntimeName, transportError } from "./testing/faults.js";
export { seededRandom } from "./testing/random.js";
export {
  type Chunk,
  type Script,
  type ScriptedUpstream,
  type SeenRequest,
  type Step,
  scriptedUpstream,
  type UpstreamOptions,
} from "./testing/upstream.js";
export type { Clock } from "./types.js";
