/** Checks the options of `createKeel` and turns them into the flat values that the core takes. */

import { Budget } from "./budget.js";
import { boolean, type Check, func, items, ms, number, object, oneOf, orFalse, some, string, whole } from "./checks.js";
import { CLASSES, KeelConfigError } from "./errors.js";
import { FIELD, ITEM, RECORD } from "./packed.js";
import { SENDABLE } from "./pools.js";
import type {
  BreakerOptions,
  BudgetParts,
  CallContext,
  Clock,
  KeelOptions,
  Pool,
  ProviderOptions,
  RetryOptions,
  Rule,
  StreamOptions,
  TimeoutOptions,
} from "./types.js";

/** The limits that cross to the core, in the order in which `policy` in `src/host/mod.rs` reads them. */
export const POLICY_FIELDS = [
  "retry.maxAttempts",
  "retry.baseMs",
  "retry.capMs",
  "retry.maxWaitMs",
  "retry.jitter",
  "retry.ambiguous",
  "timeouts.totalMs",
  "timeouts.attemptMs",
  "timeouts.firstByteMs",
  "timeouts.firstTokenMs",
  "timeouts.chunkGapMs",
  "timeouts.contentGapMs",
  "timeouts.minAttemptMs",
  "stream.commitOn",
  "stream.maxHeldBytes",
  "body.maxBufferedBytes",
  "preset",
] as const;

/** Every protocol name, in the order of `src/protocol.rs`. */
export const PROTOCOLS = [
  "openai.chat",
  "openai.responses",
  "openai.completions",
  "openai.embeddings",
  "openai.images",
  "anthropic.messages",
  "gemini.generate",
  "gemini.interactions",
  "bedrock.converse",
  "bedrock.converse-stream",
  "bedrock.invoke",
  "bedrock.invoke-stream",
  "mistral.chat",
  "cohere.chat",
  "ollama.chat",
  "workers-ai.run",
  "huggingface.inference",
  "tgi.generate",
  "unknown",
] as const;

/** The names of `src/classify/providers`. */
export const PROVIDERS: readonly string[] = (
  "anthropic azure bedrock cerebras cohere deepseek fireworks gemini groq huggingface llama.cpp lmstudio mistral " +
  "ollama openai openrouter perplexity sglang together vertex vllm workers-ai xai"
).split(" ");

const JITTERS = ["full", "equal", "decorrelated", "none"] as const;
const COMMITS = ["head", "first-event", "first-content", "end"] as const;
const PRESETS = ["standard", "interactive", "background"] as const;
const MAX_BYTES = 1_073_741_824;

/** A clock may have more than it needs, and have it from its class. */
const clock: Check = (value, path) => {
  for (const name of ["now", "setTimeout", "clearTimeout"] as const) {
    func((value as Partial<Clock> | null)?.[name], `${path}.${name}`);
  }
};

const sink: Check = (value, path) => {
  const sinks: unknown[] = Array.isArray(value) ? value : [value];
  sinks.forEach((one, at) => {
    const isObject = typeof one === "object" && one !== null;
    if (typeof one !== "function" && !(isObject && typeof (one as { write?: unknown }).write === "function")) {
      throw new KeelConfigError(
        Array.isArray(value) ? `${path}[${at}]` : path,
        one,
        "a function, or an object with a function `write`",
      );
    }
  });
};

const RETRY: Record<string, Check> = {
  maxAttempts: whole(1, 20),
  maxTotalAttempts: whole(1, 100),
  baseMs: ms(0, 3_600_000),
  capMs: ms(0, 3_600_000),
  maxWaitMs: ms(0),
  jitter: oneOf(JITTERS),
  ambiguous: oneOf(["allow", "never"]),
};

const TIMEOUTS = object({
  totalMs: ms(1),
  attemptMs: ms(1),
  connectMs: ms(1),
  firstByteMs: ms(1),
  firstTokenMs: ms(1),
  chunkGapMs: ms(1),
  contentGapMs: ms(1),
  minAttemptMs: ms(0),
});

const match: Check = (value, path) => {
  if (!Array.isArray(value) || value.length === 0)
    throw new KeelConfigError(path, value, "an array of hosts or URL prefixes");
  value.forEach((one: unknown, at) => {
    const pattern =
      typeof one === "object" && one !== null && typeof (one as { hostname?: unknown }).hostname === "string";
    if (!pattern && (typeof one !== "string" || one.length === 0 || one.length > 512)) {
      throw new KeelConfigError(`${path}[${at}]`, one, "a host, a URL prefix or a URLPattern");
    }
  });
};

const word: Check = (value, path) => {
  if (typeof value !== "string" || value === "" || new TextEncoder().encode(value).length > 256)
    throw new KeelConfigError(path, value, "a string of 1 to 256 bytes");
};

const status: Check = (value, path) => {
  const text = typeof value === "number" || typeof value === "string" ? String(value) : "";
  const [, from, to] = /^(?:[1-5]xx| *([1-5]\d\d) *(?:- *([1-5]\d\d) *)?)$/.exec(text) ?? ["", "1", "0"];
  if (Number(from) > Number(to))
    throw new KeelConfigError(path, value, 'a status of 100 to 599, a range "500-599", or a family "5xx"');
};

const RULE = object({
  name: word,
  status: some(status),
  code: some(word),
  type: some(word),
  text: some(word),
  class: oneOf(CLASSES),
  scope: oneOf(["request", "key", "bucket", "model", "provider"]),
  retryable: boolean,
  waitMs: ms(0, 31_622_400_000),
});

/** As `CustomRule::parse_all` in `src/classify/custom.rs`, which reads them when the core is made. */
const rule: Check = (value, path) => {
  RULE(value, path);
  const { class: is, status, code, type, text } = value as Partial<Rule>;
  if (is === undefined) throw new KeelConfigError(`${path}.class`, is, "an error class");
  if ((status ?? code ?? type ?? text) === undefined)
    throw new KeelConfigError(path, value, "at least one of status, code, type and text");
};

const BREAKER = orFalse(
  object({
    failureRate: number(0.001, 1),
    minimumRequests: whole(1, 1_000_000),
    windowMs: ms(1_000, 3_600_000),
    consecutiveFailures: whole(1, 1_000_000),
    cooldownMs: ms(1, 3_600_000),
  }),
);

const PROVIDER = object({
  breaker: BREAKER,
  match,
  protocol: oneOf(PROTOCOLS),
  rules: items(0, 256, rule),
  retry: object(RETRY),
  timeouts: TIMEOUTS,
});

/** An object whose members are named by the user. */
function byName(expected: string, check: Check): Check {
  return (value, path) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw new KeelConfigError(path, value, expected);
    for (const [name, member] of Object.entries(value)) {
      NAME(name, `${path}.${name.slice(0, 40)}`);
      check(member, `${path}.${name}`);
    }
  };
}

const NAME = string(128);

/** Whether requests can get this name without a `match`: a host is a provider's name where that is not known. */
const isProvider = (name: string): boolean => PROVIDERS.includes(name) || /[.:]|^localhost$/.test(name);
const NAMES = `the name of a built-in provider (${PROVIDERS.join(", ")}), or a host`;

const providers = byName("an object by provider name", PROVIDER);

const TENANT = object({
  concurrency: whole(1, 1_000_000),
  requestsPerMinute: whole(1, 1e9),
  tokensPerMinute: whole(1, 1e12),
  share: number(0.001, 1),
  weight: whole(1, 1_000),
});

const tenants = byName("an object by tenant name", (limits, path) => {
  if (limits !== undefined) TENANT(limits, path);
});

const KEY = object(
  {
    id: string(128),
    value: (value, path) => {
      // Never shown, whatever it is: somebody may have put the key itself into the wrong place.
      if (typeof value !== "function" && !(typeof value === "string" && SENDABLE.test(value)))
        throw new KeelConfigError(
          path,
          typeof value === "string" ? "" : value,
          "a key without blanks or line breaks, or a function that gives it",
        );
    },
  },
  ["id", "value"],
);

const each = (check: Check): Check => items(1, 1_000_000, check);

const url: Check = (value, path) => {
  let protocol = "";
  try {
    protocol = new URL(value as string).protocol;
  } catch {
    // Told below.
  }
  if (protocol !== "https:" && protocol !== "http:") throw new KeelConfigError(path, value, "an absolute http(s) URL");
};

const POOL = object(
  {
    provider: string(128),
    organisation: string(128),
    keys: each(KEY),
    models: each(string(128)),
    baseURL: url,
    weight: whole(1, 1_000),
    preflight: boolean,
  },
  ["provider", "organisation", "keys"],
);

const pools: Check = (value, path) => {
  if (Array.isArray(value) && value.length === 0) return;
  each(POOL)(value, path);
  const keys = new Set<string>();
  const organisations = new Set<string>();
  (value as Pool[]).forEach((pool, at) => {
    const organisation = `${pool.provider}/${pool.organisation}`;
    if (organisations.has(organisation)) {
      throw new KeelConfigError(
        `${path}[${at}].organisation`,
        pool.organisation,
        "each organisation of a provider in one pool: its keys share one limit",
      );
    }
    organisations.add(organisation);
    pool.keys.forEach(({ id }, place) => {
      if (keys.has(id))
        throw new KeelConfigError(`${path}[${at}].keys[${place}].id`, id, "an id that no other key has");
      keys.add(id);
    });
  });
};

const OPTIONS = object({
  breaker: BREAKER,
  concurrency: orFalse(
    object({
      max: whole(1, 1_000_000),
      min: whole(1, 1_000_000),
      adaptive: boolean,
      queueMs: ms(0),
      maxQueued: whole(0, 1_000_000),
    }),
  ),
  tenants,
  pools,
  preset: oneOf(PRESETS),
  ledger: sink,
  timeouts: TIMEOUTS,
  retry: object({
    ...RETRY,
    budget: orFalse(object({ ratio: number(0, 10), minPerSecond: number(0, 1_000) })),
  }),
  providers,
  stream: object({ commitOn: oneOf(COMMITS), maxHeldBytes: whole(1_024, MAX_BYTES) }),
  body: object({ maxBufferedBytes: whole(1_024, MAX_BYTES) }),
  transportFailure: oneOf(["auto", "throw", "response"]),
  onCoreFailure: oneOf(["pass-through", "fail"]),
  classify: func,
  estimateTokens: func,
  hashKey: string(4_096),
  fetch: func,
  clock,
  seed: whole(0, Number.MAX_SAFE_INTEGER),
});

const signal: Check = (value, path) => {
  if (typeof (value as AbortSignal | null)?.aborted !== "boolean")
    throw new KeelConfigError(path, value, "an AbortSignal");
};

const budget: Check = (value, path) => {
  if (!(value instanceof Budget)) throw new KeelConfigError(path, value, "a budget made by keel.budget()");
};

const PARTS = object({ totalMs: ms(1), inputBuildMs: ms(0), modelCallMs: ms(0), postprocessMs: ms(0) });

/** Checks the parts of a budget; throws {@link KeelConfigError}. */
export function checkParts(parts: BudgetParts): BudgetParts {
  PARTS(parts, "");
  const { totalMs, inputBuildMs = 0, modelCallMs = 0, postprocessMs = 0 } = parts;
  if (totalMs === undefined) throw new KeelConfigError("totalMs", undefined, "milliseconds from 1");
  const sum = inputBuildMs + modelCallMs + postprocessMs;
  if (sum > totalMs) throw new KeelConfigError("totalMs", totalMs, `at least the sum of its parts (${sum})`);
  return parts;
}

const CONTEXT = object({
  budget,
  risk: oneOf(["normal", "high"]),
  tenant: string(1_048_576),
  operation: string(1_024),
  priority: oneOf(["interactive", "batch"]),
  deadlineMs: ms(0),
  logicalRequestId: string(128),
  idempotencyKey: string(255),
  signal,
});

/** Checks a context; throws {@link KeelConfigError}. */
export function checkContext(context: CallContext): CallContext {
  CONTEXT(context, "");
  return context;
}

/** What the core is made with. */
export interface CoreConfig {
  readonly limits: Float64Array;
  /** The control plane's settings, packed as `src/settings.rs` reads them. */
  readonly control: string;
  readonly hashKey: string;
  readonly providers: readonly ProviderConfig[];
}

/** A provider as the core takes it. */
export interface ProviderConfig {
  readonly name: string;
  readonly match: string;
  readonly protocol: string;
  readonly rules: string;
  readonly limits: Float64Array;
}

/** The host's own clock and timers, looked up at each use: fake timers that a test installs later are then obeyed. */
export const HOST_CLOCK: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, delay) => setTimeout(callback, delay),
  clearTimeout: (handle) => {
    clearTimeout(handle as number);
  },
};

function index(values: readonly string[], value: string | undefined): number {
  return value === undefined ? Number.NaN : values.indexOf(value);
}

/** A single target has no use for more attempts than all targets together may make. */
function attempts({ maxAttempts, maxTotalAttempts }: RetryOptions): number {
  if (maxTotalAttempts === undefined) return maxAttempts ?? Number.NaN;
  return Math.min(maxAttempts ?? 3, maxTotalAttempts, 20);
}

function limits(
  retry: RetryOptions,
  timeouts: TimeoutOptions,
  stream: StreamOptions,
  maxBody?: number,
  preset?: string,
): Float64Array {
  // A base above the default cap means that the cap has to follow; one that contradicts the user's own cap is an error.
  const cap = retry.capMs ?? (retry.baseMs !== undefined && retry.baseMs > 4_000 ? retry.baseMs : undefined);
  return Float64Array.of(
    attempts(retry),
    retry.baseMs ?? Number.NaN,
    cap ?? Number.NaN,
    retry.maxWaitMs ?? Number.NaN,
    index(JITTERS, retry.jitter),
    retry.ambiguous === undefined ? Number.NaN : Number(retry.ambiguous === "allow"),
    timeouts.totalMs ?? Number.NaN,
    timeouts.attemptMs ?? Number.NaN,
    timeouts.firstByteMs ?? Number.NaN,
    timeouts.firstTokenMs ?? Number.NaN,
    timeouts.chunkGapMs ?? Number.NaN,
    timeouts.contentGapMs ?? Number.NaN,
    timeouts.minAttemptMs ?? Number.NaN,
    index(COMMITS, stream.commitOn),
    stream.maxHeldBytes ?? Number.NaN,
    maxBody ?? Number.NaN,
    index(PRESETS, preset),
  );
}

function checkBackoff(retry: RetryOptions | undefined, path: string): void {
  if (retry?.capMs !== undefined && retry.baseMs !== undefined && retry.capMs < retry.baseMs) {
    throw new KeelConfigError(`${path}.capMs`, retry.capMs, `at least ${path}.baseMs (${retry.baseMs})`);
  }
}

function json(value: unknown, path: string): string {
  try {
    return JSON.stringify(value);
  } catch {
    throw new KeelConfigError(path, value, "what JSON can hold");
  }
}

function provider(name: string, options: ProviderOptions): ProviderConfig {
  const patterns = (options.match ?? []).map((one) => {
    if (typeof one === "string") return one.includes("://") ? one : one.toLowerCase();
    return one.port === "" || one.port === "*"
      ? one.hostname.toLowerCase()
      : `${one.hostname.toLowerCase()}:${one.port}`;
  });
  const own = options.retry !== undefined || options.timeouts !== undefined;
  return {
    name,
    match: patterns.join(FIELD),
    protocol: options.protocol ?? "",
    rules: options.rules === undefined ? "" : json(options.rules, `providers.${name}.rules`),
    limits: own ? limits(options.retry ?? {}, options.timeouts ?? {}, {}) : new Float64Array(),
  };
}

/** Thousandths, for the core counts in whole numbers. */
function milli(value: number | undefined): string {
  return value === undefined ? "" : String(Math.round(value * 1_000));
}

function count(value: number | undefined): string {
  return value === undefined ? "" : String(Math.ceil(value));
}

function breakerRecord(breaker: BreakerOptions | false, provider: string): string[] {
  if (breaker === false) return ["breaker", "off", provider];
  const { failureRate, minimumRequests, windowMs, consecutiveFailures, cooldownMs } = breaker;
  const numbers = [minimumRequests, windowMs, consecutiveFailures, cooldownMs].map(count);
  return ["breaker", milli(failureRate), ...numbers, provider];
}

function control({
  retry,
  breaker,
  concurrency,
  tenants: named,
  pools: keyed,
  providers: custom,
}: KeelOptions): string {
  const records: string[][] = [];
  const budget = retry?.budget;
  records.push(budget === false ? ["budget", "off"] : ["budget", milli(budget?.ratio), milli(budget?.minPerSecond)]);
  if (breaker !== undefined) records.push(breakerRecord(breaker, ""));
  for (const [name, own] of Object.entries(custom ?? {})) {
    if (own.breaker !== undefined) records.push(breakerRecord(own.breaker, name));
  }
  if (concurrency === false) records.push(["concurrency", "off"]);
  else if (concurrency !== undefined) {
    const { max, min, adaptive, queueMs, maxQueued } = concurrency;
    records.push([
      "concurrency",
      count(max),
      count(min),
      adaptive === false ? "0" : "1",
      count(queueMs),
      count(maxQueued),
    ]);
  }
  for (const [name, limits] of Object.entries(named ?? {})) {
    if (limits === undefined) continue;
    const { concurrency: calls, requestsPerMinute, tokensPerMinute, share, weight } = limits;
    const packed = [count(calls), count(requestsPerMinute), count(tokensPerMinute), milli(share), count(weight)];
    records.push(["tenant", name === "default" ? "" : name, ...packed]);
  }
  for (const { provider: name, organisation, weight, models, keys, preflight } of keyed ?? []) {
    records.push([
      "pool",
      name,
      organisation,
      count(weight),
      (models ?? []).join(ITEM),
      keys.map(({ id }) => id).join(ITEM),
      preflight === true ? "1" : "",
    ]);
  }
  return records.map((fields) => fields.join(FIELD)).join(RECORD);
}

/** Checks options and flattens them; throws {@link KeelConfigError} with path, what it got and what it should be. */
export function readOptions(options: KeelOptions): CoreConfig {
  OPTIONS(options, "");
  const retry = options.retry ?? {};
  checkBackoff(retry, "retry");
  const { min, max } = options.concurrency || {};
  if (min !== undefined && max !== undefined && min > max)
    throw new KeelConfigError("concurrency.min", min, `at most concurrency.max (${max})`);
  const entries = Object.entries(options.providers ?? {});
  for (const [name, own] of entries) {
    checkBackoff(own.retry, `providers.${name}.retry`);
    if (own.match === undefined && !isProvider(name))
      throw new KeelConfigError(`providers.${name}.match`, undefined, `hosts or URL prefixes; without them ${NAMES}`);
  }
  (options.pools ?? []).forEach(({ provider: name }, at) => {
    if (!isProvider(name) && !entries.some(([own]) => own === name))
      throw new KeelConfigError(`pools[${at}].provider`, name, `a name of your own from providers, ${NAMES}`);
  });
  return {
    limits: limits(retry, options.timeouts ?? {}, options.stream ?? {}, options.body?.maxBufferedBytes, options.preset),
    control: control(options),
    hashKey: options.hashKey ?? "",
    providers: entries.map(([name, own]) => provider(name, own)),
  };
}
