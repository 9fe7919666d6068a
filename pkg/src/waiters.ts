/**
 * The calls of one core that wait for their turn, or for a backoff to end. Each waits on a promise and a timer of its own;
 * being woken is only a hint to ask again, so a hint that gets lost costs time and nothing else.
 */
import type { Core } from "./core.js";
import { onRestart } from "./load.js";

/** How many calls wait when those are looked for whose request the host has ended without a `finally`. */
const PRUNE_EVERY = 256;
/** Milliseconds past its own timer after which one of them is no longer taken for alive. */
const PRUNE_AFTER = 60_000;

interface Waiting {
  readonly wake: () => void;
  /** When its own timer fires. */
  readonly due: number;
}

/** Who waits, by the number of the call. */
export class Waiters {
  readonly #entries = new Map<number, Waiting>();

  /** Has `wake` called when the call should ask again, or its core is dead. `due` is when its own timer fires. */
  add(id: number, wake: () => void, due: number, now: number): void {
    if (this.#entries.size === 0) onRestart.add(this.#wakeAll);
    this.#entries.set(id, { wake, due });
    if (this.#entries.size % PRUNE_EVERY === 0) this.#prune(now);
  }

  remove(id: number): void {
    this.#entries.delete(id);
    if (this.#entries.size === 0) onRestart.delete(this.#wakeAll);
  }

  /** Wakes those that the core says should ask again. */
  wake(core: Pick<Core, "takeWoken">): void {
    for (let id = core.takeWoken(); id !== 0; id = core.takeWoken()) this.#entries.get(id)?.wake();
  }

  readonly #wakeAll = (): void => {
    for (const { wake } of [...this.#entries.values()]) wake();
  };

  #prune(now: number): void {
    for (const [id, { due }] of this.#entries) if (due + PRUNE_AFTER < now) this.#entries.delete(id);
  }
}
