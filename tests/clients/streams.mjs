/**
 * The table SDK × trouble, as data: which real SDKs read a stream, what the upstream does to it, and how that has to end
 * through `keel.fetch`. `streams.test.mjs` asserts it, `npm run demo` prints it in short form, and
 * `scripts/streams-table.mjs` writes it into `docs/streams.md` beside what the bare SDKs do.
 */
import { readFileSync } from "node:fs";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { HTTPClient, Mistral } from "@mistralai/mistralai";
import { streamText } from "ai";
import { createKeel } from "evenkeel";
import Groq from "groq-sdk";
import OpenAI from "openai";
import { anthropic, bytesOf, event, gemini, groq, mistral, openai, partsBefore } from "../upstream/bodies.mjs";
import { startUpstream } from "../upstream/upstream.mjs";

/** What every answer says when it arrives whole, and the word after which troubles begin. */
export const ANSWER = "Keep the keel even, whatever the wind does.";
const CUT_AFTER = "keel";

/** The times of the table's keel: short, so that nobody has to wait for it. */
export const TIMES = {
  chunkGapMs: 400,
  /** A slow reader stops for longer than the gap that the upstream is allowed. */
  readerPauseMs: 700,
  /** The timeout of a bare SDK that has one, in place of ten minutes; under a keel it keeps its own. */
  sdkTimeoutMs: 2500,
  /** When a reader that still waits is said to hang. */
  patienceMs: 4000,
};

/**
 * How it ended, as the SDK's user sees it.
 *
 * - `whole`: the whole text
 * - `part, error`: part of the text, then an error
 * - `error`: an error and no text
 * - `half`: less than the whole text, and nothing that says so
 * - `hang`: no end within the patience of the table
 * - `stopped`: the user stopped, and the upstream was told at once
 * - `runs on`: the user stopped, and the upstream went on generating
 *
 * @typedef {"whole" | "part, error" | "error" | "half" | "hang" | "stopped" | "runs on"} Ending
 */

/**
 * @typedef {object} Reading What a reader of a stream is given, and what it has seen.
 * @property {string} url
 * @property {typeof globalThis.fetch} fetch
 * @property {AbortSignal} signal
 * @property {number | undefined} timeout What the SDK is told of time; undefined: nothing.
 * @property {(text: string | null | undefined) => Promise<boolean>} see Takes a piece of text; true: stop reading.
 */

/**
 * @typedef {object} Sdk
 * @property {string} id
 * @property {string} title
 * @property {string[]} packages
 * @property {keyof typeof PROTOCOLS} protocol
 * @property {true} [deafToBreak] It doesn't cancel its stream when its user leaves the loop; only an abort stops it.
 * @property {(reading: Reading) => Promise<void>} read Reads a stream to its end as its documentation shows.
 */

const KEY = "sk-test-not-a-real-key-0123456789";
const PROMPT = "What does a keel do?";
const messages = [{ role: /** @type {const} */ ("user"), content: PROMPT }];

const patience = (/** @type {number | undefined} */ timeout) => (timeout === undefined ? {} : { timeout });

/** @returns {Sdk["read"]} */
function aiSdk(/** @type {(url: string, fetch: typeof globalThis.fetch) => import("ai").LanguageModel} */ model) {
  return async ({ url, fetch, signal, see }) => {
    // Errors come as parts of the stream; without an `onError` they are printed as well.
    const result = streamText({ model: model(url, fetch), prompt: PROMPT, abortSignal: signal, onError: () => {} });
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "abort") throw signal.reason;
      if (part.type === "text-delta" && (await see(part.text))) return;
    }
  };
}

/** @type {Sdk[]} */
export const SDKS = [
  {
    id: "openai-chat",
    title: "openai, chat",
    packages: ["openai"],
    protocol: "chat",
    async read({ url, fetch, signal, timeout, see }) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, fetch, ...patience(timeout) });
      const stream = await client.chat.completions.create({ model: "gpt-5", messages, stream: true }, { signal });
      for await (const chunk of stream) if (await see(chunk.choices[0]?.delta.content)) return;
    },
  },
  {
    id: "openai-responses",
    title: "openai, responses",
    packages: ["openai"],
    protocol: "responses",
    async read({ url, fetch, signal, timeout, see }) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, fetch, ...patience(timeout) });
      const stream = await client.responses.create({ model: "gpt-5", input: PROMPT, stream: true }, { signal });
      for await (const one of stream) if (one.type === "response.output_text.delta" && (await see(one.delta))) return;
    },
  },
  {
    id: "anthropic-raw",
    title: "@anthropic-ai/sdk, raw stream",
    packages: ["@anthropic-ai/sdk"],
    protocol: "anthropic",
    async read({ url, fetch, signal, timeout, see }) {
      const client = new Anthropic({ baseURL: url, apiKey: KEY, fetch, ...patience(timeout) });
      const params = { model: "claude-sonnet-5-5", max_tokens: 64, messages };
      for await (const one of await client.messages.create({ ...params, stream: true }, { signal })) {
        if (one.type === "content_block_delta" && one.delta.type === "text_delta" && (await see(one.delta.text)))
          return;
      }
    },
  },
  {
    id: "anthropic-stream",
    title: "@anthropic-ai/sdk, messages.stream()",
    packages: ["@anthropic-ai/sdk"],
    protocol: "anthropic",
    async read({ url, fetch, signal, timeout, see }) {
      const client = new Anthropic({ baseURL: url, apiKey: KEY, fetch, ...patience(timeout) });
      const stream = client.messages.stream({ model: "claude-sonnet-5-5", max_tokens: 64, messages }, { signal });
      for await (const one of stream) {
        if (one.type === "content_block_delta" && one.delta.type === "text_delta" && (await see(one.delta.text)))
          return;
      }
      await stream.finalMessage();
    },
  },
  {
    id: "google-genai",
    title: "@google/genai",
    deafToBreak: true,
    packages: ["@google/genai"],
    protocol: "gemini",
    async read({ url, fetch, signal, timeout, see }) {
      const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url, fetch, ...patience(timeout) } });
      const config = { abortSignal: signal };
      const stream = await client.models.generateContentStream({ model: "gemini-2.5-flash", contents: PROMPT, config });
      for await (const chunk of stream) if (await see(chunk.text)) return;
    },
  },
  {
    id: "ai-openai",
    title: "AI SDK, openai",
    deafToBreak: true,
    packages: ["ai", "@ai-sdk/openai"],
    protocol: "responses",
    read: aiSdk((url, fetch) => createOpenAI({ baseURL: `${url}/v1`, apiKey: KEY, fetch })("gpt-5")),
  },
  {
    id: "ai-anthropic",
    title: "AI SDK, anthropic",
    deafToBreak: true,
    packages: ["ai", "@ai-sdk/anthropic"],
    protocol: "anthropic",
    read: aiSdk((url, fetch) => createAnthropic({ baseURL: `${url}/v1`, apiKey: KEY, fetch })("claude-sonnet-5-5")),
  },
  {
    id: "ai-google",
    title: "AI SDK, google",
    deafToBreak: true,
    packages: ["ai", "@ai-sdk/google"],
    protocol: "gemini",
    read: aiSdk((url, fetch) =>
      createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: KEY, fetch })("gemini-2.5-flash"),
    ),
  },
  {
    id: "groq",
    title: "groq-sdk",
    packages: ["groq-sdk"],
    protocol: "groq",
    async read({ url, fetch, signal, timeout, see }) {
      const client = new Groq({ baseURL: url, apiKey: KEY, fetch, ...patience(timeout) });
      const params = { model: "llama-3.3-70b-versatile", messages };
      const stream = await client.chat.completions.create({ ...params, stream: true }, { signal });
      for await (const chunk of stream) if (await see(chunk.choices[0]?.delta.content)) return;
    },
  },
  {
    id: "mistral",
    title: "@mistralai/mistralai",
    packages: ["@mistralai/mistralai"],
    protocol: "mistral",
    async read({ url, fetch, signal, timeout, see }) {
      const httpClient = new HTTPClient({ fetcher: fetch });
      const client = new Mistral({
        serverURL: url,
        apiKey: KEY,
        httpClient,
        ...(timeout === undefined ? {} : { timeoutMs: timeout }),
      });
      const stream = await client.chat.stream({ model: "mistral-small-latest", messages }, { signal });
      for await (const one of stream) {
        const content = one.data.choices[0]?.delta.content;
        if (await see(typeof content === "string" ? content : undefined)) return;
      }
    },
  },
];

/** The answer of each protocol, and its error as it comes inside of an HTTP 200. */
export const PROTOCOLS = {
  chat: { stream: openai.chatStream, error: () => openai.overloadedInStream().body[0] },
  responses: {
    stream: openai.responseStream,
    error: () =>
      event(
        {
          type: "error",
          sequence_number: 9,
          error: { type: "server_error", code: "server_error", message: "The server had an error.", param: null },
        },
        "error",
      ),
  },
  anthropic: { stream: anthropic.messageStream, error: () => anthropic.overloadedInStream().body[0] },
  gemini: { stream: gemini.contentStream, error: () => `${JSON.stringify(gemini.overloaded().json, null, 2)}\n` },
  groq: { stream: groq.chatStream, error: () => openai.overloadedInStream().body[0] },
  mistral: { stream: mistral.chatStream, error: () => event(mistral.rateLimited().json) },
};

/**
 * @typedef {object} Trouble
 * @property {string} id
 * @property {string} title For the table's head.
 * @property {(answer: Answer) => import("../upstream/upstream.mjs").Step[]} script The last step repeats.
 * @property {Ending} keel What the SDK's user has to see through `keel.fetch`.
 * @property {{ status: string, attempts: number, errorClass: string | null }} ledger Of the call.
 * @property {"break" | "abort"} [stop] The user stops after the first words: leaves the loop, or aborts.
 * @property {boolean} [slow] The reader pauses after the first words.
 *
 * @typedef {{ whole: Streamed, said: string[], unsaid: string[], error: string }} Answer
 * @typedef {import("../upstream/upstream.mjs").Step & { body: (string | number)[] }} Streamed
 */

const interrupted = { status: "failed", attempts: 1, errorClass: "stream_interrupted" };
const succeeded = (attempts = 1) => ({ status: "succeeded", attempts, errorClass: null });
const cancelled = { status: "cancelled", attempts: 1, errorClass: "cancelled" };

/** Between what was said and its error: what comes in one chunk with an error has not been shown to anyone. */
const SETTLE_MS = 60;

/** @type {Trouble[]} */
export const TROUBLES = [
  { id: "clean", title: "clean", script: ({ whole }) => [whole], keel: "whole", ledger: succeeded() },
  {
    id: "error-before-content",
    title: "error before content",
    script: ({ whole, unsaid, error }) => [{ ...whole, body: [...unsaid, error] }, whole],
    keel: "whole",
    ledger: succeeded(2),
  },
  {
    id: "error-after-content",
    title: "error after content",
    script: ({ whole, said, error }) => [{ ...whole, body: [...said, SETTLE_MS, error] }],
    keel: "part, error",
    ledger: interrupted,
  },
  {
    id: "reset-after-content",
    title: "reset after content",
    script: ({ whole, said }) => [{ ...whole, resetAtByte: bytesOf(said) }],
    keel: "part, error",
    ledger: interrupted,
  },
  {
    id: "end-without-marker",
    title: "end without marker",
    script: ({ whole, said }) => [{ ...whole, body: said }],
    keel: "part, error",
    ledger: interrupted,
  },
  {
    id: "stall",
    title: "stall",
    script: ({ whole, said }) => [{ ...whole, hang: bytesOf(said) }],
    keel: "part, error",
    ledger: interrupted,
  },
  {
    id: "slow-reader",
    title: "slow reader",
    script: ({ whole }) => [whole],
    slow: true,
    keel: "whole",
    ledger: succeeded(),
  },
  {
    id: "leaves-the-loop",
    title: "user leaves the loop",
    script: ({ whole }) => [{ ...whole, delayBetweenChunksMs: 100 }],
    stop: "break",
    keel: "stopped",
    ledger: cancelled,
  },
  {
    id: "aborts",
    title: "user aborts",
    script: ({ whole }) => [{ ...whole, delayBetweenChunksMs: 100 }],
    stop: "abort",
    keel: "stopped",
    ledger: cancelled,
  },
];

/**
 * What the SDK's user has to see through `keel.fetch`.
 *
 * @param {Sdk} sdk
 * @param {Trouble} trouble
 * @returns {Ending}
 */
export function due(sdk, trouble) {
  return trouble.stop === "break" && sdk.deafToBreak ? "runs on" : trouble.keel;
}

/** A stream of `protocol` in the pieces that troubles are made of. */
export function answerOf(/** @type {keyof typeof PROTOCOLS} */ protocol, text = ANSWER) {
  const { stream, error } = PROTOCOLS[protocol];
  const whole = stream(text);
  const firstWord = partsBefore(whole.body, "Keep");
  return {
    whole,
    said: whole.body.slice(0, partsBefore(whole.body, CUT_AFTER) + 1),
    unsaid: whole.body.slice(0, firstWord),
    error: /** @type {string} */ (error()),
  };
}

/** The version of an installed package. */
export function versionOf(/** @type {string} */ name) {
  const url = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  return /** @type {string} */ (JSON.parse(readFileSync(url, "utf8")).version);
}

/** How an SDK is called in the table: its packages with their versions. */
export function packagesOf(/** @type {Sdk} */ sdk) {
  return sdk.packages.map((name) => `${name} ${versionOf(name)}`).join(", ");
}

/**
 * One cell of the table: a real SDK reads one stream.
 *
 * @param {Sdk} sdk
 * @param {Trouble} trouble
 * @param {{ keel: boolean }} how
 */
export async function judge(sdk, trouble, { keel: withKeel }) {
  const upstream = await startUpstream({ script: trouble.script(answerOf(sdk.protocol)), repeatLast: true });
  /** @type {any[]} */
  const records = [];
  const keel = withKeel
    ? createKeel({
        retry: { baseMs: 10, capMs: 40 },
        timeouts: { chunkGapMs: TIMES.chunkGapMs, minAttemptMs: 10 },
        ledger: (record) => void records.push(record),
      })
    : undefined;
  const impatience = new AbortController();
  const stop = new AbortController();
  const timer = setTimeout(() => impatience.abort(), TIMES.patienceMs);
  let text = "";
  let stoppedAt = 0;
  const see = async (/** @type {string | null | undefined} */ piece) => {
    text += piece ?? "";
    if (!text.includes(CUT_AFTER)) return false;
    if (trouble.slow && stoppedAt === 0) await new Promise((resolve) => setTimeout(resolve, TIMES.readerPauseMs));
    if (stoppedAt === 0) stoppedAt = performance.now();
    if (trouble.stop === "abort") stop.abort(new DOMException("the user stopped", "AbortError"));
    return trouble.stop === "break";
  };
  /** @type {any} */
  let error;
  try {
    const reading = sdk.read({
      url: upstream.url,
      fetch: keel?.fetch ?? globalThis.fetch,
      signal: AbortSignal.any([impatience.signal, stop.signal]),
      timeout: withKeel ? undefined : TIMES.sdkTimeoutMs,
      see,
    });
    await Promise.race([reading, aborted(impatience.signal)]);
  } catch (thrown) {
    error = thrown;
  }
  const gaveUp = impatience.signal.aborted;
  clearTimeout(timer);
  const [seen] = upstream.seen;
  const told = trouble.stop === undefined ? false : await heard(() => seen?.abortedByClient === true, upstream);
  impatience.abort();
  await keel?.flush();
  keel?.close();
  await upstream.close();
  return {
    ending: gaveUp && !trouble.stop ? "hang" : endingOf(trouble, error, text, told),
    text,
    error,
    requests: upstream.seen.length,
    records,
  };
}

/** Half a second is time enough for a connection to be closed on one machine, and less than the answer takes. */
async function heard(
  /** @type {() => boolean} */ condition,
  /** @type {import("../upstream/upstream.mjs").Upstream} */ upstream,
) {
  return upstream.waitUntil(condition, 500).then(
    () => true,
    () => false,
  );
}

/** @returns {Promise<never>} */
function aborted(/** @type {AbortSignal} */ signal) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

/** @returns {Ending} */
function endingOf(
  /** @type {Trouble} */ trouble,
  /** @type {unknown} */ error,
  /** @type {string} */ text,
  /** @type {boolean} */ told,
) {
  if (trouble.stop !== undefined) return told ? "stopped" : "runs on";
  if (error !== undefined) return text === "" ? "error" : "part, error";
  return text === ANSWER ? "whole" : "half";
}
