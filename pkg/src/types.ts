/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The public types. Times are milliseconds unless a name says otherwise; options are camelCase, records snake_case.
 */
import type { Budget } from "./budget.js";
import type { KeelError } from "./errors.js";

/** What a failed call is. Decisions look at nothing else. */
export type ErrorClass =
  | "bad_request"
  | "auth_error"
  | "permission_error"
  | "not_found"
  | "request_too_large"
  | "content_filtered"
  | "rate_limited"
  | "quota_exhausted"
  | "overloaded"
  | "server_error"
  | "timeout"
  | "connection_error"
  | "stream_interrupted"
  | "cancelled"
  | "unknown";

/** What a failure speaks of: decides what cools, and what else may be tried. */
export type Scope = "request" | "key" | "bucket" | "model" | "provider";

/** The API shape of a request. */
export type Protocol =
  | "openai.chat"
  | "openai.responses"
  | "openai.completions"
  | "openai.embeddings"
  | "openai.images"
  | "anthropic.messages"
  | "gemini.generate"
  | "gemini.interactions"
  | "bedrock.converse"
  | "bedrock.converse-stream"
  | "bedrock.invoke"
  | "bedrock.invoke-stream"
  | "mistral.chat"
  | "cohere.chat"
  | "ollama.chat"
  | "workers-ai.run"
  | "huggingface.inference"
  | "tgi.generate"
  | "unknown";

/** The verdict on one failed attempt. */
export interface Classification {
  /** What it is. */
  class: ErrorClass;
  /** Whether the same call to the same target would plausibly succeed soon (after `waitHintMs`, if there is one). */
  retryable: boolean;
  /** What it speaks of. */
  scope: Scope;
  /** How long the provider says to wait, uncapped; `null` if it gave no usable hint. */
  waitHintMs: number | null;
  /** A short machine-readable reason, such as `insufficient_quota`. */
  reason: string;
  /** The rule that matched, such as `openai.insufficient_quota`. */
  rule: string;
}

/** What the `classify` hook is given: the failure's facts, without any text of the request. */
export interface FailureSignal {
  /** The provider's name, or the host where it is not known. */
  readonly provider: string;
  /** The model asked for, if it is known. */
  readonly model: string | null;
  /** HTTP status; `null` if there was no response. */
  readonly status: number | null;
  /** Response headers; empty if there was no response. */
  readonly headers: Headers;
  /** The answer's body as text, at most its first 64 KiB; empty if there was none. */
  readonly body: string;
  /** The transport's error, if there was one. */
  readonly error: unknown;
}

/** One attempt: one HTTP request to a provider. */
export interface AttemptRecord {
  /** Version of the records' form. */
  readonly schema: 1;
  /** What this is a record of. */
  readonly type: "attempt";
  /** The logical request it belongs to. */
  readonly logical_request_id: string;
  /** Its own id, a ULID. */
  readonly attempt_id: string;
  /** From 1, over the whole logical request. */
  readonly attempt_no: number;
  /** The rung of the ladder; `primary` where there is none. */
  readonly rung: string;
  /** The tenant, as the caller named it. */
  readonly user_or_tenant_id: string | null;
  /** The operation, as the caller named it. */
  readonly operation_type: string | null;
  /** The provider's name, or the host where it is not known. */
  readonly provider: string;
  /** The API shape. */
  readonly protocol: Protocol;
  /** The model asked for. */
  readonly model: string | null;
  /** What the provider counts its limits against, as far as it is known. */
  readonly bucket: string;
  /** Keyed hash of the request body, 32 hex digits. */
  readonly prompt_hash: string | null;
  /** Tokens of the request, estimated before it was sent. */
  readonly input_token_estimate: number | null;
  /** Most tokens that the request allows the answer. */
  readonly max_output_tokens: number | null;
  /** The time this attempt was given, head and body together. */
  readonly client_timeout_ms: number;
  /** RFC 3339, UTC. */
  readonly started_at: string;
  /** RFC 3339, UTC. */
  readonly finished_at: string;
  /** How long it waited for a permit before it was sent. */
  readonly queue_ms: number;
  /** From sending to the end of the answer, or of the wait for it. */
  readonly latency_ms: number;
  /** From sending to the response head; `null` if none came. */
  readonly first_byte_ms: number | null;
  /** From sending to the first content of a stream; `null` for what was not streamed. */
  readonly first_token_ms: number | null;
  /** How it ended; `lost` if its host killed it, or evenkeel's core failed. */
  readonly status: "succeeded" | "failed" | "cancelled" | "lost";
  /** Whether the provider can have worked on it, and billed it. */
  readonly delivery: "not_sent" | "maybe_sent" | "answered";
  /** HTTP status; `null` if there was no response. */
  readonly http_status: number | null;
  /** What the failure was; `null` for a success. */
  readonly error_class: ErrorClass | null;
  /** Why it failed, or the limit of ours that ended the call with it. */
  readonly reason: string | null;
  /** The rule that matched, such as `openai.insufficient_quota`. */
  readonly rule: string | null;
  /** What followed: another attempt, another rung, the answer to the caller, or an error. */
  readonly decision: "retry" | "fallback" | "return" | "fail";
  /** The provider's wait hint. */
  readonly retry_after_ms: number | null;
  /** The wait before the next attempt. */
  readonly backoff_ms: number | null;
  /** The provider's own id, for its support. */
  readonly provider_request_id: string | null;
  /** The model that answered, if the answer says. */
  readonly served_model: string | null;
  /** As the provider reported it; unknown is not zero. */
  readonly input_token_count: number | null;
  /** As the provider reported it. */
  readonly output_token_count: number | null;
  /** Input tokens read from a cache, as the provider reported them. */
  readonly cached_token_count: number | null;
  /** Output tokens spent on reasoning, as the provider reported them. */
  readonly reasoning_token_count: number | null;
  /** As the provider wrote it. */
  readonly finish_reason: string | null;
  /** Whether a stream's terminal marker came; `null` for what was not streamed. */
  readonly terminal_marker: boolean | null;
  /** Longest time without a byte in a stream. */
  readonly longest_gap_ms: number | null;
  /** Body bytes received. */
  readonly bytes: number;
  /** Events of a stream whose JSON was broken; they were passed on as they came. */
  readonly malformed_events: number;
  /** The bucket of the pools whose turn it was, and that was left for this one; `null` if there was none. */
  readonly passed_over: TooSlow | null;
  /**
   * Set where the attempt was not likely to end before the deadline and was made all the same, since there was no better
   * bucket: what was known of its own.
   */
  readonly infeasible: TooSlow | null;
  /**
   * How many requests the bucket could have in flight when this one was let go: the adaptive limit, or `concurrency.max`
   * where that is lower; `null` where there is none.
   */
  readonly concurrency_limit: number | null;
}

/**
 * A bucket that by what was known of it, and by the `max_output_tokens` of the request, could not have answered before the
 * deadline.
 */
export interface TooSlow {
  /** Which bucket. */
  readonly bucket: string;
  /** Why it was not wanted. */
  readonly reason: "infeasible_before_deadline";
  /**
   * How long an attempt there was expected to take: first token, then the tokens at that throughput. What is unknown counts
   * with a default here (2 s, 50 tokens a second) that takes no part in the decision.
   */
  readonly estimate_ms: number;
  /** How long there was until the deadline. */
  readonly remaining_ms: number;
  /** The median time to the first token of the last few hundred attempts; `null`: unknown. */
  readonly first_token_ms: number | null;
  /** The median throughput of the last few hundred attempts; `null`: unknown. */
  readonly tokens_per_second: number | null;
}

/** One logical request: one business-level call, as the caller sees it. */
export interface CallRecord {
  /** Version of the records' form. */
  readonly schema: 1;
  /** What this is a record of. */
  readonly type: "call";
  /** Its id: the caller's, or a ULID. */
  readonly logical_request_id: string;
  /** The tenant, as the caller named it. */
  readonly user_or_tenant_id: string | null;
  /** The operation, as the caller named it. */
  readonly operation_type: string | null;
  /** The provider's name, or the host where it is not known. */
  readonly provider: string;
  /** The API shape. */
  readonly protocol: Protocol;
  /** The model asked for. */
  readonly model: string | null;
  /** Keyed hash of the request body, 32 hex digits. */
  readonly prompt_hash: string | null;
  /** Tokens of the request, estimated before it was sent. */
  readonly input_token_estimate: number | null;
  /** Most tokens that the request allows the answer. */
  readonly max_output_tokens: number | null;
  /** How it ended; `lost` if its host killed it, or evenkeel's core failed. */
  readonly status: "succeeded" | "failed" | "cancelled" | "lost";
  /** Attempts made. */
  readonly attempts: number;
  /** The rung that answered, or the last one tried. */
  readonly rung: string;
  /** The quality label of that rung. */
  readonly quality: string;
  /** Whether another rung than the first answered. */
  readonly fallback_used: boolean;
  /** What the failure was; `null` for a success. */
  readonly error_class: ErrorClass | null;
  /** Why it failed, or the limit of ours that ended it. */
  readonly reason: string | null;
  /** When it makes sense to try again, if the provider said so. RFC 3339, UTC. */
  readonly retry_at: string | null;
  /** Where the caller keeps the result, if it said so. */
  readonly final_result_pointer: string | null;
  /** RFC 3339, UTC. */
  readonly started_at: string;
  /** RFC 3339, UTC. */
  readonly finished_at: string;
  /** From the call to its end, waits included. */
  readonly latency_ms: number;
  /** Time spent waiting for permits. */
  readonly queue_ms: number;
  /** Time spent in backoff. */
  readonly backoff_ms: number;
  /** As the provider reported it; unknown is not zero. */
  readonly input_token_count: number | null;
  /** As the provider reported it; unknown is not zero. */
  readonly output_token_count: number | null;
  /** 1, or higher where an SDK's own retry joined this logical request: the record with the highest revision counts. */
  readonly revision: number;
}

/** What changed between calls. */
export interface NoticeRecord {
  /** Version of the records' form. */
  readonly schema: 1;
  /** What this is a record of. */
  readonly type: "notice";
  /** Such as `key_disabled`; `docs/ledger.md` in the repository lists all. */
  readonly kind: string;
  /** RFC 3339, UTC. */
  readonly at: string;
  /** What it is about: a provider, a bucket, a key's id. */
  readonly subject: string;
  /** What there is to say of it, by kind. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/** What a sink gets. Never holds a key or any text of a prompt or an answer. */
export type LedgerRecord = AttemptRecord | CallRecord | NoticeRecord;

/**
 * Where records go: a function, or an object with `write` and an optional `flush`. Called right after what it tells of,
 * in the caller's async context. One that throws or stalls never touches a call.
 */
export type LedgerSink =
  | ((record: LedgerRecord) => void | Promise<void>)
  | {
      /** Takes a record. */
      write(record: LedgerRecord): void | Promise<void>;
      /** Resolves when all that was taken is where it belongs. */
      flush?(): void | Promise<void>;
    };

/** Limits in time. Each is clamped to what is left of the enclosing one. Range of each: 1 to 2147483647. */
export interface TimeoutOptions {
  /** The whole logical request: waits, attempts, bodies. Default 600000. */
  totalMs?: number;
  /** One attempt, its body included: a timeout that ends at the head is no timeout. Default 600000. */
  attemptMs?: number;
  /** Making the connection, where the host can tell it apart. `fetch` can't on any host today, so this is only checked. */
  connectMs?: number;
  /**
   * From sending to the response head. Default 60000, for streamed answers; if you set it, it holds for all answers,
   * also those whose head comes only when the whole answer is written.
   */
  firstByteMs?: number;
  /** From sending to the first content of a stream; keep-alives don't count. Default 300000. */
  firstTokenMs?: number;
  /** Longest silence between two chunks of a stream. Default 120000. */
  chunkGapMs?: number;
  /** Longest time a stream may send nothing but keep-alives. Default 300000. */
  contentGapMs?: number;
  /** A retry is not begun unless this much is left before the deadline. Default 1000. */
  minAttemptMs?: number;
}

/** When and how often a failed attempt is followed by another. */
export interface RetryOptions {
  /** Attempts of one logical request, the first included. Range 1 to 20, default 3. */
  maxAttempts?: number;
  /** Attempts over all targets together. Range 1 to 100; no more than this are made, whatever `maxAttempts` says. */
  maxTotalAttempts?: number;
  /** First step of the exponential backoff. Range 0 to 3600000, default 500. */
  baseMs?: number;
  /** Longest backoff. Range 0 to 3600000, default 8000. */
  capMs?: number;
  /** Longest wait that is slept through, hinted or not; a longer hint ends the call at once, with `retryAt`. Default 60000. */
  maxWaitMs?: number;
  /** How backoff is spread, so that a fleet doesn't come back in one instant. Default `"full"`. */
  jitter?: "full" | "equal" | "decorrelated" | "none";
  /** Whether an attempt that the provider may have carried out (and billed) is repeated. Default `"allow"`, at double cost. */
  ambiguous?: "allow" | "never";
  /** Retries as a share of first attempts over the last 10 s, and a floor; `false` switches the budget off. Default 0.2 and 1 a second. */
  budget?: RetryBudgetOptions | false;
}

/** The retry budget: what keeps an outage from being multiplied. */
export interface RetryBudgetOptions {
  /** Retries for each first attempt. Range 0 to 10, default 0.2. */
  ratio?: number;
  /** Retries a second whatever the traffic, so that a quiet service can retry at all. Range 0 to 1000, default 1. */
  minPerSecond?: number;
}

/** Limits of one provider, or a provider of your own. */
export interface ProviderOptions {
  /** Hosts (`llm.acme.io`, `*.acme.io`, `127.0.0.1:8080`) or URL prefixes; may only be absent for a built-in provider's name, or a host. */
  match?: (string | URLPattern)[];
  /** What it speaks, where the path does not tell. */
  protocol?: Protocol;
  /** Rules that are tried before the built-in ones; see {@link Rule}. */
  rules?: Rule[];
  /** As `retry`, for this provider. */
  retry?: Omit<RetryOptions, "budget">;
  /** As `timeouts`, for this provider. */
  timeouts?: TimeoutOptions;
  /** As `breaker`, for this provider. */
  breaker?: BreakerOptions | false;
}

/** `URLPattern`, where the host has it: only its string parts are used. */
export interface URLPattern {
  /** The pattern of the host. */
  readonly hostname: string;
  /** The pattern of the port; empty for the default one. */
  readonly port: string;
}

/** A rule as data: what is matched, and what it means. One of `status`, `code`, `type` and `text` at least; all hold. */
export interface Rule {
  /** Name, for the record's `rule` and `reason`. */
  name?: string;
  /** HTTP status, or several, or ranges such as `"5xx"` or `"520-527"`. */
  status?: number | string | (number | string)[];
  /** The error's `code`. */
  code?: string | string[];
  /** The error's `type`. */
  type?: string | string[];
  /** Text that the message holds, in any case. */
  text?: string | string[];
  /** What it is. */
  class: ErrorClass;
  /** What it speaks of. Default: by class. */
  scope?: Scope;
  /** Whether it may be retried. Default: by class. */
  retryable?: boolean;
  /** How long to wait, where the answer doesn't say. Range 0 to a year. */
  waitMs?: number;
}

/** When a streamed answer is given to the caller. */
export interface StreamOptions {
  /**
   * Until this point a failure is retried and the caller sees one clean stream. `"first-content"` (default) waits for
   * something the user would see; `"end"` for the whole answer.
   */
  commitOn?: "head" | "first-event" | "first-content" | "end";
  /** Bytes that are held at most before the stream is given on. Range 1024 to 1073741824, default 1048576. */
  maxHeldBytes?: number;
}

/** Where time comes from. Only tests need to give it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls back once, after so many milliseconds. */
  setTimeout(callback: () => void, ms: number): unknown;
  /** Takes back what {@link Clock.setTimeout} gave. */
  clearTimeout(handle: unknown): void;
}

/** When a target that fails is left alone for a while. */
export interface BreakerOptions {
  /** Share of failures in the window that opens it. Range 0.001 to 1, default 0.5. */
  failureRate?: number;
  /** Requests in the window below which the rate means nothing. Range 1 to 1000000, default 10. */
  minimumRequests?: number;
  /** Length of the rolling window. Range 1000 to 3600000, default 30000. */
  windowMs?: number;
  /** Failures in a row that open it. Range 1 to 1000000, default 5. */
  consecutiveFailures?: number;
  /** How long it stays open at first; doubles with each failed probe. Range 1 to 3600000, default 7500. */
  cooldownMs?: number;
}

/** How many requests a bucket may have in flight. */
export interface ConcurrencyOptions {
  /** At most, whatever happens. Range 1 to 1000000, default none. */
  max?: number;
  /** What the adaptive limit never goes below. Range 1 to 1000000, default 1. */
  min?: number;
  /**
   * Whether rejections (429, overload) lower the limit, and successes raise it again; and whether requests are paced at
   * what gets through after a 429 whose provider sends no limits in its headers. Default `true`.
   */
  adaptive?: boolean;
  /** Longest that a call waits for its turn; its deadline bounds it as well. Default none. */
  queueMs?: number;
  /** Calls that may wait at once. Range 0 to 1000000, default 10000. */
  maxQueued?: number;
}

/** What a tenant may. Absent is no limit. */
export interface TenantLimits {
  /** Calls in flight. Range 1 to 1000000. */
  concurrency?: number;
  /** Requests a minute. Range 1 to 1000000000. */
  requestsPerMinute?: number;
  /** Tokens a minute, input and output: reserved by estimate, settled by what was used. Range 1 to 1000000000000. */
  tokensPerMinute?: number;
  /** Most of a bucket's concurrency limit, where it has one. Range 0.001 to 1. */
  share?: number;
  /** Turns for each turn of a tenant with weight 1, when both wait. Range 1 to 1000, default 1. */
  weight?: number;
}

/** One API key. Its value appears nowhere but in the outgoing request. */
export interface PoolKey {
  /** Its name in records, notices and `keel.enableKey`. Unique among all pools. */
  id: string;
  /** The key, or a function that gives it. Called for each attempt, in the caller's async context. */
  value: string | (() => string | Promise<string>);
}

/** The keys of one organisation (or project) at one provider: what the provider counts its limits against. */
export interface Pool {
  /** Provider name, such as `openai`, one of your own from `providers`, or a host that neither knows. */
  provider: string;
  /** The organisation's or project's name. Each pair of provider and organisation once. */
  organisation: string;
  /** At least one. */
  keys: PoolKey[];
  /** Models that it serves. Default: all. A request for a model that no pool serves is sent as it came, with its own key. */
  models?: string[];
  /**
   * Sent there instead: its origin replaces the request's, and its path, if it has one, goes before the request's; a `/v1`
   * that ends the one and begins the other stands once.
   */
  baseURL?: string;
  /** Turns for each turn of a pool with weight 1. Range 1 to 1000, default 1. */
  weight?: number;
  /**
   * Whether a run begins with one call: of each model, the first call through this pool goes alone, and the others wait
   * within their deadlines until it was answered well. No request is made up for it. If it is refused (key, permission,
   * quota, unknown model, overload, no connection) the others go to another pool, wait for one that cools and opens within
   * their deadlines, or fail at once with the class of that refusal and reason `preflight_failed`; after 30 s (2 s for
   * what passes by itself, longer where the pool cools for longer, at once when its key is enabled) one call asks again. A
   * rate limit is waited out; a request that is wrong in itself says nothing, and the next one asks. It holds for all
   * calls, interactive ones too, and again after five minutes without a good answer. Default `false`.
   */
  preflight?: boolean;
}

/** One limit that a vendor's headers stated, as it is reckoned now. */
export interface VendorLimitState {
  /** What is counted. */
  readonly kind: "requests" | "tokens" | "input_tokens" | "output_tokens";
  /** Over what time; `unknown` where the headers don't say. */
  readonly window: "minute" | "day" | "unknown";
  /** The whole of it; `null` if that was not stated. */
  readonly limit: number | null;
  /** What is left of it now: the last reading, less what was sent since, and whole again once its reset has passed. */
  readonly remaining: number;
  /** When it is whole again, in milliseconds since the epoch; `null` if that was not stated, or has passed. */
  readonly reset_at: number | null;
  /** When it was read, in milliseconds since the epoch. */
  readonly read_at: number;
}

/** What is known of a bucket: what a provider counts its limits against, an organisation and a model. */
export interface BucketState {
  /** Its name in records, such as `openai/org-a/gpt-5`. */
  readonly bucket: string;
  /** The provider's name, or the host where it is not known. */
  readonly provider: string;
  /** The model, as requests name it; empty for those that name none. */
  readonly model: string;
  /** Until when it cools, in milliseconds since the epoch; `null` if it doesn't. */
  readonly cooling_until: number | null;
  /** What it cools for; `null` if it doesn't. */
  readonly cooling_class: ErrorClass | null;
  /** Requests in flight. */
  readonly in_flight: number;
  /** How many may be; `null` if there is no limit. */
  readonly concurrency_limit: number | null;
  /** Requests a minute that it is paced at after a 429 without headers; `null` if it isn't. */
  readonly paced_per_minute: number | null;
  /** Where its preflight stands; `null` where the pool has none. */
  readonly preflight: "due" | "asking" | "passed" | "refused" | null;
  /** Tokens that requests in flight may take, by estimate. */
  readonly reserved_tokens: number;
  /** When it last answered 429, in milliseconds since the epoch. */
  readonly last_429_at: number | null;
  /** When it last said that it was overloaded, in milliseconds since the epoch. */
  readonly last_overload_at: number | null;
  /** Median time to the first token of the last few hundred streams, rounded up by a quarter at most; `null` before eight. */
  readonly first_token_ms: number | null;
  /** Median tokens a second, likewise. */
  readonly tokens_per_second: number | null;
  /** What the vendor's headers said last; empty if they said nothing. */
  readonly limits: readonly VendorLimitState[];
}

/** The breaker of a provider, or of a model at a provider. */
export interface BreakerState {
  /** `provider` or `provider/model`. */
  readonly subject: string;
  /** `half_open`: one probe is under way. */
  readonly state: "closed" | "open" | "half_open";
  /** Until when it is open, or its probe may take, in milliseconds since the epoch; `null` if it is closed. */
  readonly until: number | null;
  /** The class of the failure that opened it; `null` if it is closed. */
  readonly class: ErrorClass | null;
  /** Requests of the rolling window that were answered. */
  readonly answered: number;
  /** Requests of the rolling window that failed in a way that counts. */
  readonly failed: number;
}

/** A key of the pools. */
export interface KeyState {
  /** Its id; its value appears nowhere. */
  readonly id: string;
  /** Its pool's organisation. */
  readonly organisation: string;
  /** What it was disabled for, until {@link Keel.enableKey}; `null` if it is in use. */
  readonly disabled: ErrorClass | null;
}

/** A tenant that was seen lately. */
export interface TenantState {
  /** Its name; empty for calls that name none. */
  readonly tenant: string;
  /** Calls in flight, or in the queue of a bucket. */
  readonly active: number;
  /** Calls that wait: for the tenant's own limits, or in a queue. */
  readonly waiting: number;
}

/**
 * The control state as plain JSON. It is this keel's own: another keel, another process or isolate knows nothing of it.
 * Members are only ever added. Keys appear by their id only.
 */
export interface ControlState {
  /** What is known of each bucket. */
  readonly vendor: readonly BucketState[];
  /** Breakers of providers and models. */
  readonly breakers: readonly BreakerState[];
  /** Configured keys, in the order of the options. */
  readonly keys: readonly KeyState[];
  /** Tenants that were seen lately. */
  readonly tenants: readonly TenantState[];
  /** What retries may still be drawn, in thousandths of one. */
  readonly retry_budget: {
    /** Of all providers together. */
    readonly global_milli: number;
    /** By provider. */
    readonly providers: Readonly<Record<string, number>>;
  };
  /** Permits to make an attempt: `given` is the sum of the others. */
  readonly permits: {
    /** Given so far. */
    readonly given: number;
    /** Returned by their holder. */
    readonly returned: number;
    /** Come back at their lease's end, since their holder was killed. */
    readonly expired: number;
    /** Held now. */
    readonly held: number;
  };
  /** Calls that wait. */
  readonly waiting: number;
}

/** A wait before a retry by formula. */
export interface PolicyWait {
  /** 1 for the wait before the second attempt. */
  readonly retry: number;
  /** Shortest that it can be. */
  readonly minMs: number;
  /** Longest that it can be. */
  readonly maxMs: number;
  /** Longest that it can be after an overload, whose wait is that of the next retry. */
  readonly overloadedMaxMs: number;
}

/** Something about a policy that its author should know. */
export interface PolicyFinding {
  /** `problem`: it does not do what it says. `note`: it does, and may surprise. */
  readonly severity: "problem" | "note";
  /** The option, such as `timeouts.firstTokenMs`. */
  readonly path: string;
  /** What is wrong, and what to do. */
  readonly message: string;
}

/** What a policy means. */
export interface PolicyExplanation {
  /** Longest that one call can take. */
  readonly worstCaseMs: number;
  /** Requests that one call can make, an SDK's own retries included. */
  readonly maxAttempts: number;
  /** Requests a call that a provider sees in a long outage, by the retry budget; the floor of the budget comes on top. */
  readonly requestsPerCallInOutage: number;
  /** The waits by formula, in order. */
  readonly waits: readonly PolicyWait[];
  /** The limits in force. */
  readonly limits: Required<Omit<TimeoutOptions, "connectMs">> & {
    /** Longest wait that is slept through. */
    readonly maxWaitMs: number;
  };
  /** What is wrong with it; empty if nothing is. */
  readonly findings: readonly PolicyFinding[];
}

/** Options of {@link createKeel}. All are optional, and none is needed. */
export interface KeelOptions {
  /** Sets the defaults of `timeouts` and `retry`. Default `"standard"`. */
  preset?: "interactive" | "standard" | "background";
  /** Where records go. Default: nowhere. */
  ledger?: LedgerSink | LedgerSink[];
  /** Limits in time. */
  timeouts?: TimeoutOptions;
  /** When and how often a failed attempt is followed by another. */
  retry?: RetryOptions;
  /** When a provider or model that fails is left alone; `false`: never. */
  breaker?: BreakerOptions | false;
  /** How many requests a bucket may have in flight; `false`: any number. */
  concurrency?: ConcurrencyOptions | false;
  /** Limits of tenants by name; `default` holds for all others. */
  tenants?: {
    /** For all tenants that have none of their own. */
    default?: TenantLimits;
    [tenant: string]: TenantLimits | undefined;
  };
  /** Keys by organisation: a request to a pool's provider is sent with the least recently used healthy one. */
  pools?: Pool[];
  /** Providers of your own by name, and other limits for built-in ones. */
  providers?: { [name: string]: ProviderOptions };
  /** When a streamed answer is given to the caller. */
  stream?: StreamOptions;
  /** How much of a body is kept. */
  body?: {
    /** Bytes of a body, of a request or an answer, that are kept at most; a longer answer is passed on unread, a longer request stream is sent once. Range 1024 to 1073741824, default 33554432. */
    maxBufferedBytes?: number;
  };
  /**
   * What a call without any upstream answer gives: an error, or a 503/504 in the provider's own envelope that an SDK
   * understands. Default `"auto"`: a response for SDKs that obey `x-should-retry` (they send `x-stainless-*`), else an error.
   */
  transportFailure?: "auto" | "throw" | "response";
  /** What happens when the WebAssembly core can't be had (again): requests go out without it, or fail. Default `"fail"`. */
  onCoreFailure?: "pass-through" | "fail";
  /**
   * The last word on each failure. Return `undefined` to leave the verdict; throwing leaves it too, and so does what is no
   * verdict. Records name the rule `user.classify`.
   */
  classify?: (signal: FailureSignal, builtIn: Classification) => Classification | undefined;
  /** Counts the tokens of a request body. Default: a quarter of its bytes. */
  estimateTokens?: (body: string) => number;
  /** Key of the prompt hash, so that hashes compare between processes. Default: random for each keel. */
  hashKey?: string;
  /** The `fetch` to use. Default: the global one, as it is when a call is made. */
  fetch?: typeof fetch;
  /** Where time comes from. Default: the host's. */
  clock?: Clock;
  /** Seed of jitter and ids, a whole number from 0 to 2^53 − 1. Default: random. The same seed, clock and answers give the same records. */
  seed?: number;
}

/** How the time of one business request is split. Each part is a wish; the total is the law. */
export interface BudgetParts {
  /** All of it. Range 1 to 2147483647. */
  totalMs: number;
  /** For building the input. Default: whatever the model call can spare. */
  inputBuildMs?: number;
  /** For the model call. Default: all that postprocessing leaves. */
  modelCallMs?: number;
  /** For parsing, checking and storing the answer. Default 0. */
  postprocessMs?: number;
}

/** A stage of a business request. */
export type BudgetStage = "inputBuild" | "modelCall" | "postprocess";

/** What a call is for: filled in with {@link Keel.with}. */
export interface CallContext {
  /** Who it is for; at most 128 bytes are kept. */
  tenant?: string;
  /** What it is for, such as `ticket.summary`. */
  operation?: string;
  /** Batch work waits behind interactive work. Default `"interactive"`. */
  priority?: "interactive" | "batch";
  /** Time from the start of each call until its caller must have an answer. Clamped to `timeouts.totalMs`. */
  deadlineMs?: number;
  /** The business request's budget: each call may use what its model call has left. */
  budget?: Budget;
  /** How much a wrong answer would cost. `keel.fetch` serves nothing but the model asked for, so it changes nothing there. */
  risk?: "normal" | "high";
  /** Id of the logical request, if you have one. Default: a ULID. */
  logicalRequestId?: string;
  /** Sent as `idempotency-key`, the same on every attempt. */
  idempotencyKey?: string;
  /** Cancels the call, beside the request's own signal. */
  signal?: AbortSignal;
}

/** A keel with the context filled in. */
export interface ScopedKeel {
  /** As {@link Keel.fetch}. */
  readonly fetch: typeof fetch;
}

/** One keel: one policy, one control state, one ledger. */
export interface Keel {
  /** Give this to an SDK. Works without `this`. */
  readonly fetch: typeof fetch;
  /** The same keel, with the context filled in. */
  with(context: CallContext): ScopedKeel;
  /** The control state as plain JSON: vendor table, breakers, keys, tenants. */
  state(): ControlState;
  /** Starts the budget of one business request: total, input build, model call, postprocessing. */
  budget(parts: BudgetParts): Budget;
  /** What the limits in force mean: worst case, waits, and what is wrong with them. */
  explainPolicy(): PolicyExplanation;
  /** Enables a key that a 401 or 403 has disabled. Throws if no pool has a key of that id. */
  enableKey(keyId: string): void;
  /** Resolves when every sink has what was emitted, after 30 s at most: `ctx.waitUntil(keel.flush())`. Never rejects. */
  flush(): Promise<void>;
  /** Calls after this reject with a {@link KeelError} of reason `keel_closed`; calls under way go on. */
  close(): void;
  /** As {@link Keel.close}. */
  [Symbol.dispose](): void;
}

/** Facts of a call that ended without a usable answer. */
export interface FailureFacts {
  /** What the failure is. */
  class: ErrorClass;
  /** Why the call ended: a limit of ours, or the failure's own reason. */
  reason: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** How long until trying again makes sense; `null` if nobody said. */
  retryAfterMs: number | null;
  /** When that is. */
  retryAt: Date | null;
  /** Finds the records of this call in the ledger. */
  logicalRequestId: string;
  /** The provider's name, or the host; empty if there is none. */
  provider?: string;
  /** The model asked for; empty if it is not known. */
  model?: string;
  /** The records of the attempts that failed. */
  attempts: readonly AttemptRecord[];
  /** The transport's own error, if there was one. */
  cause?: unknown;
}

export type { KeelError };
