/**
 * The wasm core of one keel: made on the first call (Workers allow no randomness at module scope), and made anew after a
 * trap, which poisons an instance for every call in it.
 */
import type { CoreConfig } from "./config.js";
import { Core } from "./core.js";
import { KeelConfigError } from "./errors.js";
import { coreGeneration, requireCore, restartCore } from "./load.js";

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

/** Makes the core when it is first needed, and again after a trap. */
export class CoreHandle {
  readonly #config: CoreConfig;
  readonly #seed: number | undefined;
  #core: Core | undefined;
  #generation = -1;

  constructor(config: CoreConfig, seed: number | undefined) {
    this.#config = config;
    this.#seed = seed;
  }

  /** The core; throws if there is none to be had. */
  get(): Core {
    if (this.#core !== undefined && this.#generation === coreGeneration()) return this.#core;
    requireCore();
    const [low, high] = this.#seeds();
    const { hashKey, limits, control, providers } = this.#config;
    const core = new Core(low, high, hashKey, limits, control);
    for (const { name, match, protocol, rules, limits: own } of providers) {
      const wrong = core.addProvider(name, match, protocol, rules, own);
      if (wrong !== "") throw new KeelConfigError(`providers.${name}.rules`, rules, wrong);
    }
    this.#core = core;
    this.#generation = coreGeneration();
    return core;
  }

  /**
   * Whether `error` means that the instance is dead; if so a fresh one is started, once for all keels that share it.
   * `core` is the one that failed.
   */
  recover(error: unknown): boolean {
    if (!isTrap(error)) return false;
    this.#core = undefined;
    if (this.#generation === coreGeneration()) restartCore();
    return true;
  }

  #seeds(): [number, number] {
    if (this.#seed !== undefined) return [this.#seed >>> 0, Math.floor(this.#seed / 2 ** 32)];
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
