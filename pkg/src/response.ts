/** Answers as the caller gets them: rebuilt around a body that was read, or made in the provider's own envelope. */
import type { Ending } from "./ending.js";
import { kept, keptIsCheaper, show } from "./kept.js";
import { replay } from "./request.js";
import type { ErrorClass, Protocol } from "./types.js";

/** Longest header value that crosses to the core; a longer one says nothing that is needed. */
const MAX_VALUE = 2_048;
/** Bytes of headers that cross at most, in all. */
const MAX_PACKED = 32_768;

const utf8 = new TextEncoder();

/** Response headers as one string of `name:value\n` lines, bounded whatever was sent. */
export function packHeaders(headers: Headers): string {
  let packed = "";
  for (const [name, value] of headers) {
    if (value.length <= MAX_VALUE && packed.length + name.length + value.length < MAX_PACKED && name !== "set-cookie") {
      packed += `${name}:${value}\n`;
    }
  }
  return packed;
}

/** A value that a header can hold: everything but printable ASCII percent-encoded, as UTF-8. */
function headerSafe(value: string): string {
  const encoded = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return value.replace(/[^\x20-\x7e]+/g, (text) => Array.from(utf8.encode(text), encoded).join(""));
}

/** The upstream's response around its body, which was read. */
export function rebuilt(
  upstream: Response,
  bytes: Uint8Array<ArrayBuffer>,
  extra?: Readonly<Record<string, string>>,
): Response {
  if (upstream.body === null) return rewrap(upstream, null, extra);
  if (keptIsCheaper() && isOrdinary(upstream)) return kept(upstream, bytes, () => headersOf(upstream, extra));
  return rewrap(upstream, bytes, extra);
}

/** The upstream's response around another body: keeps status, status text, URL and headers. */
export function rewrap(upstream: Response, body: BodyInit | null, extra?: Readonly<Record<string, string>>): Response {
  const headers = headersOf(upstream, extra);
  const { status, statusText, url, redirected, type } = upstream;
  const ordinary = isOrdinary(upstream);
  const sayable = REASON.test(statusText);
  const made = new Response(body, ordinary ? { status, statusText: sayable ? statusText : "", headers } : { headers });
  if (!ordinary) show(made, { status, ok: false });
  if (!ordinary || !sayable) show(made, { statusText });
  return url === "" ? made : show(made, { url, redirected, type });
}

/** A host's own `fetch` gives any status text that came; a response made by hand may only have such a one. */
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;

/** A host's own `fetch` gives any status that came; a response made by hand may only have these. */
function isOrdinary({ status }: Response): boolean {
  return status >= 200 && status <= 599;
}

/** Headers as they came, less `content-encoding` and `content-length` where the host has decoded the body. */
function headersOf({ headers }: Response, extra: Readonly<Record<string, string>> | undefined): Headers {
  const decoded = headers.has("content-encoding");
  if (!decoded && extra === undefined) return headers;
  const own = new Headers(headers);
  if (decoded) {
    own.delete("content-encoding");
    own.delete("content-length");
  }
  return setAll(own, extra);
}

function setAll(headers: Headers, extra: Readonly<Record<string, string>> | undefined): Headers {
  for (const name in extra) headers.set(name, headerSafe(extra[name] as string));
  return headers;
}

const ANTHROPIC_TYPE: Partial<Record<ErrorClass, string>> = {
  timeout: "timeout_error",
  overloaded: "overloaded_error",
  rate_limited: "rate_limit_error",
};

const GOOGLE_STATUS: Partial<Record<ErrorClass, string>> = {
  timeout: "DEADLINE_EXCEEDED",
  rate_limited: "RESOURCE_EXHAUSTED",
};

/** An error in the envelope that the protocol's own SDK understands. */
function envelope(
  protocol: Protocol,
  status: number,
  errorClass: ErrorClass,
  reason: string,
  message: string,
  id: string,
): object {
  if (protocol === "anthropic.messages") {
    return { type: "error", error: { type: ANTHROPIC_TYPE[errorClass] ?? "api_error", message }, request_id: id };
  }
  if (protocol.startsWith("gemini.")) {
    return { error: { code: status, message, status: GOOGLE_STATUS[errorClass] ?? "UNAVAILABLE" } };
  }
  if (protocol.startsWith("bedrock.") || protocol === "cohere.chat") return { message, id };
  if (protocol === "ollama.chat") return { error: message };
  return { error: { message, type: errorClass, param: null, code: reason } };
}

/** What a failed answer says of what happened. */
export function headersOfFailure(ending: Ending): Readonly<Record<string, string>> {
  return {
    "x-should-retry": "false",
    "x-evenkeel-logical-request-id": ending.logicalRequestId,
    "x-evenkeel-attempts": `${ending.attemptCount}`,
    "x-evenkeel-class": ending.class,
    "x-evenkeel-reason": ending.reason,
  };
}

/** A response for a caller that understands nothing else: 504 for a timeout, 429 for a refusal of ours, else 503. */
export function synthesize(ending: Ending, message: string): Response {
  const { class: errorClass, reason, retryAfterMs, logicalRequestId, protocol } = ending;
  const status = errorClass === "timeout" ? 504 : errorClass === "rate_limited" ? 429 : 503;
  const headers = new Headers({ "content-type": "application/json", "x-evenkeel-synthesized": headerSafe(errorClass) });
  setAll(headers, headersOfFailure(ending));
  if (retryAfterMs !== null) {
    headers.set("retry-after", String(Math.ceil(retryAfterMs / 1_000)));
    headers.set("retry-after-ms", String(retryAfterMs));
  }
  const body = envelope(protocol, status, errorClass, reason, message, logicalRequestId);
  return new Response(JSON.stringify(body), { status, headers });
}

/** An answer of a `fetch` whose bodies are async iterables and no web streams (node-fetch's), as one of this host's. */
export function webResponse(response: Response): Response {
  const body = response.body as (AsyncIterable<Uint8Array> & { getReader?: unknown }) | null | undefined;
  const web = body === null || body === undefined || typeof body.getReader === "function";
  if (web || typeof body[Symbol.asyncIterator] !== "function") return response;
  const bodiless = [204, 205, 304].includes(response.status);
  return rewrap(
    response,
    bodiless ? null : replay([], body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, void>),
  );
}
