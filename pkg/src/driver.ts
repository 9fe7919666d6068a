/**
 * Drives one call: does what the core says over the host's `fetch`, `AbortSignal`, timers and clock, and says what
 * happened. All promises are the call's own and are awaited in the caller's async context, so nothing of one request is
 * ever woken, polled or cleaned up by another.
 */
import type { Core } from "./core.js";
import { ACTION, type CoreHandle, DO, RECORDS, UNDER_WAY, WOKEN } from "./core-handle.js";
import { KeelError } from "./errors.js";
import { credentialOf, KeyUnavailable, type OwnedKey, secretOf, withKey } from "./pools.js";
import { type Held, Pump } from "./pump.js";
import { dateable, unpack } from "./records.js";
import { type Change, concat, type Outgoing, outgoing, type Reading, replay, textOf, unread } from "./request.js";
import { packHeaders, rewrap, synthesize, webResponse, wholeBody } from "./response.js";
import { withoutSecrets } from "./secrets.js";
import { listen, unlisten } from "./signals.js";
import type { Sinks } from "./sinks.js";
import { line, packError } from "./transport.js";
import type {
  AttemptRecord,
  CallContext,
  Classification,
  Clock,
  ErrorClass,
  KeelOptions,
  Protocol,
  Scope,
} from "./types.js";
import type { Waiters } from "./waiters.js";

const FIELD = "\u001f";
/** How a packed notice begins. */
const NOTICE = `notice${FIELD}`;
/** Longest delay a host timer takes; a longer one would fire at once. */
const MAX_DELAY = 2_147_483_647;
/** A timer that fires so much after its time says that the host had no time for anything else either. */
const LATE_MS = 50;
/** Bytes of a body that cross to the core in one piece. */
const WHOLE_BODY = 4_194_304;
/** Bytes of a part of a larger one. */
const BODY_PART = 65_536;
/** `timeouts.totalMs`, where it is not given. */
const TOTAL_MS = 600_000;
/** Characters of a request body that cross as a string. */
const TEXT_BODY = 262_144;

/** What the core is told of a key that could not be had: a failure of the user's own, whatever its cause. */
const KEY_ERROR = `${FIELD}EVENKEEL_KEY${FIELD}\u001e`;

const NO_CHANGE: readonly Change[] = [];

/** What all calls of a keel share. */
export interface Shared {
  readonly handle: CoreHandle;
  readonly sinks: Sinks;
  readonly clock: Clock;
  readonly options: KeelOptions;
  readonly maxBody: number;
  /** The keys of the pools, in the order in which the core numbers them. */
  readonly keys: readonly OwnedKey[];
  fetch(): typeof fetch;
  /** The core; `undefined` where there is none to be had and requests are to go out without it. */
  core(): Core | undefined;
}

type Interrupt = "timer" | "cancelled" | "woken";

/** What was read of an answer. */
interface Read {
  readonly bytes: Uint8Array;
  /** The rest, where the answer is longer than what may be kept. */
  readonly rest: AsyncIterator<Uint8Array, void, undefined> | null;
}

/** When something of a body came last, in the clock's time; the core asks when its timer fires. */
interface Progress {
  readonly clock: Clock;
  byteAt: number;
  contentAt: number;
}

/** Runs one call from its first attempt to its end. */
export async function drive(
  shared: Shared,
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  context: CallContext,
): Promise<Response> {
  if (shared.core() === undefined) return shared.fetch()(input, init);
  const reading: Reading = { stop: undefined };
  const made = outgoing(input, init, shared.maxBody, reading);
  let request: Outgoing;
  let left = context;
  // Not `instanceof`: what a host's Blob gives may be a promise of another realm.
  if ("then" in made) [request, left] = await whole(shared, made, reading, input, init, context);
  else request = made;
  // Asked again: it may have been replaced while a body was read.
  const core = shared.core();
  if (core === undefined)
    return request.send(shared.fetch(), request.signal ?? new AbortController().signal, NO_CHANGE);
  const call = new Drive(shared, core, request, left);
  try {
    return await call.run();
  } catch (error) {
    throw call.explain(error);
  } finally {
    call.abandon();
    call.release();
  }
}

/**
 * Waits for a request's body for as long as its caller does, and says how much of the caller's time is left. One that
 * didn't come in time leaves a request that can't be sent and has no time: the core ends it as it ends every other.
 */
async function whole(
  { clock, options }: Shared,
  made: Promise<Outgoing>,
  reading: Reading,
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  context: CallContext,
): Promise<[Outgoing, CallContext]> {
  const startedAt = clock.now();
  const deadlineMs = context.deadlineMs ?? Number.POSITIVE_INFINITY;
  const ms = Math.min(
    deadlineMs,
    context.budget?.leftMs("modelCall") ?? Number.POSITIVE_INFINITY,
    options.timeouts?.totalMs ?? Number.POSITIVE_INFINITY,
  );
  const signals = [init?.signal ?? (input as Request).signal, context.signal].filter((signal) => signal != null);
  let giveUp: () => void = ignore;
  const over = new Promise<undefined>((resolve) => {
    giveUp = () => resolve(undefined);
  });
  for (const signal of signals) listen(signal, giveUp);
  if (signals.some((signal) => signal.aborted)) giveUp();
  const timer = ms === Number.POSITIVE_INFINITY ? undefined : clock.setTimeout(giveUp, Math.min(ms, MAX_DELAY));
  try {
    const request = await Promise.race([over, made]);
    if (request !== undefined) {
      const spent = clock.now() - startedAt;
      const late = spent > 0 && context.deadlineMs !== undefined;
      return [request, late ? { ...context, deadlineMs: Math.max(0, deadlineMs - spent) } : context];
    }
    const aborted = signals.find((signal) => signal.aborted);
    const why = aborted?.reason ?? new DOMException("The body of the request did not come in time.", "TimeoutError");
    reading.stop?.(why);
    return [unread(input, init, why), aborted === undefined ? { ...context, deadlineMs: 0 } : context];
  } finally {
    if (timer !== undefined) clock.clearTimeout(timer);
    for (const signal of signals) unlisten(signal, giveUp);
  }
}

class Drive {
  readonly #shared: Shared;
  readonly #request: Outgoing;
  readonly #context: CallContext;
  readonly #core: Core;
  readonly #waiters: Waiters;
  readonly #signals: AbortSignal[] = [];
  #id = 0;
  #timer: unknown;
  #timerDue = Number.POSITIVE_INFINITY;
  #interrupt: ((why: Interrupt) => void) | undefined;
  #aborted: AbortSignal | undefined;
  #attempt: AbortController | undefined;
  #response: Response | undefined;
  #read: Read | undefined;
  #held: Held | undefined;
  #cause: unknown;
  /** What is waited for; looked at again after a timer that changed nothing. */
  #racing: Promise<unknown> | undefined;
  #streaming = false;
  #startedAt = 0;
  /** Whether the core has ended the call. */
  #ended = false;

  constructor(shared: Shared, core: Core, request: Outgoing, context: CallContext) {
    this.#shared = shared;
    this.#request = request;
    this.#context = context;
    this.#core = core;
    this.#waiters = shared.handle.waiters;
    for (const signal of [request.signal, context.signal]) {
      if (signal === null || signal === undefined) continue;
      this.#signals.push(signal);
      if (signal.aborted) this.#aborted ??= signal;
      else listen(signal, this.#onAbort);
    }
  }

  async run(): Promise<Response> {
    const core = this.#core;
    let code = this.#begin();
    for (;;) {
      this.#records(code);
      if (this.#aborted !== undefined && UNDER_WAY.has(code & ACTION)) {
        this.#stop(this.#aborted.reason);
        code = core.cancelled(this.#id, this.#now());
        continue;
      }
      switch (code & ACTION) {
        case DO.SEND:
          code = await this.#send();
          break;
        case DO.READ_BODY:
          code = await this.#body();
          break;
        case DO.SLEEP:
        case DO.WAIT:
          this.#stop(undefined);
          code = await this.#pause();
          break;
        case DO.JUDGE:
          code = this.#judge();
          break;
        case DO.DELIVER:
          this.#ended = true;
          return this.#answer();
        case DO.READ_STREAM:
          code = await this.#hold();
          break;
        case DO.COMMIT:
          return this.#pump();
        case DO.RETURN:
          this.#ended = true;
          return this.#failedAnswer();
        case DO.FAIL:
          this.#ended = true;
          return this.#fail();
        case DO.REJECT:
          this.#ended = true;
          core.ending(this.#id);
          throw this.#aborted?.reason;
        default:
          throw new Error(`evenkeel: the core answered ${code} where an action was due`);
      }
    }
  }

  /** Whatever was thrown on the way: a call that did not come to an end in the core does so now, and gives its permit back. */
  abandon(): void {
    if (this.#ended || this.#streaming) return;
    this.#ended = true;
    try {
      const tell = this.#shared.core() === this.#core;
      const code = this.#core.cancelled(this.#id, this.#now());
      this.#core.ending(this.#id);
      if (tell) this.#records(code);
    } catch {
      // The core is dead, and the call with it.
    }
  }

  /** Listeners and timers are gone when a call ends; those of a stream when the stream does. */
  release(): void {
    if (this.#streaming) return;
    this.#disarm();
    for (const signal of this.#signals) unlisten(signal, this.#onAbort);
    this.#interrupt = undefined;
  }

  /** What the caller gets for something that was thrown inside: a dead core is explained, all else is as it is. */
  explain(error: unknown): unknown {
    if (!this.#shared.handle.recover(this.#core, error)) return error;
    this.#stop(error);
    return new KeelError({
      class: "unknown",
      reason: "core_failed",
      retryable: true,
      retryAfterMs: null,
      retryAt: null,
      logicalRequestId: this.#context.logicalRequestId ?? "",
      attempts: [],
      cause: error,
    });
  }

  readonly #onAbort = (event: Event): void => {
    this.#aborted ??= event.target as AbortSignal;
    this.#interrupt?.("cancelled");
  };

  readonly #onTimer = (): void => {
    const { clock } = this.#shared;
    const late = clock.now() - this.#timerDue;
    this.#timerDue = Number.POSITIVE_INFINITY;
    if (late > LATE_MS) {
      // The process itself was busy: what came meanwhile is let in before an upstream is taken for silent.
      this.#timer = clock.setTimeout(this.#onTimer, 0);
      return;
    }
    this.#timer = undefined;
    this.#interrupt?.("timer");
  };

  #now(): number {
    return this.#shared.clock.now();
  }

  #begin(): number {
    const { options } = this.#shared;
    const { tenant, operation, logicalRequestId, priority, deadlineMs, budget } = this.#context;
    const { url, method, body, replayable } = this.#request;
    const core = this.#core;
    // Before a body is given to the core: the user's code may begin a call of its own.
    const tokens = this.#tokens(body);
    const layer = this.#layerAbove();
    const credential = strip(credentialOf(this.#request.header));
    const names = `${strip(tenant)}${FIELD}${strip(operation)}${FIELD}${strip(logicalRequestId)}`;
    const hook = options.classify !== undefined;
    const text = typeof body === "string" && body.length <= TEXT_BODY ? body : "";
    if (body !== null && text === "" && body.length > 0) this.#giveBody(body);
    this.#startedAt = this.#now();
    const answer = core.begin(
      this.#startedAt,
      url,
      `${names}${FIELD}${strip(method)}${FIELD}${credential}`,
      text,
      (priority === "batch" ? 1 : 0) | (replayable ? 2 : 0) | (layer.retry === undefined ? 0 : 4) | (hook ? 8 : 0),
      layer.retry ?? 0,
      layer.timeoutMs,
      Math.min(deadlineMs ?? Number.POSITIVE_INFINITY, budget?.leftMs("modelCall") ?? Number.POSITIVE_INFINITY),
      tokens,
    );
    this.#id = answer >>> 7;
    return answer & 127;
  }

  #giveBody(body: string | Uint8Array): void {
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    for (let at = 0; at < bytes.byteLength; at += BODY_PART) {
      this.#core.requestBody(bytes.subarray(at, at + BODY_PART));
    }
  }

  #tokens(body: string | Uint8Array | null): number {
    const { estimateTokens } = this.#shared.options;
    if (estimateTokens === undefined || body === null || body.length > WHOLE_BODY) return -1;
    try {
      const tokens = estimateTokens(textOf(body));
      return Number.isFinite(tokens) && tokens >= 0 ? Math.ceil(tokens) : -1;
    } catch {
      return -1;
    }
  }

  /** Whether an SDK above retries by itself, on which retry it is, and the time that it gives this one. */
  #layerAbove(): { retry: number | undefined; timeoutMs: number } {
    const request = this.#request;
    const stainless = request.header("x-stainless-retry-count");
    if (stainless !== null) {
      const seconds = Number(request.header("x-stainless-timeout") ?? 0);
      return { retry: wholeOf(stainless), timeoutMs: seconds > 0 && seconds < 1e7 ? seconds * 1_000 : -1 };
    }
    const aws = /attempt=(\d{1,4})/.exec(request.header("amz-sdk-request") ?? "");
    return { retry: aws === null ? undefined : Math.max(0, Number(aws[1]) - 1), timeoutMs: -1 };
  }

  async #send(): Promise<number> {
    const core = this.#core;
    this.#arm();
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#response = undefined;
    this.#read = undefined;
    this.#held = undefined;
    this.#cause = undefined;
    const key = this.#shared.keys[core.keyIndex(this.#id)];
    let outcome: Response | Interrupt;
    try {
      outcome = await this.#race(
        key === undefined
          ? this.#request.send(this.#shared.fetch(), attempt.signal, this.#changes())
          : this.#sendWith(key, attempt.signal),
      );
      while (outcome === "timer" || outcome === "woken") {
        const code = core.timer(this.#id, this.#now());
        if ((code & ACTION) !== DO.CONTINUE) return code;
        this.#arm();
        outcome = await this.#race(undefined);
      }
    } catch (error) {
      if (this.#aborted !== undefined) return DO.CONTINUE;
      this.#cause = error;
      return core.transport(this.#id, this.#now(), error instanceof KeyUnavailable ? KEY_ERROR : packError(error));
    }
    if (outcome === "cancelled") return DO.CONTINUE;
    outcome = webResponse(outcome);
    this.#response = outcome;
    if (outcome.type === "error")
      return core.transport(this.#id, this.#now(), packError(new TypeError("network error")));
    // An opaque answer (status 0), an upgrade, or something that is not a Response can't be looked into: it is passed on.
    const unreadable = outcome.status < 200 || typeof outcome.headers?.has !== "function";
    const code = core.head(
      this.#id,
      this.#now(),
      unreadable ? 204 : outcome.status,
      unreadable ? "" : packHeaders(outcome.headers),
    );
    return code;
  }

  /** What the context adds to every attempt. */
  #changes(): readonly Change[] {
    const { idempotencyKey } = this.#context;
    return idempotencyKey === undefined
      ? NO_CHANGE
      : [{ url: null, headers: [["idempotency-key", idempotencyKey]], replace: false }];
  }

  async #sendWith(key: OwnedKey, signal: AbortSignal): Promise<Response> {
    const value = await secretOf(key);
    // Given up meanwhile: a fetch that does not look at its signal would send it all the same.
    signal.throwIfAborted();
    const { url, header } = this.#request;
    return this.#request.send(this.#shared.fetch(), signal, [withKey(url, header, key, value), ...this.#changes()]);
  }

  async #body(): Promise<number> {
    const core = this.#core;
    const cap = core.readCap(this.#id);
    const progress: Progress = { clock: this.#shared.clock, byteAt: -1, contentAt: -1 };
    this.#arm();
    let outcome: Read | Interrupt;
    try {
      outcome = await this.#race(readBody(this.#response as Response, cap, progress));
      while (outcome === "timer" || outcome === "woken") {
        const code = core.bodyTimer(this.#id, this.#now(), progress.byteAt, progress.contentAt);
        if ((code & ACTION) !== DO.CONTINUE) return code;
        this.#arm();
        outcome = await this.#race(undefined);
      }
    } catch (error) {
      if (this.#aborted !== undefined) return DO.CONTINUE;
      this.#cause = error;
      return core.transport(this.#id, this.#now(), packError(error));
    }
    if (outcome === "cancelled") return DO.CONTINUE;
    this.#read = outcome;
    const { bytes, rest } = outcome;
    if (bytes.byteLength <= WHOLE_BODY) return core.body(this.#id, this.#now(), bytes, rest === null);
    for (let at = 0; at < bytes.byteLength; at += BODY_PART) {
      core.bodyPart(this.#id, this.#now(), bytes.subarray(at, at + BODY_PART));
    }
    return core.body(this.#id, this.#now(), new Uint8Array(0), rest === null);
  }

  async #pause(): Promise<number> {
    const core = this.#core;
    this.#racing = undefined;
    const waiters = this.#waiters;
    try {
      for (;;) {
        const now = this.#now();
        this.#arm(now);
        waiters.add(this.#id, () => this.#interrupt?.("woken"), now + core.wakeIn(this.#id, now), now);
        const why = await this.#race<never>(undefined);
        if (why === "cancelled") return DO.CONTINUE;
        const code = why === "woken" ? core.woken(this.#id, this.#now()) : core.timer(this.#id, this.#now());
        if ((code & ACTION) !== DO.CONTINUE && (code & ACTION) !== DO.WAIT) return code;
        this.#records(code);
      }
    } finally {
      waiters.remove(this.#id);
    }
  }

  #judge(): number {
    const core = this.#core;
    const [errorClass, retryable, scope, hint, reason, rule, provider, model] = core.verdict(this.#id).split(FIELD);
    const builtIn: Classification = {
      class: errorClass as ErrorClass,
      retryable: retryable === "1",
      scope: scope as Scope,
      waitHintMs: hint ? Number(hint) : null,
      reason: reason ?? "",
      rule: rule ?? "",
    };
    const verdict = this.#askUser(builtIn, provider ?? "", model || null);
    if (verdict === undefined) return core.judged(this.#id, this.#now(), "", false, -1);
    const packed = `${verdict.class}${FIELD}${verdict.scope}${FIELD}${strip(verdict.reason)}`;
    return core.judged(this.#id, this.#now(), packed, verdict.retryable === true, verdict.waitHintMs ?? -1);
  }

  /** The user's verdict; `undefined` for none, and for one that is none: a hook must not be able to lose a call. */
  #askUser(builtIn: Classification, provider: string, model: string | null): Classification | undefined {
    const response = this.#response;
    try {
      const status = response?.status ?? null;
      const headers = new Headers(response?.headers);
      const signal = { provider, model, status, headers, body: this.#seen(), error: this.#cause };
      const verdict = this.#shared.options.classify?.(signal, { ...builtIn });
      if (verdict === undefined || verdict === null) return undefined;
      const { class: errorClass, retryable, scope, waitHintMs, reason } = verdict;
      const hint = typeof waitHintMs === "number" && waitHintMs >= 0 ? waitHintMs : null;
      return {
        class: `${errorClass}` as ErrorClass,
        retryable: retryable === true,
        scope: `${scope}` as Scope,
        waitHintMs: hint,
        reason: `${reason ?? builtIn.reason}`,
        rule: builtIn.rule,
      };
    } catch {
      return undefined;
    }
  }

  /** The beginning of what the failed attempt gave, as text. */
  #seen(): string {
    const held = this.#held;
    if (held === undefined) return this.#read === undefined ? "" : textOf(this.#read.bytes.subarray(0, BODY_PART));
    const chunks = held.last === undefined ? held.chunks : [...held.chunks, held.last];
    return textOf(concat(chunks, sizeOf(chunks)).subarray(0, BODY_PART));
  }

  /** The good answer: as it came, around the body that was read. */
  #answer(): Response {
    const response = this.#response as Response;
    const held = this.#held;
    if (held !== undefined)
      return rewrap(response, concat(held.chunks, sizeOf(held.chunks)) as Uint8Array<ArrayBuffer>);
    const read = this.#read;
    return read === undefined ? response : rewrap(response, this.#bodyOf(read));
  }

  /** A body that was read; where it goes on after what may be kept, the caller's signal and the total stay in force. */
  #bodyOf(read: Read): BodyInit {
    const { rest } = read;
    if (rest === null) return wholeBody(read.bytes as Uint8Array<ArrayBuffer>);
    this.#streaming = true;
    const clock = this.#shared.clock;
    const left = this.#startedAt + (this.#shared.options.timeouts?.totalMs ?? TOTAL_MS) - clock.now();
    this.#disarm();
    this.#timer = clock.setTimeout(this.#onTimer, Math.max(0, left));
    const over = (): void => {
      this.#streaming = false;
      this.release();
    };
    return replay([read.bytes], {
      next: async () => {
        const next = await this.#race(rest.next());
        if (typeof next !== "string") {
          if (next.done === true) over();
          return next;
        }
        const reason = next === "cancelled" ? this.#aborted?.reason : new Error("evenkeel: the answer took too long");
        this.#stop(reason);
        over();
        throw reason;
      },
      return: async () => {
        over();
        await rest.return?.();
        return { done: true, value: undefined };
      },
    });
  }

  /** The last upstream answer as it came, plus what happened. */
  #failedAnswer(): Response {
    const pass = this.#held === undefined ? 0 : this.#core.pass(this.#id);
    const ending = this.#ending();
    const response = this.#response as Response;
    const body =
      this.#held === undefined
        ? this.#bodyOf(this.#read as Read)
        : brokenStream(this.#held, pass, new KeelError(ending));
    this.#held?.reader.cancel().catch(ignore);
    return rewrap(response, body, {
      "x-should-retry": "false",
      "x-evenkeel-logical-request-id": ending.logicalRequestId,
      "x-evenkeel-attempts": String(ending.attemptCount),
      "x-evenkeel-class": ending.class,
      "x-evenkeel-reason": ending.reason,
    });
  }

  #fail(): Response {
    this.#stop(undefined);
    const ending = this.#ending();
    const error = new KeelError(ending);
    const mode = this.#shared.options.transportFailure ?? "auto";
    const obeyed = mode === "response" || (mode === "auto" && this.#request.header("x-stainless-lang") !== null);
    if (!obeyed) throw error;
    return synthesize({
      protocol: ending.protocol,
      errorClass: ending.class,
      reason: ending.reason,
      message: error.message,
      retryAfterMs: ending.retryAfterMs,
      logicalRequestId: ending.logicalRequestId,
      attempts: ending.attemptCount,
    });
  }

  #ending() {
    const packed = this.#core.ending(this.#id);
    const end = packed.indexOf("\u001e");
    const fields = packed.slice(0, end).split(FIELD);
    const attempts: AttemptRecord[] = [];
    unpack(packed.slice(end + 1), (record) => {
      if (record.type === "attempt") attempts.push(record);
    });
    return {
      class: fields[0] as ErrorClass,
      reason: fields[1] ?? "",
      retryable: fields[2] === "1",
      retryAfterMs: fields[3] ? Number(fields[3]) : null,
      retryAt: fields[4] ? new Date(dateable(Number(fields[4]))) : null,
      attemptCount: Number(fields[5]),
      logicalRequestId: fields[6] ?? "",
      protocol: fields[8] as Protocol,
      attempts,
      cause: withoutSecrets(this.#cause, this.#request),
    };
  }

  /** Reads a stream up to its commit point, its end or its failure; what came is held here. */
  async #hold(): Promise<number> {
    const core = this.#core;
    const body = (this.#response as Response).body;
    if (body === null) return core.streamEnd(this.#id, this.#now());
    const reader = body.getReader();
    const held: Uint8Array[] = [];
    this.#held = { reader, chunks: held, last: undefined };
    for (;;) {
      this.#arm();
      let outcome: ReadableStreamReadResult<Uint8Array> | Interrupt;
      try {
        outcome = await this.#race(reader.read());
        while (outcome === "timer" || outcome === "woken") {
          const code = core.timer(this.#id, this.#now());
          if ((code & ACTION) !== DO.CONTINUE) return code;
          this.#arm();
          outcome = await this.#race(undefined);
        }
      } catch (error) {
        if (this.#aborted !== undefined) return DO.CONTINUE;
        this.#cause = error;
        return core.transport(this.#id, this.#now(), packError(error));
      }
      if (outcome === "cancelled") return DO.CONTINUE;
      if (outcome.done) return core.streamEnd(this.#id, this.#now());
      const code = core.chunk(this.#id, this.#now(), outcome.value);
      if ((code & ACTION) === DO.CONTINUE || (code & ACTION) === DO.COMMIT) held.push(outcome.value);
      else this.#held.last = outcome.value;
      if ((code & ACTION) !== DO.CONTINUE) return code;
    }
  }

  /** From the commit point on: everything that comes goes through, and the stream's end is told as it was. */
  #pump(): Response {
    const response = this.#response as Response;
    const held = this.#held ?? {
      reader: (response.body as ReadableStream<Uint8Array>).getReader(),
      chunks: [],
      last: undefined,
    };
    this.#held = held;
    // It holds the chunk that it came to.
    this.#racing = undefined;
    this.#streaming = true;
    // A reaction runs in the async context in which it was asked for: the caller's, whoever reads the stream.
    let tell: (packed: string) => void = ignore;
    void new Promise<string>((resolve) => {
      tell = resolve;
    }).then((packed) => this.#shared.sinks.emitPacked(packed));
    const pump = new Pump(held.reader, held.chunks, {
      now: () => this.#now(),
      chunk: (bytes, now) => this.#core.chunk(this.#id, now, bytes),
      end: () => this.#core.streamEnd(this.#id, this.#now()),
      idle: (ms) => void this.#core.idle(this.#id, this.#now(), ms),
      broken: (error) => {
        this.#cause = error;
        return this.#core.transport(this.#id, this.#now(), packError(error));
      },
      timer: () => this.#core.timer(this.#id, this.#now()),
      cancelled: () => this.#core.cancelled(this.#id, this.#now()),
      arm: (now) => this.#arm(now),
      pass: () => this.#core.pass(this.#id),
      tail: () => this.#core.tail(this.#id),
      stop: (reason) => this.#stop(reason),
      error: () => new KeelError(this.#ending()),
      finished: (code) => {
        this.#wake(code);
        if ((code & RECORDS) !== 0) tell(this.#take());
        if ((code & ACTION) === DO.REJECT) this.#core.ending(this.#id);
        this.#streaming = false;
        this.release();
      },
      explain: (error) => this.explain(error),
    });
    this.#interrupt = (why) => {
      if (why !== "woken") pump.interrupt(why, this.#aborted?.reason);
    };
    // The caller may have given up between the chunk that committed and now.
    if (this.#aborted !== undefined) this.#interrupt("cancelled");
    return rewrap(response, pump.stream);
  }

  /** Hands out what an answer says is there: calls that should ask again, and records. */
  #records(code: number): void {
    this.#wake(code);
    if ((code & RECORDS) !== 0) this.#shared.sinks.emitPacked(this.#take());
  }

  #take(): string {
    const packed = this.#core.takeRecords();
    // A notice tells of a change in the control state that should outlive the core.
    this.#shared.handle.keep(this.#core, packed.includes(NOTICE));
    return packed;
  }

  #wake(code: number): void {
    if ((code & WOKEN) === 0) return;
    for (let id = this.#core.takeWoken(); id !== 0; id = this.#core.takeWoken()) this.#waiters.wake(id);
  }

  /** Ends what the attempt is doing, whether the host's fetch listens to its signal or not. */
  #stop(reason: unknown): void {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    this.#attempt = undefined;
    attempt.abort(reason);
    const response = this.#response;
    // A fetch that does not look at its signal may answer later still: nobody will read that.
    if (response === undefined) (this.#racing as Promise<Response | undefined> | undefined)?.then(discard, ignore);
    if (response?.body && !response.body.locked) response.body.cancel(reason).catch(ignore);
    this.#held?.reader.cancel(reason).catch(ignore);
    this.#read?.rest?.return?.().catch(ignore);
  }

  /** One timer a call: it is moved only if it has to fire earlier, and asks the core when it fires. */
  #arm(now = this.#now()): void {
    const clock = this.#shared.clock;
    const ms = this.#core.wakeIn(this.#id, now);
    const due = now + ms;
    if (due >= this.#timerDue && this.#timer !== undefined) return;
    this.#disarm();
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#timerDue = due;
    this.#timer = clock.setTimeout(this.#onTimer, Math.min(ms, MAX_DELAY));
  }

  #disarm(): void {
    if (this.#timer === undefined) return;
    this.#shared.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerDue = Number.POSITIVE_INFINITY;
  }

  /** Waits for a promise, the timer or the caller's signal; without a promise, for the one that was waited for last. */
  #race<T>(promise: Promise<T> | undefined): Promise<T | Interrupt> {
    // What a user's fetch gives may be no promise.
    if (promise !== undefined) this.#racing = "then" in Object(promise) ? promise : Promise.resolve(promise);
    const racing = this.#racing as Promise<T> | undefined;
    return new Promise((resolve, reject) => {
      this.#interrupt = resolve;
      racing?.then(resolve, reject);
      if (this.#aborted !== undefined) resolve("cancelled");
    });
  }
}

/** Reads a body to its end, or to `cap` bytes. */
async function readBody(response: Response, cap: number, progress: Progress): Promise<Read> {
  const body = response.body;
  if (body === null || body === undefined) {
    // Some test doubles have no stream; what they have is read as a whole.
    const bytes =
      typeof response.arrayBuffer === "function" && body === undefined
        ? new Uint8Array(await response.arrayBuffer())
        : new Uint8Array(0);
    return { bytes, rest: null };
  }
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: concat(chunks, size), rest: null };
    chunks.push(value);
    size += value.byteLength;
    progress.byteAt = progress.clock.now();
    if (!isBlank(value)) progress.contentAt = progress.byteAt;
    if (size > cap) {
      return {
        bytes: concat(chunks, size),
        rest: {
          next: async () => {
            const more = await reader.read();
            return more.done ? { done: true, value: undefined } : { done: false, value: more.value };
          },
          return: async () => {
            await reader.cancel();
            return { done: true, value: undefined };
          },
        },
      };
    }
  }
}

/** Whether there is nothing but blanks and line ends in it. */
function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 32 || byte === 10 || byte === 13 || byte === 9);
}

/** The beginning of a stream that failed before it was given on, with the error event that the upstream sent. */
function brokenStream(held: Held, pass: number, error: KeelError): ReadableStream<Uint8Array<ArrayBuffer>> {
  const chunks = held.last === undefined ? held.chunks : [...held.chunks, held.last.subarray(0, pass)];
  let at = 0;
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull(controller) {
        const next = chunks[at];
        at += 1;
        if (next === undefined) controller.error(error);
        else if (next.byteLength > 0) controller.enqueue(next as Uint8Array<ArrayBuffer>);
      },
    },
    { highWaterMark: 0 },
  );
}

function sizeOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((size, chunk) => size + chunk.byteLength, 0);
}

/** A name as it may cross, packed with others. */
function strip(text: string | undefined): string {
  return text === undefined ? "" : line(text, 512);
}

function wholeOf(text: string): number {
  const n = Number(text);
  return Number.isInteger(n) && n >= 0 && n < 1_000 ? n : 0;
}

function discard(late: Response | undefined): void {
  if (late?.body && !late.body.locked) late.body.cancel().catch(ignore);
}

function ignore(): void {}
