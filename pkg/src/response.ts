/** Answers as the caller gets them: rebuilt around a body that was read, or made in the provider's own envelope. */
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

/**
 * Node makes a byte stream for a body of bytes, and reading one costs it more than all the rest of a response. A plain
 * stream that has everything in it is as readable and much cheaper there. Hosts with responses of their own take bytes as
 * they are. Node before 21 has no `navigator`.
 */
function streamsAreCheaper(): boolean {
  return (globalThis.navigator?.userAgent ?? "Node.js").startsWith("Node.js") && !("EdgeRuntime" in globalThis);
}

// Not asked for at module scope, where it makes every import of the package wait for Node to load its navigator.
let cheaper: boolean | undefined;

/** A body that was read, as the body of a response. */
export function wholeBody(bytes: Uint8Array<ArrayBuffer>): BodyInit {
  cheaper ??= streamsAreCheaper();
  if (!cheaper || bytes.byteLength === 0) return bytes;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}

/** A value that a header can hold: everything but printable ASCII percent-encoded, as UTF-8. */
export function headerSafe(value: string): string {
  const encoded = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return value.replace(/[^\x20-\x7e]+/g, (text) => Array.from(utf8.encode(text), encoded).join(""));
}

/**
 * The upstream's response around another body. Keeps status, status text, URL and headers, less `content-encoding` and
 * `content-length` where the host has decoded the body.
 */
export function rewrap(upstream: Response, body: BodyInit | null, extra?: Readonly<Record<string, string>>): Response {
  let headers = upstream.headers;
  const decoded = headers.has("content-encoding");
  if (decoded || extra !== undefined) {
    headers = new Headers(headers);
    if (decoded) {
      headers.delete("content-encoding");
      headers.delete("content-length");
    }
    for (const name in extra) headers.set(name, headerSafe(extra[name] as string));
  }
  const { status, statusText, url, redirected, type } = upstream;
  // A host's own `fetch` gives any status that came; one made by hand may only have these.
  const ordinary = status >= 200 && status <= 599;
  const made = new Response(body, ordinary ? { status, statusText, headers } : { headers });
  if (!ordinary) {
    Object.defineProperties(made, {
      status: { value: status, enumerable: true },
      statusText: { value: statusText, enumerable: true },
      ok: { value: false, enumerable: true },
    });
  }
  if (url !== "") {
    Object.defineProperties(made, {
      url: { value: url, enumerable: true },
      redirected: { value: redirected, enumerable: true },
      type: { value: type, enumerable: true },
    });
  }
  return made;
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

/** What is known of a call that ended without an answer. */
export interface Unanswered {
  readonly protocol: Protocol;
  readonly errorClass: ErrorClass;
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs: number | null;
  readonly logicalRequestId: string;
  readonly attempts: number;
}

/** A response for a caller that understands nothing else: 504 for a timeout, 429 for a refusal of ours, else 503. */
export function synthesize(facts: Unanswered): Response {
  const status = facts.errorClass === "timeout" ? 504 : facts.errorClass === "rate_limited" ? 429 : 503;
  const headers = new Headers({
    "content-type": "application/json",
    "x-should-retry": "false",
    "x-evenkeel-synthesized": headerSafe(facts.errorClass),
    "x-evenkeel-logical-request-id": headerSafe(facts.logicalRequestId),
    "x-evenkeel-attempts": String(facts.attempts),
    "x-evenkeel-class": headerSafe(facts.errorClass),
    "x-evenkeel-reason": headerSafe(facts.reason),
  });
  if (facts.retryAfterMs !== null) {
    headers.set("retry-after", String(Math.ceil(facts.retryAfterMs / 1_000)));
    headers.set("retry-after-ms", String(facts.retryAfterMs));
  }
  const body = envelope(facts.protocol, status, facts.errorClass, facts.reason, facts.message, facts.logicalRequestId);
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
