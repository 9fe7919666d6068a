/**
 * Runs one row of the demo: starts its upstream, asks through a real SDK with the fetch it is given, and says how
 * that ended and how many requests had reached the upstream by then.
 */
import Anthropic from "@anthropic-ai/sdk";
import { createKeel } from "evenkeel";
import OpenAI from "openai";
import { startUpstream } from "../tests/upstream/upstream.mjs";
import { ANSWER, KEEL_OPTIONS, SDK_OPTIONS } from "./scenarios.mjs";

/**
 * @typedef {object} Result
 * @property {import("./scenarios.mjs").Outcome} outcome
 * @property {string} detail The error's name and message, or the text that arrived.
 * @property {number | undefined} status HTTP status of the error.
 * @property {number} requests
 * @property {number} ms
 * @property {any[]} records The ledger; empty without a keel.
 * @property {unknown} error
 */

const API_KEY = "sk-demo-not-a-key-0123456789";
const QUESTION = "What does a keel do?";

/**
 * The SDK with the `fetch` of the platform.
 *
 * @param {import("./scenarios.mjs").Scenario} scenario
 * @param {{ patienceMs?: number }} [options]
 * @returns {Promise<Result>}
 */
export function runAlone(scenario, options = {}) {
  return run(scenario, globalThis.fetch, [], options);
}

/**
 * The SDK with `keel.fetch`, on a keel of its own: rows must not draw on each other's retry budget.
 *
 * @param {import("./scenarios.mjs").Scenario} scenario
 * @param {{ patienceMs?: number }} [options]
 * @returns {Promise<Result>}
 */
export async function runWithKeel(scenario, options = {}) {
  /** @type {any[]} */
  const records = [];
  const keel = createKeel({ ...KEEL_OPTIONS, ledger: (/** @type {any} */ record) => void records.push(record) });
  try {
    const result = await run(scenario, keel.fetch, records, options);
    await keel.flush();
    return result;
  } finally {
    keel.close();
  }
}

/**
 * @param {import("./scenarios.mjs").Scenario} scenario
 * @param {typeof globalThis.fetch} fetch
 * @param {any[]} records
 * @param {{ patienceMs?: number }} options
 * @returns {Promise<Result>}
 */
async function run(scenario, fetch, records, { patienceMs = 7000 }) {
  const upstream = await startUpstream({ script: scenario.script(), repeatLast: true });
  const impatience = new AbortController();
  const timer = setTimeout(() => impatience.abort(), patienceMs);
  const got = { text: "" };
  const startedAt = performance.now();
  let error;
  try {
    await ask[scenario.sdk](upstream.url, fetch, scenario.stream, impatience.signal, got);
  } catch (thrown) {
    error = /** @type {any} */ (thrown);
  }
  const ms = Math.round(performance.now() - startedAt);
  clearTimeout(timer);
  const requests = upstream.seen.length;
  await upstream.close();
  return {
    outcome: outcomeOf(error, got.text, impatience.signal.aborted),
    detail: error ? `${error.constructor.name}: ${error.message}` : got.text,
    status: error?.status,
    requests,
    ms,
    records,
    error,
  };
}

/** @returns {import("./scenarios.mjs").Outcome} */
function outcomeOf(/** @type {unknown} */ error, /** @type {string} */ text, /** @type {boolean} */ gaveUp) {
  if (gaveUp) return "hang";
  if (error) return text ? "partial" : "error";
  return text === ANSWER ? "answer" : "cut";
}

/** @typedef {(url: string, fetch: typeof globalThis.fetch, stream: boolean, signal: AbortSignal, got: { text: string }) => Promise<void>} Ask */

/** @type {Record<"openai" | "anthropic", Ask>} */
const ask = {
  async openai(url, fetch, stream, signal, got) {
    const client = new OpenAI({ ...SDK_OPTIONS, baseURL: `${url}/v1`, apiKey: API_KEY, fetch });
    const params = { model: "gpt-5", messages: [{ role: /** @type {const} */ ("user"), content: QUESTION }] };
    if (!stream) {
      const completion = await client.chat.completions.create(params, { signal });
      got.text = completion.choices[0]?.message.content ?? "";
      return;
    }
    for await (const chunk of await client.chat.completions.create({ ...params, stream: true }, { signal })) {
      got.text += chunk.choices[0]?.delta.content ?? "";
    }
  },

  async anthropic(url, fetch, stream, signal, got) {
    const client = new Anthropic({ ...SDK_OPTIONS, baseURL: url, apiKey: API_KEY, fetch });
    const params = {
      model: "claude-sonnet-5-5",
      max_tokens: 64,
      messages: [{ role: /** @type {const} */ ("user"), content: QUESTION }],
    };
    if (!stream) {
      const message = await client.messages.create(params, { signal });
      got.text = message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
      return;
    }
    for await (const event of await client.messages.create({ ...params, stream: true }, { signal })) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") got.text += event.delta.text;
    }
  },
};
