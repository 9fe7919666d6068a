/**
 * A committed stream: bytes go through unchanged, in order, one at a time as the reader asks for them, and its end is told
 * as it was: cleanly only if the answer is whole, else with the protocol's own error event and then an error.
 */

import type { Core } from "./core.js";
import { ACTION, DO } from "./core-handle.js";
import type { Held } from "./held.js";
import { ignore } from "./ignore.js";

/** What the pump needs of the call that it ends. */
export interface PumpCall {
  readonly core: Core;
  /** Its number in the core. */
  readonly id: number;
  /** Its time. */
  now(): number;
  /** Moves its timer. */
  arm(now: number): void;
  /** Tells the core that the upstream broke; gives its answer. */
  failed(error: unknown): number;
  /** Ends the request. */
  stop(reason: unknown): void;
  /** How the core says it ended. */
  error(): unknown;
  /** The core has ended it, with this answer. */
  finished(code: number): void;
  /** What the reader gets for something that was thrown inside. */
  explain(error: unknown): unknown;
}

/** Shorter pauses of the reader are not worth telling the core of. */
const IDLE_MS = 2;

/** Passes a stream on. */
export class Pump {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #call: PumpCall;
  readonly #core: Core;
  readonly #id: number;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  #idleSince: number;
  #reading = false;
  #over = false;
  #pendingError: { readonly error: unknown } | undefined;

  constructor(held: Held, call: PumpCall) {
    this.#reader = held.reader;
    this.#call = call;
    this.#core = call.core;
    this.#id = call.id;
    this.#idleSince = this.#now();
    this.stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: (controller) => {
          if (this.#pendingError !== undefined) {
            controller.error(this.#pendingError.error);
            return undefined;
          }
          // What was given on is not kept.
          const next = held.chunks.next();
          if (next === undefined) return this.#pull();
          controller.enqueue(next as Uint8Array<ArrayBuffer>);
          return undefined;
        },
        cancel: (reason) => this.#cancel(reason),
      },
      { highWaterMark: 0 },
    );
  }

  /** The timer fired, or the caller's signal did. */
  interrupt(why: "timer" | "cancelled", reason: unknown): void {
    if (this.#over) return;
    this.#guard(() => {
      if (why === "cancelled") {
        this.#finish(this.#core.cancelled(this.#id, this.#now()));
        this.#call.stop(reason);
        this.#controller?.error(reason);
        return;
      }
      this.#tellIdle(this.#now());
      this.#act(this.#core.timer(this.#id, this.#now()), undefined);
      if (!this.#over) this.#call.arm(this.#now());
    });
  }

  #pull(): Promise<void> | undefined {
    if (this.#over) return undefined;
    const now = this.#now();
    this.#tellIdle(now);
    this.#reading = true;
    this.#guard(() => this.#call.arm(now));
    if (this.#over) return undefined;
    return this.#reader.read().then(this.#onRead, this.#onError);
  }

  /** Time in which nobody asked for bytes is not the provider's. */
  #tellIdle(now: number): void {
    if (this.#reading) return;
    const idle = now - this.#idleSince;
    this.#idleSince = now;
    if (idle >= IDLE_MS) this.#guard(() => void this.#core.idle(this.#id, now, idle));
  }

  readonly #onRead = ({ done, value }: ReadableStreamReadResult<Uint8Array>): void => {
    this.#reading = false;
    if (this.#over) return;
    try {
      if (done) {
        this.#act(this.#core.streamEnd(this.#id, this.#now()), undefined);
        return;
      }
      const now = this.#now();
      const code = this.#core.chunk(this.#id, now, value);
      this.#idleSince = now;
      if ((code & ACTION) === DO.CONTINUE) this.#controller?.enqueue(value as Uint8Array<ArrayBuffer>);
      else this.#act(code, value);
    } catch (error) {
      this.#trapped(error);
    }
  };

  readonly #onError = (error: unknown): void => {
    this.#reading = false;
    if (!this.#over) this.#guard(() => this.#act(this.#call.failed(error), undefined));
  };

  /** Does what the core says of a chunk, an end, a gap or a break. */
  #act(code: number, chunk: Uint8Array | undefined): void {
    const controller = this.#controller;
    switch (code & ACTION) {
      case DO.DELIVER:
        this.#finish(code);
        controller?.close();
        this.#reader.cancel().catch(ignore);
        break;
      case DO.BREAK: {
        const rest = chunk?.subarray(0, this.#core.pass(this.#id));
        if (rest !== undefined && rest.byteLength > 0) controller?.enqueue(rest as Uint8Array<ArrayBuffer>);
        const tail = this.#core.tail(this.#id);
        if (tail.byteLength > 0) controller?.enqueue(tail as Uint8Array<ArrayBuffer>);
        const error = this.#call.error();
        this.#finish(code);
        this.#call.stop(error);
        // An error at once would throw away what was just queued; it comes when that has been read.
        this.#fail(error);
        break;
      }
      default:
        if (chunk !== undefined) controller?.enqueue(chunk as Uint8Array<ArrayBuffer>);
    }
  }

  #fail(error: unknown): void {
    const controller = this.#controller;
    // With a high-water mark of 0, a desired size below it means that chunks are waiting to be read.
    if (controller !== undefined && (controller.desiredSize ?? 0) < 0) this.#pendingError = { error };
    else controller?.error(error);
  }

  #cancel(reason: unknown): void {
    if (this.#over) return;
    this.#guard(() => {
      this.#finish(this.#core.cancelled(this.#id, this.#now()));
      this.#call.stop(reason);
    });
    this.#reader.cancel(reason).catch(ignore);
  }

  #now(): number {
    return this.#call.now();
  }

  #finish(code: number): void {
    this.#over = true;
    this.#call.finished(code);
  }

  /** A core that traps ends the stream with an error, never with silence. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#trapped(error);
    }
  }

  #trapped(error: unknown): void {
    this.#over = true;
    const explained = this.#call.explain(error);
    this.#call.finished(0);
    this.#controller?.error(explained);
  }
}
