/**
 * The rows of the demo, as data: what the upstream does, which client asks, and how it has to end. The demo prints
 * them and `tests/clients/demo-rows.test.mjs` asserts them, so the table can't claim what isn't tested.
 */
import { anthropic, bytesOf, openai, partsBefore } from "../tests/upstream/bodies.mjs";

/** What every answer says when it arrives whole. */
export const ANSWER = "Keep the keel even, whatever the wind does.";

/**
 * How a call ended, as its caller sees it.
 *
 * - `answer`: the whole text
 * - `cut`: less than the whole text, and nothing that says so
 * - `partial`: part of the text, then an error
 * - `error`: an error and no text
 * - `hang`: no end within the patience of the demo
 *
 * @typedef {"answer" | "cut" | "partial" | "error" | "hang"} Outcome
 */

/**
 * @typedef {object} Expectation
 * @property {Outcome} outcome
 * @property {number} [status] HTTP status of the error the caller gets.
 * @property {number | [number, number]} requests How many reach the upstream, exactly or from–to.
 * @property {number} [minMs] Not earlier: a wait hint has to be kept.
 * @property {number} [maxMs] Not later; generous, for slow machines.
 */

/**
 * @typedef {object} Scenario
 * @property {string} id
 * @property {string} trouble What the upstream does, for a person.
 * @property {"openai" | "anthropic"} sdk
 * @property {boolean} stream
 * @property {() => import("../tests/upstream/upstream.mjs").Script} script The last step of a list repeats.
 * @property {number} needed Requests that the best possible client would send.
 * @property {Expectation} keel What has to come out of `keel.fetch` under the SDK.
 * @property {Omit<Expectation, "minMs">} alone What the SDK does by itself, in the versions that are pinned here.
 * @property {boolean} [slowAlone] The SDK by itself takes seconds.
 */

/** Short limits, so that nobody has to wait for the demo; everything else is as it comes. */
export const KEEL_OPTIONS = { timeouts: { firstByteMs: 1000, attemptMs: 1500, minAttemptMs: 100 } };

/** The SDKs keep their own defaults (two retries), but for the ten minutes after which they time out. */
export const SDK_OPTIONS = { timeout: 5000 };

const chat = () => openai.chat(ANSWER);
const chatStream = () => openai.chatStream(ANSWER);
const message = () => anthropic.message(ANSWER);
const messageStream = () => anthropic.messageStream(ANSWER);

/** A stream that is cut after its first words. */
function cutAfter(/** @type {string} */ words, /** @type {ReturnType<typeof chatStream>} */ step) {
  return { ...step, resetAtByte: bytesOf(step.body, partsBefore(step.body, words) + 1) };
}

/** The same, but ended like an answer that is whole. */
function endAfter(/** @type {string} */ words, /** @type {ReturnType<typeof chatStream>} */ step) {
  return { ...step, body: step.body.slice(0, partsBefore(step.body, words) + 1) };
}

/** @type {Scenario[]} */
export const SCENARIOS = [
  {
    id: "openai-fine",
    trouble: "none",
    sdk: "openai",
    stream: false,
    script: () => [chat()],
    needed: 1,
    keel: { outcome: "answer", requests: 1 },
    alone: { outcome: "answer", requests: 1 },
  },
  {
    id: "openai-503",
    trouble: "503 overloaded, then fine",
    sdk: "openai",
    stream: false,
    script: () => [openai.overloaded(), chat()],
    needed: 2,
    keel: { outcome: "answer", requests: 2 },
    alone: { outcome: "answer", requests: 2 },
  },
  {
    id: "anthropic-529-stream",
    trouble: "529 overloaded, then fine",
    sdk: "anthropic",
    stream: true,
    script: () => [anthropic.overloaded(), messageStream()],
    needed: 2,
    keel: { outcome: "answer", requests: 2 },
    alone: { outcome: "answer", requests: 2 },
  },
  {
    id: "openai-429-hint",
    trouble: "429, retry-after: 1, then fine",
    sdk: "openai",
    stream: true,
    script: () => [openai.rateLimited({ "retry-after": "1" }), chatStream()],
    needed: 2,
    keel: { outcome: "answer", requests: 2, minMs: 1000 },
    alone: { outcome: "answer", requests: 2 },
  },
  {
    id: "anthropic-429-hint",
    trouble: "429, retry-after: 1, then fine",
    sdk: "anthropic",
    stream: false,
    script: () => [anthropic.rateLimited({ "retry-after": "1" }), message()],
    needed: 2,
    keel: { outcome: "answer", requests: 2, minMs: 1000 },
    alone: { outcome: "answer", requests: 2 },
  },
  {
    id: "openai-billing",
    trouble: "429, no money left",
    sdk: "openai",
    stream: false,
    script: () => () => openai.billing(),
    needed: 1,
    keel: { outcome: "error", status: 429, requests: 1, maxMs: 3000 },
    alone: { outcome: "error", status: 429, requests: 3 },
  },
  {
    id: "anthropic-spend-limit-stream",
    trouble: "429, spend limit reached",
    sdk: "anthropic",
    stream: true,
    script: () => () => anthropic.spendLimit(),
    needed: 1,
    keel: { outcome: "error", status: 429, requests: 1, maxMs: 3000 },
    alone: { outcome: "error", status: 429, requests: 3 },
  },
  {
    id: "openai-401",
    trouble: "401, wrong key",
    sdk: "openai",
    stream: true,
    script: () => () => openai.badKey(),
    needed: 1,
    keel: { outcome: "error", status: 401, requests: 1, maxMs: 3000 },
    alone: { outcome: "error", status: 401, requests: 1 },
  },
  {
    id: "anthropic-401",
    trouble: "401, wrong key",
    sdk: "anthropic",
    stream: false,
    script: () => () => anthropic.badKey(),
    needed: 1,
    keel: { outcome: "error", status: 401, requests: 1, maxMs: 3000 },
    alone: { outcome: "error", status: 401, requests: 1 },
  },
  {
    id: "openai-reset-in-body",
    trouble: "reset in the middle of the body",
    sdk: "openai",
    stream: false,
    script: () => [{ ...chat(), resetAtByte: 120 }, chat()],
    needed: 2,
    keel: { outcome: "answer", requests: 2 },
    alone: { outcome: "error", requests: 1 },
  },
  {
    id: "anthropic-reset-in-body",
    trouble: "reset in the middle of the body",
    sdk: "anthropic",
    stream: false,
    script: () => [{ ...message(), resetAtByte: 120 }, message()],
    needed: 2,
    keel: { outcome: "answer", requests: 2 },
    alone: { outcome: "error", requests: 1 },
  },
  {
    id: "openai-reset-in-stream",
    trouble: "reset after the first words",
    sdk: "openai",
    stream: true,
    script: () => [cutAfter("keel", chatStream()), chatStream()],
    needed: 1,
    keel: { outcome: "partial", requests: 1 },
    alone: { outcome: "partial", requests: 1 },
  },
  {
    id: "openai-stream-ends-early",
    trouble: "the stream ends, half told",
    sdk: "openai",
    stream: true,
    script: () => [endAfter("keel", chatStream())],
    needed: 1,
    keel: { outcome: "partial", requests: 1 },
    alone: { outcome: "cut", requests: 1 },
  },
  {
    id: "openai-reset-before-content",
    trouble: "reset before the first word",
    sdk: "openai",
    stream: true,
    script: () => [{ ...chatStream(), resetAtByte: bytesOf(chatStream().body, 1) }, chatStream()],
    needed: 2,
    keel: { outcome: "answer", requests: 2 },
    alone: { outcome: "error", requests: 1 },
  },
  {
    id: "anthropic-error-in-200",
    trouble: "200, then an error as the stream",
    sdk: "anthropic",
    stream: true,
    script: () => [anthropic.overloadedInStream(), messageStream()],
    needed: 2,
    keel: { outcome: "answer", requests: 2 },
    alone: { outcome: "error", requests: 1 },
  },
  {
    id: "openai-503-then-reset",
    trouble: "503, then a reset, then fine",
    sdk: "openai",
    stream: false,
    script: () => [
      openai.overloaded(),
      { ...chat(), delayHeadMs: 40, resetAtByte: 120 },
      { ...chat(), delayHeadMs: 60 },
    ],
    needed: 3,
    keel: { outcome: "answer", requests: 3 },
    alone: { outcome: "error", requests: 2 },
  },
  {
    id: "openai-hang",
    trouble: "silence, then fine",
    sdk: "openai",
    stream: false,
    script: () => [{ hang: "head" }, chat()],
    needed: 2,
    keel: { outcome: "answer", requests: 2, maxMs: 4500 },
    alone: { outcome: "answer", requests: 2 },
    slowAlone: true,
  },
  {
    id: "anthropic-hang-stream",
    trouble: "silence, then fine",
    sdk: "anthropic",
    stream: true,
    script: () => [{ hang: "head" }, messageStream()],
    needed: 2,
    keel: { outcome: "answer", requests: 2, maxMs: 4500 },
    alone: { outcome: "answer", requests: 2 },
    slowAlone: true,
  },
  {
    id: "anthropic-stall-in-body",
    trouble: "half a body, then silence",
    sdk: "anthropic",
    stream: false,
    script: () => [{ ...message(), hang: 120 }, message()],
    needed: 2,
    keel: { outcome: "answer", requests: 2, maxMs: 4500 },
    alone: { outcome: "hang", requests: 1 },
    slowAlone: true,
  },
  {
    id: "openai-outage",
    trouble: "full outage: 503 for everyone",
    sdk: "openai",
    stream: false,
    script: () => () => openai.overloaded(),
    needed: 3,
    keel: { outcome: "error", status: 503, requests: [1, 3] },
    alone: { outcome: "error", status: 503, requests: 3 },
  },
  {
    id: "anthropic-outage-stream",
    trouble: "full outage: connections reset",
    sdk: "anthropic",
    stream: true,
    script: () => () => ({ resetBeforeHead: true }),
    needed: 3,
    keel: { outcome: "error", requests: [1, 3] },
    alone: { outcome: "error", requests: 3 },
  },
];

/** The one whose ledger the demo shows as a timeline. */
export const INTERESTING = "openai-503-then-reset";

/**
 * What is wrong with a result, in words; empty if nothing is.
 *
 * @param {Expectation} expected
 * @param {import("./run.mjs").Result} result
 * @returns {string[]}
 */
export function mistakes(expected, result) {
  const wrong = [];
  const [least, most] =
    [expected.requests].flat().length === 2
      ? /** @type {[number, number]} */ (expected.requests)
      : [expected.requests, expected.requests];
  if (result.outcome !== expected.outcome)
    wrong.push(`outcome ${result.outcome}, expected ${expected.outcome} (${result.detail})`);
  if (expected.status !== undefined && result.status !== expected.status)
    wrong.push(`status ${result.status}, expected ${expected.status}`);
  if (result.requests < Number(least) || result.requests > Number(most)) {
    wrong.push(`${result.requests} requests, expected ${least === most ? least : `${least} to ${most}`}`);
  }
  if (expected.minMs !== undefined && result.ms < expected.minMs)
    wrong.push(`${result.ms} ms, expected at least ${expected.minMs}`);
  if (expected.maxMs !== undefined && result.ms > expected.maxMs)
    wrong.push(`${result.ms} ms, expected at most ${expected.maxMs}`);
  return wrong;
}

/** Requests that bought nothing: beyond the needed ones, or all of them if the best outcome was missed. */
export function wasted(/** @type {Scenario} */ scenario, /** @type {import("./run.mjs").Result} */ result) {
  if (result.outcome !== scenario.keel.outcome) return result.requests;
  return Math.max(0, result.requests - scenario.needed);
}
