/** The errors of evenkeel. */
import type { AttemptRecord, ErrorClass, FailureFacts } from "./types.js";

const ADVICE: Record<ErrorClass, string> = {
  bad_request: "The request itself is at fault; change it.",
  auth_error: "Check the API key.",
  permission_error: "The key may not do this; check its project, role, region and model access.",
  not_found: "Check the model's name and the base URL.",
  request_too_large: "Shorten the prompt or the requested output.",
  content_filtered: "The provider's safety system refused it; change the content.",
  rate_limited: "Wait until retryAt, send less, or ask for a higher limit.",
  quota_exhausted: "Waiting does not help; check billing and quota.",
  overloaded: "The provider has no capacity right now; try later or another model.",
  server_error: "The provider failed; try later.",
  timeout: "No answer in time; raise the limit named by reason, or try later.",
  connection_error: "No connection, or one that broke; check network, proxy and base URL.",
  stream_interrupted: "The answer was cut short; try again.",
  cancelled: "The caller gave up.",
  unknown: "Nothing is known about this failure; see the attempts.",
};

/** What is better advice than the class has. */
const ADVICE_BY_REASON: Readonly<Record<string, string>> = {
  key_unavailable: "A pool's key could not be had; see the cause.",
  invalid_url: "The URL is not absolute http(s); check the base URL.",
  keys_disabled: "All its keys were refused; mend them, then keel.enableKey().",
};

/** Every error class. */
export const CLASSES = Object.keys(ADVICE);

/**
 * A call that ended without an upstream answer to give back: no connection, no answer in time, a refusal of our own.
 * Holds no text of a prompt or an answer, and no key.
 */
export class KeelError extends Error {
  /** Always `"KeelError"`: tells it apart where there are two copies of the package. */
  override readonly name = "KeelError";
  /** What the failure is. */
  readonly class: ErrorClass;
  /** Why the call ended: a limit of ours such as `deadline_exceeded`, or the failure's own reason. */
  readonly reason: string;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** How long until trying again makes sense; `null` if nobody said. */
  readonly retryAfterMs: number | null;
  /** When that is. */
  readonly retryAt: Date | null;
  /** Finds the records of this call in the ledger. */
  readonly logicalRequestId: string;
  /** The records of the attempts that failed. */
  readonly attempts: readonly AttemptRecord[];

  /** Made by evenkeel only. */
  constructor(facts: FailureFacts) {
    super(sentence(facts), facts.cause === undefined ? undefined : { cause: facts.cause });
    this.class = facts.class;
    this.reason = facts.reason;
    this.retryable = facts.retryable;
    this.retryAfterMs = facts.retryAfterMs;
    this.retryAt = facts.retryAt;
    this.logicalRequestId = facts.logicalRequestId;
    this.attempts = facts.attempts;
  }
}

/** What a call fails with where nobody has said when to try again: what evenkeel itself is to blame for, or its user. */
export function failure(reason: string, retryable: boolean, logicalRequestId = "", cause?: unknown): KeelError {
  const unknown = { class: "unknown", retryAfterMs: null, retryAt: null, attempts: [] } as const;
  return new KeelError({ ...unknown, reason, retryable, logicalRequestId, cause });
}

function sentence(facts: FailureFacts): string {
  if (facts.reason === "keel_closed") {
    return "LLM call not sent: this keel was closed (keel_closed). Close it later, or make another: createKeel().";
  }
  if (facts.reason === "core_failed") {
    return "LLM call failed: evenkeel's own core failed while it was under way (core_failed). It may have been sent. A fresh core serves later calls; please report this.";
  }
  const times = facts.attempts.length;
  const how = times === 0 ? "not sent" : times === 1 ? "1 attempt" : `${times} attempts`;
  const target = facts.provider ? ` to ${facts.provider}${facts.model ? ` (${facts.model})` : ""}` : "";
  const advice = ADVICE_BY_REASON[facts.reason] ?? ADVICE[facts.class];
  const when = facts.retryAt === null ? "" : ` Retry at ${facts.retryAt.toISOString()}.`;
  return `LLM call${target} failed: ${facts.class} (${facts.reason}), ${how}. ${advice}${when}`;
}

/** An option of {@link createKeel} that can't be used. */
export class KeelConfigError extends TypeError {
  /** Always `"KeelConfigError"`: tells it apart where there are two copies of the package. */
  override readonly name = "KeelConfigError";
  /** Where it is, such as `retry.baseMs`. */
  readonly path: string;
  /** What was given, described without its content where it could be a secret. */
  readonly got: string;
  /** What it should be. */
  readonly expected: string;

  /** Made by evenkeel only. */
  constructor(path: string, got: unknown, expected: string) {
    // Somebody may have put a key into the wrong place of a pool.
    const shown = typeof got === "string" && path.startsWith("pools") ? "a string" : describe(got);
    super(`${path || "the argument"}: got ${shown}, expected ${expected}`);
    this.path = path;
    this.got = shown;
    this.expected = expected;
  }
}

function describe(value: unknown): string {
  if (typeof value === "string")
    return value.length > 40 ? `a string of ${value.length} characters` : JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (value === null || typeof value === "number" || typeof value === "boolean" || value === undefined)
    return String(value);
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${value.length}`;
  return typeof value === "function"
    ? "a function"
    : typeof value === "symbol"
      ? `a ${value.description ?? "symbol"}`
      : "an object";
}
