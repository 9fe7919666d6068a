/**
 * One failure as data, the form of a line of `evenkeel classify`, and its verdict by the core.
 *
 * The members that are known are checked; others, such as an id of the reader's own, are left alone.
 */
import { PROTOCOLS as NAMES } from "../config.js";
import { classify as judgeFlat } from "../core.js";
import "../entry.inline.js";
import { requireCore } from "../load.js";
import { packError } from "../transport.js";
import type { ErrorClass, Protocol, Scope } from "../types.js";

/** A failure that can be judged. */
export interface Case {
  readonly provider: string;
  readonly protocol: Protocol | "";
  readonly url: string;
  /** `null`: there was no answer. */
  readonly status: number | null;
  /** Packed. */
  readonly headers: string;
  readonly body: string;
  readonly stream: boolean;
  /** Packed; "" if the transport threw nothing. */
  readonly error: string;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/** What the core says of a {@link Case}; `null` stands for a success. */
export interface Judgement {
  readonly class: ErrorClass;
  readonly retryable: boolean;
  readonly scope: Scope;
  readonly waitHintMs: number | null;
  readonly reason: string;
  readonly rule: string;
  readonly action: "retry" | "return" | "fail";
  /** The limit of evenkeel's that forbids the retry; "" if there is none. */
  readonly limit: string;
  /** A part of the answer had reached the caller. */
  readonly committed: boolean;
}

/** What is wrong with a case, in words. */
export class BadCase extends Error {}

/** Every protocol name, and two that the tables of cases use for "any" and for a failure without an answer. */
export const PROTOCOLS: readonly (Protocol | "any" | "transport")[] = [...NAMES, "any", "transport"];

/** Bytes of headers that are looked at, and of one value. */
const MAX_HEADERS = 32_768;
const MAX_VALUE = 2_048;

/** Between packed fields. */
const FIELD = "\u001f";

const utf8 = new TextEncoder();

/** Judges a case; `rules` are a user's own, as JSON, or "". Throws a {@link BadCase} if those are wrong. */
export function judge(one: Case, rules = ""): Judgement | null {
  requireCore();
  const { provider, protocol, url, status, headers, body, stream, error, now } = one;
  // The core looks at 64 KiB of a body.
  const bytes = utf8.encode(body.slice(0, 131_072));
  const facts = [provider, protocol, url, rules].map((text) => text.replaceAll(FIELD, " ")).join(FIELD);
  const found = judgeFlat(now, facts, status ?? 0, headers, bytes, stream, error);
  if (found === "") return null;
  const fields = found.split(FIELD);
  if (fields.length < 9) throw new BadCase(found);
  const field = (at: number) => fields[at] ?? "";
  return {
    class: field(0) as ErrorClass,
    retryable: field(1) === "1",
    scope: field(2) as Scope,
    waitHintMs: field(3) === "" ? null : Number(field(3)),
    reason: field(4),
    rule: field(5),
    action: field(6) as Judgement["action"],
    limit: field(7),
    committed: field(8) === "1",
  };
}

/** Reads a case from parsed JSON; throws a {@link BadCase} that names what is wrong. */
export function caseOf(value: unknown, now: () => number): Case {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new BadCase(`expected an object, got ${describe(value)}`);
  }
  const given = value as Readonly<Record<string, unknown>>;
  const protocol = oneProtocol(given["protocol"]);
  const body = textOf(given["body"]);
  const stream = optional(given, "stream", "boolean") ?? false;
  let error = given["error"] === undefined || given["error"] === null ? "" : errorOf(given["error"]);
  let status = statusOf(given["status"]);
  let text = body;
  if (status === null && error === "" && protocol === "transport") {
    // Tables of cases keep the transport's error where an answer's body would be.
    error = errorOf(parsed(body));
    text = "";
  }
  if (status === null && error === "") {
    if (!stream) throw new BadCase("there is neither a status nor an error");
    status = 200;
  }
  return {
    provider: (optional(given, "provider", "string") ?? "").trim().toLowerCase(),
    protocol: protocol === "any" ? "unknown" : protocol === "transport" ? "" : protocol,
    url: optional(given, "url", "string") ?? "",
    status,
    headers: packed(given["headers"]),
    body: text,
    stream,
    error,
    now: instantOf(given["now"]) ?? now(),
  };
}

/** `name:value` lines of an object (values are strings, numbers or arrays of them) or of a list of pairs. */
export function packed(headers: unknown): string {
  if (headers === undefined || headers === null) return "";
  if (typeof headers !== "object") throw new BadCase(`headers: expected an object, got ${describe(headers)}`);
  let out = "";
  for (const entry of Array.isArray(headers) ? headers : Object.entries(headers)) {
    if (!Array.isArray(entry) || typeof entry[0] !== "string") {
      throw new BadCase(`headers: expected pairs of name and value, got ${describe(entry)}`);
    }
    const [name, value] = entry as [string, unknown];
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === null || item === undefined) continue;
      if (typeof item !== "string" && typeof item !== "number" && typeof item !== "boolean") {
        throw new BadCase(`headers.${name}: expected a string, got ${describe(item)}`);
      }
      const line = `${name}:${String(item).replace(/[\r\n]+/g, " ")}\n`;
      if (line.length <= MAX_VALUE + name.length && out.length + line.length <= MAX_HEADERS) out += line;
    }
  }
  return out;
}

/** A point in time as RFC 3339 writes it; `undefined` if it isn't given. */
export function instantOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;
  const at =
    typeof value === "string" && rfc3339.test(value) ? Date.parse(value.toUpperCase().replace(" ", "T")) : Number.NaN;
  if (!(at >= 0)) throw new BadCase(`now: expected a time such as "2026-11-30T00:00:00Z", got ${describe(value)}`);
  return at;
}

/** A status, from 100 to 599; `null` if it isn't given. */
export function statusOf(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599) return value;
  throw new BadCase(`status: expected a whole number from 100 to 599, got ${describe(value)}`);
}

function oneProtocol(value: unknown): (typeof PROTOCOLS)[number] | "" {
  if (value === undefined || value === null || value === "") return "";
  const found = PROTOCOLS.find((name) => name === value);
  if (found !== undefined) return found;
  throw new BadCase(`protocol: expected one of ${PROTOCOLS.join(", ")}; got ${describe(value)}`);
}

function textOf(body: unknown): string {
  if (body === undefined || body === null) return "";
  if (typeof body === "string") return body;
  // A body that someone has parsed already.
  if (typeof body === "object") return JSON.stringify(body);
  throw new BadCase(`body: expected a string, got ${describe(body)}`);
}

function errorOf(error: unknown): string {
  if (typeof error === "string" || (typeof error === "object" && error !== null && !Array.isArray(error))) {
    return packError(error);
  }
  throw new BadCase(`error: expected an object such as { "name", "code", "message", "cause" }, got ${describe(error)}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function optional<T extends "string" | "boolean">(
  given: Readonly<Record<string, unknown>>,
  name: string,
  type: T,
): (T extends "string" ? string : boolean) | undefined {
  const value = given[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== type) throw new BadCase(`${name}: expected a ${type}, got ${describe(value)}`);
  return value as T extends "string" ? string : boolean;
}

function describe(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
