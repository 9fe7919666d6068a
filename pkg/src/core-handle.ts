/**
 * The wasm core of one keel: made on the first call (Workers allow no randomness at module scope), and made anew after a
 * trap, which poisons an instance for every call in it.
 */
import type { CoreConfig } from "./config.js";
import { Core } from "./core.js";
import { KeelConfigError } from "./errors.js";
import { coreGeneration, requireCore, restartCore } from "./load.js";
import type { Clock } from "./types.js";
import { Waiters } from "./waiters.js";

/** Answers of the core: what the driver does next. See `src/host/mod.rs`. */
export const DO = {
  CONTINUE: 0,
  SEND: 1,
  READ_BODY: 2,
  SLEEP: 3,
  WAIT: 4,
  JUDGE: 5,
  DELIVER: 6,
  READ_STREAM: 7,
  RETURN: 8,
  FAIL: 9,
  REJECT: 10,
  COMMIT: 11,
  BREAK: 12,
} as const;

/** The bits of an answer that say what to do. */
export const ACTION = 31;
/** Set in an answer when records wait. */
export const RECORDS = 32;
/** Set in an answer when other calls should ask again. */
export const WOKEN = 64;

/** What is asked for, where nothing has ended yet. */
export const UNDER_WAY: ReadonlySet<number> = new Set([
  DO.CONTINUE,
  DO.SEND,
  DO.READ_BODY,
  DO.READ_STREAM,
  DO.SLEEP,
  DO.WAIT,
  DO.JUDGE,
]);

/** How often the control state is kept at least, in milliseconds, for a core that may have to be replaced. */
const KEEP_EVERY = 5_000;

/** Makes the core when it is first needed, and again after a trap. */
export class CoreHandle {
  readonly #config: CoreConfig;
  readonly #seed: number | undefined;
  readonly #clock: Clock;
  readonly #onFailure: (error: unknown) => void;
  #core: Core | undefined;
  #generation = -1;
  #restarts = 0;
  #hashKey: string | undefined;
  #waiters = new Waiters();
  #kept = "";
  #keptAt = Number.NEGATIVE_INFINITY;

  /** `onFailure` is told once of each core that is dead. */
  constructor(config: CoreConfig, seed: number | undefined, clock: Clock, onFailure: (error: unknown) => void) {
    this.#config = config;
    this.#seed = seed;
    this.#clock = clock;
    this.#onFailure = onFailure;
  }

  /** The core; throws if there is none to be had. */
  get(): Core {
    const known = this.#core;
    if (known !== undefined && this.#generation === coreGeneration()) return known;
    requireCore();
    // Another keel's core has trapped, and took the instance that it shared with this one along.
    if (known !== undefined) this.#forget();
    const core = this.#make();
    if (this.#kept !== "") core.restore(this.#kept, this.#clock.now());
    this.#core = core;
    this.#generation = coreGeneration();
    if (known !== undefined) this.#onFailure(undefined);
    return core;
  }

  /** Who waits in the core that {@link get} gave last: numbers of calls start anew with each. */
  get waiters(): Waiters {
    return this.#waiters;
  }

  /** Keeps the control state for the core's successor: at once if something `changed`, else from time to time. */
  keep(core: Core, changed: boolean): void {
    const now = this.#clock.now();
    if (core !== this.#core || (!changed && now - this.#keptAt < KEEP_EVERY)) return;
    this.#kept = core.snapshot(now);
    this.#keptAt = now;
  }

  /**
   * Whether `error`, which `core` gave, means that its instance is dead; if so a fresh one is started, once for all keels
   * and calls that share it.
   */
  recover(core: Core, error: unknown): boolean {
    if (!isTrap(error)) return false;
    if (core === this.#core) {
      const current = this.#generation === coreGeneration();
      this.#forget();
      if (current) restartCore();
      // Last, for what is told may call the keel.
      this.#onFailure(error);
    }
    return true;
  }

  #forget(): void {
    this.#core = undefined;
    this.#waiters = new Waiters();
    this.#restarts += 1;
  }

  #make(): Core {
    const [low, high] = this.#seeds();
    const { limits, control, providers } = this.#config;
    const core = new Core(low, high, this.#secret(), limits, control);
    for (const { name, match, protocol, rules, limits: own } of providers) {
      const wrong = core.addProvider(name, match, protocol, rules, own);
      if (wrong !== "") throw new KeelConfigError(`providers.${name}.rules`, rules, wrong);
    }
    return core;
  }

  /** The key of the prompt hash: one for all cores of a keel, so that hashes compare across a restart. */
  #secret(): string {
    const given = this.#config.hashKey || (this.#seed === undefined ? "" : `seed ${this.#seed}`);
    this.#hashKey ??= given || Array.from(crypto.getRandomValues(new Uint32Array(4))).join(" ");
    return this.#hashKey;
  }

  #seeds(): [number, number] {
    // A core after a restart must not give the ids of the one before it again.
    if (this.#seed !== undefined)
      return [(this.#seed ^ Math.imul(this.#restarts, 0x9e37_79b9)) >>> 0, Math.floor(this.#seed / 2 ** 32)];
    const words = crypto.getRandomValues(new Uint32Array(2));
    return [words[0] as number, words[1] as number];
  }
}

function isTrap(error: unknown): boolean {
  // By name, since the instance may be of another realm.
  if (error instanceof Error && error.name === "RuntimeError") return true;
  // What the glue says of an object of an instance that another keel's trap has replaced.
  return (
    error instanceof Error && /stale object|null pointer passed to rust|recursive use of an object/i.test(error.message)
  );
}
