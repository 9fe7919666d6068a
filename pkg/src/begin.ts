/** What the core is told of a call before its first attempt. */

import type { Core } from "./core.js";
import { FIELD } from "./packed.js";
import { credentialOf } from "./pools.js";
import { type Outgoing, textOf } from "./request.js";
import { strip } from "./transport.js";
import type { CallContext, KeelOptions } from "./types.js";

/** Characters of a request body that cross as a string. */
const TEXT_BODY = 262_144;
/** Bytes of a part of a body that crosses in parts. */
export const BODY_PART = 65_536;
/** Bytes of a body that the user's token counter is shown. */
const COUNTED_BODY = 4_194_304;

/** Begins a call; gives its number times 128 plus the core's answer. */
export function begin(
  core: Core,
  request: Outgoing,
  context: CallContext,
  options: KeelOptions,
  now: () => number,
): number {
  const { tenant, operation, logicalRequestId, priority } = context;
  const { url, method, body, replayable } = request;
  // Before a body is given to the core: the user's code may begin a call of its own.
  const tokens = tokensOf(body, options);
  const layer = layerAbove(request);
  const credential = strip(credentialOf(request.header));
  const names = `${strip(tenant)}${FIELD}${strip(operation)}${FIELD}${strip(logicalRequestId)}`;
  const text = typeof body === "string" && body.length <= TEXT_BODY ? body : "";
  if (body !== null && text === "" && body.length > 0) giveBody(core, body);
  return core.begin(
    now(),
    url,
    `${names}${FIELD}${strip(method)}${FIELD}${credential}`,
    text,
    (priority === "batch" ? 1 : 0) |
      (replayable ? 2 : 0) |
      (layer.retry === undefined ? 0 : 4) |
      (options.classify === undefined ? 0 : 8),
    layer.retry ?? 0,
    layer.timeoutMs,
    timeLeft(context),
    tokens,
  );
}

/** The caller's time for a call that begins now, in milliseconds. */
export function timeLeft({ deadlineMs, budget }: CallContext): number {
  return Math.min(deadlineMs ?? Number.POSITIVE_INFINITY, budget?.leftMs("modelCall") ?? Number.POSITIVE_INFINITY);
}

function giveBody(core: Core, body: string | Uint8Array): void {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  for (let at = 0; at < bytes.byteLength; at += BODY_PART) core.requestBody(bytes.subarray(at, at + BODY_PART));
}

function tokensOf(body: string | Uint8Array | null, { estimateTokens }: KeelOptions): number {
  if (estimateTokens === undefined || body === null || body.length > COUNTED_BODY) return -1;
  try {
    const tokens = estimateTokens(textOf(body));
    return Number.isFinite(tokens) && tokens >= 0 ? Math.ceil(tokens) : -1;
  } catch {
    return -1;
  }
}

interface Layer {
  readonly retry: number | undefined;
  readonly timeoutMs: number;
}

const NO_LAYER: Layer = { retry: undefined, timeoutMs: -1 };

/** Whether an SDK above retries by itself, on which retry it is, and the time that it gives this one. */
function layerAbove(request: Outgoing): Layer {
  const stainless = request.header("x-stainless-retry-count");
  if (stainless !== null) {
    const seconds = Number(request.header("x-stainless-timeout") ?? 0);
    return { retry: wholeOf(stainless), timeoutMs: seconds > 0 && seconds < 1e7 ? seconds * 1_000 : -1 };
  }
  const amazon = request.header("amz-sdk-request");
  const attempt = amazon === null ? null : /attempt=(\d{1,4})/.exec(amazon);
  return attempt === null ? NO_LAYER : { retry: Math.max(0, Number(attempt[1]) - 1), timeoutMs: -1 };
}

function wholeOf(text: string): number {
  const n = Number(text);
  return Number.isInteger(n) && n >= 0 && n < 1_000 ? n : 0;
}
