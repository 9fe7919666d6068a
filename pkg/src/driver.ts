/**
 * Drives one call: does what the core says over the host's `fetch`, `AbortSignal`, timers and clock, and says what
 * happened. All promises are the call's own and are awaited in the caller's async context.
 */

import { type Progress, type Read, readBody } from "./answer-body.js";
import { Attempt } from "./attempt.js";
import { BODY_PART, begin } from "./begin.js";
import type { Core } from "./core.js";
import { ACTION, type CoreHandle, DO, RECORDS, UNDER_WAY, WOKEN } from "./core-handle.js";
import { type Ending, unpackEnding } from "./ending.js";
import { failure, KeelError } from "./errors.js";
import { Held } from "./held.js";
import { judge } from "./hook.js";
import { ignore } from "./ignore.js";
import { whole } from "./late-body.js";
import { Flight } from "./lost.js";
import { KeyUnavailable, type OwnedKey, secretOf, withKey } from "./pools.js";
import { Pump } from "./pump.js";
import { type Change, type Outgoing, outgoing, type Reading, replay, textOf } from "./request.js";
import { headersOfFailure, packHeaders, rebuilt, rewrap, synthesize, webResponse } from "./response.js";
import { withoutSecrets } from "./secrets.js";
import type { Sinks } from "./sinks.js";
import { packError } from "./transport.js";
import type { CallContext, Clock, KeelOptions } from "./types.js";
import type { Waiters } from "./waiters.js";
import { Waiting } from "./waiting.js";

/** How a packed notice begins. */
const NOTICE = "notice\u001f";
/** Bytes of a body that cross to the core in one piece. */
const WHOLE_BODY = 4_194_304;

/** What the core is told of a key that could not be had: a failure of the user's own, whatever its cause. */
const KEY_ERROR = "\u001fEVENKEEL_KEY\u001f\u001e";

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

/** Runs one call from its first attempt to its end. */
export async function drive(
  shared: Shared,
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  context: CallContext,
): Promise<Response> {
  let core = shared.core();
  if (core === undefined) return shared.fetch()(input, init);
  const reading: Reading = { stop: undefined };
  const made = outgoing(input, init, shared.maxBody, reading);
  let request: Outgoing;
  let left = context;
  // Not `instanceof`: what a host's Blob gives may be a promise of another realm.
  if ("then" in made) {
    [request, left] = await whole(shared, made, reading, input, init, context);
    // Asked again: it may have been replaced while a body was read.
    core = shared.core();
    if (core === undefined) return request.send(shared.fetch(), { signal: request.signal }, NO_CHANGE);
  } else {
    request = made;
  }
  return new Drive(shared, core, request, left).run();
}

class Drive extends Waiting {
  readonly #shared: Shared;
  readonly #request: Outgoing;
  readonly #context: CallContext;
  readonly #waiters: Waiters;
  readonly #flight: Flight;
  #attempt: Attempt | undefined;
  #sent: PromiseLike<Response> | undefined;
  #response: Response | undefined;
  /** Of the body that is being read. */
  #progress: Progress | undefined;
  #read: Read | undefined;
  #held: Held | undefined;
  #cause: unknown;
  /** Whether the caller has its answer, and reads on in it. */
  #streaming = false;
  /** Whether the core has ended the call. */
  #ended = false;

  constructor(shared: Shared, core: Core, request: Outgoing, context: CallContext) {
    super(core, shared.clock, [request.signal, context.signal]);
    this.#shared = shared;
    this.#request = request;
    this.#context = context;
    this.#waiters = shared.handle.waiters;
    this.#flight = new Flight(request, context);
  }

  async run(): Promise<Response> {
    try {
      let code = this.#begin();
      for (;;) {
        let action = this.#heed(code);
        if (this.aborted !== undefined && UNDER_WAY.has(action)) {
          this.#tellProgress();
          this.#stop(this.aborted.reason);
          action = this.#heed(this.core.cancelled(this.id, this.#now()));
        }
        switch (action) {
          case DO.SEND: {
            const response = await this.#send();
            code = typeof response === "number" ? response : this.#head(response);
            break;
          }
          case DO.READ_BODY: {
            const read = await this.#readBody();
            code = typeof read === "number" ? read : this.#body(read);
            break;
          }
          case DO.READ_STREAM: {
            const chunk = await this.#readChunk();
            code = typeof chunk === "number" ? chunk : this.#chunk(chunk);
            break;
          }
          case DO.SLEEP:
          case DO.WAIT:
            this.#stop(undefined);
            code = await this.#pause();
            break;
          case DO.JUDGE: {
            const failure = { response: this.#response, body: this.#seen(), error: this.#cause };
            code = judge(this.core, this.id, () => this.#now(), this.#shared.options, failure);
            break;
          }
          case DO.DELIVER:
            return this.#answer();
          case DO.COMMIT:
            return this.#pump();
          case DO.RETURN:
            return this.#failedAnswer();
          case DO.FAIL:
            return this.#fail();
          case DO.REJECT:
            this.core.ending(this.id);
            // Not thrown, here and in `#fail`: what the caller aborts with may look like a trap of this core.
            return Promise.reject(this.aborted?.reason);
          default:
            throw new Error(`evenkeel: the core answered ${code} where an action was due`);
        }
      }
    } catch (error) {
      throw this.#explain(error);
    } finally {
      if (!this.#streaming) {
        if (!this.#ended) this.#abandon();
        this.unwatch();
      }
    }
  }

  protected override tick(): number {
    // The core has done with an answer whose rest is still read: then the time is up.
    if (this.#ended) return DO.BREAK;
    this.#tellProgress();
    return this.core.timer(this.id, this.#now());
  }

  /** Says what has come of a body that is being read. */
  #tellProgress(): void {
    const { core, id } = this;
    const progress = this.#progress;
    if (progress === undefined) return;
    core.bodyProgress(id, this.#now(), progress.bytes, progress.byteAt, progress.contentAt);
  }

  protected override failed(error: unknown): number {
    this.#cause = error;
    if (this.#ended) return DO.BREAK;
    this.#tellProgress();
    return this.core.transport(this.id, this.#now(), error instanceof KeyUnavailable ? KEY_ERROR : packError(error));
  }

  #now(): number {
    return this.now();
  }

  #begin(): number {
    const answer = begin(this.core, this.#request, this.#context, this.#shared.options, () =>
      this.#flight.began(this.#now()),
    );
    this.id = answer >>> 7;
    return answer & 127;
  }

  /** Sends an attempt; gives its response head, or the core's answer where there is none. */
  #send(): Promise<Response | number> {
    const { core } = this;
    const attempt = new Attempt();
    this.#attempt = attempt;
    this.#response = undefined;
    this.#read = undefined;
    this.#held = undefined;
    this.#cause = undefined;
    this.#flight.sent(core.flight(this.id));
    this.arm();
    const index = core.keyIndex(this.id);
    const key = index < 0 ? undefined : this.#shared.keys[index];
    try {
      const sent =
        key === undefined
          ? this.#request.send(this.#shared.fetch(), attempt, this.#changes())
          : this.#sendWith(key, attempt);
      // What a user's fetch gives may be no promise, or one that only looks like it.
      this.#sent = Promise.resolve(sent);
    } catch (error) {
      this.#sent = Promise.reject(error);
    }
    return this.race(this.#sent);
  }

  async #sendWith(key: OwnedKey, attempt: Attempt): Promise<Response> {
    const value = await secretOf(key);
    // Given up meanwhile: a fetch that does not look at its signal would send it all the same.
    attempt.signal.throwIfAborted();
    const { url, header } = this.#request;
    return this.#request.send(this.#shared.fetch(), attempt, [withKey(url, header, key, value), ...this.#changes()]);
  }

  /** What the context adds to every attempt. */
  #changes(): readonly Change[] {
    const { idempotencyKey } = this.#context;
    return idempotencyKey === undefined
      ? NO_CHANGE
      : [{ url: null, headers: [["idempotency-key", idempotencyKey]], replace: false }];
  }

  #head(given: Response): number {
    let status = 204;
    let headers = "";
    try {
      const response = webResponse(given);
      this.#response = response;
      if (response.type === "error") throw new TypeError("network error");
      // An opaque answer (status 0), an upgrade, or something that is not a Response can't be looked into: it is passed on.
      if (!(response.status < 200) && typeof response.headers?.has === "function") {
        headers = packHeaders(response.headers);
        status = response.status;
      }
    } catch (error) {
      return this.failed(error);
    }
    return this.core.head(this.id, this.#now(), status, headers);
  }

  #readBody(): Promise<Read | number> {
    const progress: Progress = { bytes: 0, byteAt: -1, contentAt: -1 };
    this.#progress = progress;
    this.arm();
    const cap = this.core.readCap(this.id);
    return this.race(readBody(this.#response as Response, cap, progress, () => this.#now()));
  }

  #body(read: Read): number {
    const { core, id } = this;
    this.#progress = undefined;
    this.#read = read;
    const { bytes, rest } = read;
    if (bytes.byteLength <= WHOLE_BODY) return core.body(id, this.#now(), bytes, rest === null);
    for (let at = 0; at < bytes.byteLength; at += BODY_PART) {
      core.bodyPart(id, this.#now(), bytes.subarray(at, at + BODY_PART));
    }
    return core.body(id, this.#now(), new Uint8Array(0), rest === null);
  }

  /** The next chunk of a stream that is held until its commit point, its end or its failure. */
  #readChunk(): Promise<ReadableStreamReadResult<Uint8Array> | number> | number {
    const body = (this.#response as Response).body;
    if (body === null) return this.core.streamEnd(this.id, this.#now());
    this.#held ??= new Held(body);
    this.arm();
    return this.race(this.#held.reader.read());
  }

  #chunk({ done, value }: ReadableStreamReadResult<Uint8Array>): number {
    if (done) return this.core.streamEnd(this.id, this.#now());
    const code = this.core.chunk(this.id, this.#now(), value);
    this.#held?.keep(value, code);
    return (code & ACTION) === DO.CONTINUE ? code | DO.READ_STREAM : code;
  }

  /** Waits for a permit, or for a backoff to end. */
  async #pause(): Promise<number> {
    const { core, id } = this;
    this.#flight.waits(core.flight(id));
    try {
      for (;;) {
        const now = this.#now();
        this.arm(now);
        this.#waiters.add(id, () => this.interrupt?.("woken"), now + core.wakeIn(id, now), now);
        const why = await this.interrupted();
        if (why === "cancelled") return DO.CONTINUE;
        const code = why === "woken" ? core.woken(id, this.#now()) : core.timer(id, this.#now());
        const action = code & ACTION;
        if (action !== DO.CONTINUE && action !== DO.WAIT) return code;
        this.#heed(code);
      }
    } finally {
      this.#waiters.remove(id);
    }
  }

  /** The beginning of what the failed attempt gave, as text. */
  #seen(): string {
    const bytes = this.#held?.seen() ?? this.#read?.bytes;
    return bytes === undefined ? "" : textOf(bytes.subarray(0, BODY_PART));
  }

  /** The good answer: as it came, around the body that was read. */
  #answer(): Response {
    const response = this.#response as Response;
    if (this.#held !== undefined) return rebuilt(response, this.#held.bytes());
    return this.#read === undefined ? response : this.#around(response, this.#read);
  }

  /** A response around a body that was read. Where it goes on after what may be kept, signal and deadline stay in force. */
  #around(response: Response, { bytes, rest }: Read, extra?: Readonly<Record<string, string>>): Response {
    if (rest === null) return rebuilt(response, bytes as Uint8Array<ArrayBuffer>, extra);
    this.#streaming = true;
    this.#cause = undefined;
    this.disarm();
    const { deadline } = this.#flight;
    const arm = (): void => this.armFor(Math.max(0, deadline - this.#now()));
    arm();
    const over = (): void => {
      this.#streaming = false;
      this.unwatch();
    };
    let broken: { readonly reason: unknown } | undefined;
    const giveUp = (): unknown => {
      const reason = this.aborted
        ? this.aborted.reason
        : (this.#cause ?? new Error("evenkeel: the answer took too long"));
      broken = { reason };
      this.#stop(reason);
      over();
      return reason;
    };
    // Also while nobody reads: the upstream is let go. Nothing wakes a call that the core has ended.
    this.interrupt = giveUp;
    if (this.aborted) giveUp();
    const body = replay([bytes], {
      next: async () => {
        if (broken) throw broken.reason;
        arm();
        const next = await this.race(rest.next());
        if (typeof next === "number") throw giveUp();
        if (next.done === true) over();
        else this.interrupt = giveUp;
        return next;
      },
      return: async () => {
        over();
        await rest.return?.();
        return { done: true, value: undefined };
      },
    });
    return rewrap(response, body, extra);
  }

  /** The last upstream answer as it came, plus what happened. */
  #failedAnswer(): Response {
    const held = this.#held;
    const pass = held === undefined ? 0 : this.core.pass(this.id);
    const ending = this.#ending();
    const response = this.#response as Response;
    const extra = headersOfFailure(ending);
    if (held === undefined) return this.#around(response, this.#read as Read, extra);
    const body = held.broken(pass, new KeelError(ending));
    held.cancel();
    return rewrap(response, body, extra);
  }

  #fail(): Response | Promise<Response> {
    this.#stop(undefined);
    const ending = this.#ending();
    const error = new KeelError(ending);
    const mode = this.#shared.options.transportFailure ?? "auto";
    const obeyed = mode === "response" || (mode === "auto" && this.#request.header("x-stainless-lang") !== null);
    if (!obeyed) return Promise.reject(error);
    return synthesize(ending, error.message);
  }

  #ending(): Ending {
    return unpackEnding(this.core.ending(this.id), withoutSecrets(this.#cause, this.#request));
  }

  /** From the commit point on: everything that comes goes through, and the stream's end is told as it was. */
  #pump(): Response {
    const response = this.#response as Response;
    const held = this.#held ?? new Held(response.body as ReadableStream<Uint8Array>);
    this.#held = held;
    this.#streaming = true;
    const { sinks } = this.#shared;
    // A reaction runs in the async context in which it was asked for: the caller's, whoever reads the stream.
    let tell: (records: () => void) => void = ignore;
    void new Promise<() => void>((resolve) => {
      tell = resolve;
    }).then((emit) => emit());
    const pump = new Pump(held, {
      core: this.core,
      id: this.id,
      now: () => this.#now(),
      arm: (now) => this.arm(now),
      failed: (error) => this.failed(error),
      stop: (reason) => this.#stop(reason),
      error: () => new KeelError(this.#ending()),
      finished: (code) => {
        this.#wake(code);
        if ((code & RECORDS) !== 0) {
          const packed = this.#take();
          tell(() => sinks.emitPacked(packed));
        }
        this.#ended = true;
        if ((code & ACTION) === DO.REJECT) this.core.ending(this.id);
        this.#streaming = false;
        this.unwatch();
      },
      explain: (error) => this.#explain(error, tell),
    });
    this.interrupt = (why) => {
      if (why !== "woken") pump.interrupt(why, this.aborted?.reason);
    };
    // The caller may have given up between the chunk that committed and now.
    if (this.aborted !== undefined) this.interrupt("cancelled");
    return rewrap(response, pump.stream);
  }

  /** Hands out what an answer says is there: calls that should ask again, and records. Gives what to do. */
  #heed(code: number): number {
    this.#wake(code);
    if ((code & RECORDS) !== 0) this.#shared.sinks.emitPacked(this.#take());
    const action = code & ACTION;
    if (action === DO.DELIVER || action === DO.RETURN || action === DO.FAIL || action === DO.REJECT) this.#ended = true;
    else if (action === DO.SEND || action === DO.SLEEP || action === DO.WAIT) this.#flight.landed();
    return action;
  }

  #take(): string {
    const packed = this.core.takeRecords();
    // A notice tells of a change in the control state that should outlive the core.
    this.#shared.handle.keep(this.core, packed.includes(NOTICE));
    return packed;
  }

  #wake(code: number): void {
    if ((code & WOKEN) !== 0) this.#waiters.wake(this.core);
  }

  /** Ends what the attempt is doing, whether the host's fetch listens to its signal or not. */
  #stop(reason: unknown): void {
    this.#progress = undefined;
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    this.#attempt = undefined;
    attempt.stop(reason);
    const response = this.#response;
    // A fetch that does not look at its signal may answer later still: nobody will read that.
    if (response === undefined) this.#sent?.then((late) => discard(late), ignore);
    else discard(response, reason);
    this.#held?.cancel(reason);
    this.#read?.rest?.return?.().catch(ignore);
  }

  /** Whatever was thrown on the way: a call that did not come to an end in the core does so now, and gives its permit back. */
  #abandon(): void {
    try {
      const code = this.core.cancelled(this.id, this.#now());
      this.core.ending(this.id);
      this.#heed(code);
    } catch {
      // The core is dead, and the call with it.
      this.#lose(atOnce);
    }
  }

  /** Records as lost what a dead core has not recorded. */
  #lose(tell: (emit: () => void) => void): void {
    if (this.#ended) return;
    this.#ended = true;
    const records = this.#flight.lost(this.#now(), this.#response);
    tell(() => {
      for (const record of records) this.#shared.sinks.emit(record);
    });
  }

  /** What the caller gets for something that was thrown inside: a dead core is explained, all else is as it is. */
  #explain(error: unknown, tell: (emit: () => void) => void = atOnce): unknown {
    if (!this.#shared.handle.recover(this.core, error)) return error;
    this.#stop(error);
    this.#lose(tell);
    return failure("core_failed", true, this.#flight.logicalRequestId, error);
  }
}

function discard(response: Response, reason?: unknown): void {
  try {
    const body = webResponse(response).body;
    if (body && !body.locked) body.cancel(reason).catch(ignore);
  } catch {
    // Something that only looks like a response has nothing to give up.
  }
}

function atOnce(emit: () => void): void {
  emit();
}
