/**
 * How a call waits: for one promise at a time, under one timer of its own and its caller's signals. Nothing here is shared
 * with another request, so nothing of one is ever woken, polled or cleaned up by another.
 */
import type { Core } from "./core.js";
import { ACTION, DO } from "./core-handle.js";
import { listen, unlisten } from "./signals.js";
import type { Clock } from "./types.js";

/** Longest delay a host timer takes; a longer one would fire at once. */
export const MAX_DELAY = 2_147_483_647;
/** A timer that fires so much after its time says that the host had no time for anything else either. */
const LATE_MS = 50;

/** The request's own signal, and the context's. */
type Signals = readonly [AbortSignal | null | undefined, AbortSignal | null | undefined];

/** What ends a wait besides what is waited for. */
export type Interrupt = "timer" | "cancelled" | "woken";

/** A call, as far as it waits. */
export abstract class Waiting {
  protected readonly core: Core;
  protected readonly clock: Clock;
  /** The call's number in the core. */
  protected id = 0;
  /** The signal by which the caller has given up. */
  protected aborted: AbortSignal | undefined;
  /** Who is told of an interruption. */
  protected interrupt: ((why: Interrupt) => void) | undefined;
  readonly #signals: Signals;
  #timer: unknown;
  #due = Number.POSITIVE_INFINITY;
  /** The latest time that this call has seen, and how far its clock is behind that since it went back. */
  #latest = Number.NEGATIVE_INFINITY;
  #behind = 0;

  constructor(core: Core, clock: Clock, signals: Signals) {
    this.core = core;
    this.clock = clock;
    this.#signals = signals;
    for (const signal of signals) {
      if (signal === null || signal === undefined) continue;
      if (signal.aborted) this.aborted ??= signal;
      else listen(signal, this.#onAbort);
    }
  }

  /** The call's time. A clock that goes back must not give it more: it goes on from where it was. */
  protected now(): number {
    const now = this.clock.now() + this.#behind;
    if (now < this.#latest) this.#behind += this.#latest - now;
    else this.#latest = now;
    return this.#latest;
  }

  /** The timer fired while something is waited for: the core's answer, of which CONTINUE is to wait on. */
  protected abstract tick(): number;

  /** What is waited for has failed: the core's answer. */
  protected abstract failed(error: unknown): number;

  /**
   * Waits for `promise`. Gives what it gives, or a number: the core's answer to its failure or to the timer, and CONTINUE once
   * the caller has given up. Rejects only if the core is dead.
   */
  protected race<T>(promise: PromiseLike<T>): Promise<T | number> {
    return new Promise((resolve, reject) => {
      const interrupt = (why: Interrupt): void => {
        if (why === "woken") return;
        if (why === "timer") {
          try {
            const code = this.tick();
            if ((code & ACTION) === DO.CONTINUE) {
              this.arm();
              return;
            }
            resolve(code);
          } catch (error) {
            reject(error);
          }
        } else {
          resolve(DO.CONTINUE);
        }
        this.interrupt = undefined;
      };
      const fail = (error: unknown): void => {
        if (this.interrupt !== interrupt) return;
        this.interrupt = undefined;
        try {
          resolve(this.failed(error));
        } catch (dead) {
          reject(dead);
        }
      };
      if (this.aborted !== undefined) resolve(DO.CONTINUE);
      else this.interrupt = interrupt;
      promise.then((value) => {
        if (this.interrupt !== interrupt) return;
        // A number would be taken for an answer of the core.
        if (Object(value) !== value) return fail(new TypeError("no response"));
        this.interrupt = undefined;
        resolve(value);
      }, fail);
    });
  }

  /** Waits for an interruption alone. Who is woken goes on in its own async context, whoever woke it. */
  protected interrupted(): Promise<Interrupt> {
    return new Promise((resolve) => {
      this.interrupt = resolve;
      if (this.aborted !== undefined) resolve("cancelled");
    });
  }

  /** One timer a call: it is moved only if it has to fire earlier, and asks the core when it fires. */
  protected arm(now = this.now()): void {
    this.armFor(this.core.wakeIn(this.id, now), now);
  }

  protected armFor(ms: number, now = this.now()): void {
    const due = now + ms;
    if (due >= this.#due && this.#timer !== undefined) return;
    this.disarm();
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#due = due;
    this.#timer = this.clock.setTimeout(this.#onTimer, Math.min(ms, MAX_DELAY));
  }

  protected disarm(): void {
    if (this.#timer === undefined) return;
    this.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#due = Number.POSITIVE_INFINITY;
  }

  /** Ends all waiting: no timer and no listener is left behind. */
  protected unwatch(): void {
    this.disarm();
    for (const signal of this.#signals) if (signal !== null && signal !== undefined) unlisten(signal, this.#onAbort);
    this.interrupt = undefined;
  }

  readonly #onAbort = (event: Event): void => {
    this.aborted ??= event.target as AbortSignal;
    this.interrupt?.("cancelled");
  };

  readonly #onTimer = (): void => {
    // How long it took, a clock that went back meanwhile can't say, but the timer can.
    if (this.clock.now() + this.#behind < this.#latest && this.#due < Number.POSITIVE_INFINITY)
      this.#latest = this.#due;
    const late = this.now() - this.#due;
    this.#due = Number.POSITIVE_INFINITY;
    if (late > LATE_MS) {
      // The process itself was busy: what came meanwhile is let in before an upstream is taken for silent.
      this.#timer = this.clock.setTimeout(this.#onTimer, 0);
      return;
    }
    this.#timer = undefined;
    this.interrupt?.("timer");
  };
}
