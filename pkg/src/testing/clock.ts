/** A clock that stands still until it is told to move: give it to `createKeel` and to the scripted upstream. */
import type { Clock } from "../types.js";

/** 2026-01-01T00:00:00Z. */
const START = 1_767_225_600_000;
/** Real turns of the host's event loop after which nothing that is ready is left undone. */
const TURNS = 3;
/** Real milliseconds that {@link FakeClock.run} waits for something that no fake timer will bring about. */
const STUCK_MS = 5_000;

/** Options of {@link fakeClock}. */
export interface FakeClockOptions {
  /** What it shows first, in milliseconds since the Unix epoch. Default 2026-01-01T00:00:00Z. */
  now?: number;
  /** Real milliseconds after which {@link FakeClock.run} gives up, when no timer is set and the work has not ended. Default 5000. */
  stuckMs?: number;
}

/** A clock for tests. Its methods work without `this`. */
export interface FakeClock extends Clock {
  /** How many timers are set. */
  readonly pending: number;
  /** Moves on by so many milliseconds, firing what falls due in order, and lets what it sets off happen in between. */
  advance(ms: number): Promise<void>;
  /** Jumps from timer to timer until none is set. */
  runUntilIdle(): Promise<void>;
  /**
   * Does `work` and jumps to the next timer whenever nothing else is left to do, until `work` has settled; gives what
   * it gives. Waits of minutes take no time.
   *
   * @throws What `work` throws, or an error that says so if it waits for something that no timer brings about.
   */
  run<T>(work: () => T | Promise<T>): Promise<T>;
  /** Resolves after so many milliseconds of this clock. */
  sleep(ms: number): Promise<void>;
}

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/** Makes a {@link FakeClock}. */
export function fakeClock(options: FakeClockOptions = {}): FakeClock {
  // The host's own timers as they are now: a test framework may replace them later.
  const later = globalThis.setTimeout;
  const stuckMs = options.stuckMs ?? STUCK_MS;
  const timers = new Map<number, Timer>();
  let time = options.now ?? START;
  let last = 0;

  const turn = (): Promise<void> => new Promise((resolve) => void later(resolve, 0));
  const settle = async (): Promise<void> => {
    for (let i = 0; i < TURNS; i += 1) await turn();
  };

  /** The timer that falls due first; of those that do so together, the one that was set first. */
  const next = (): [number, Timer] | undefined => {
    let found: [number, Timer] | undefined;
    for (const entry of timers) if (found === undefined || entry[1].due < found[1].due) found = entry;
    return found;
  };
  const fire = ([id, timer]: [number, Timer]): void => {
    timers.delete(id);
    time = Math.max(time, timer.due);
    timer.callback();
  };

  const setTimer = (callback: () => void, ms: number): number => {
    last += 1;
    timers.set(last, { due: time + Math.max(0, Number.isFinite(ms) ? ms : 0), callback });
    return last;
  };

  return {
    get pending() {
      return timers.size;
    },
    now: () => time,
    setTimeout: setTimer,
    clearTimeout(handle) {
      timers.delete(handle as number);
    },
    sleep: (ms) => new Promise((resolve) => void setTimer(resolve, ms)),

    async advance(ms) {
      const until = time + ms;
      await settle();
      for (let due = next(); due !== undefined && due[1].due <= until; due = next()) {
        fire(due);
        await settle();
      }
      time = until;
    },

    async runUntilIdle() {
      await settle();
      for (let due = next(); due !== undefined; due = next()) {
        fire(due);
        await settle();
      }
    },

    async run(work) {
      let settled = false;
      const result = Promise.resolve().then(work);
      const done = (): void => {
        settled = true;
      };
      result.then(done, done);
      let idleSince = Date.now();
      for (;;) {
        await settle();
        if (settled) return result;
        const due = next();
        if (due !== undefined) {
          fire(due);
          idleSince = Date.now();
        } else if (Date.now() - idleSince > stuckMs) {
          throw new Error(
            `evenkeel/testing: the work has not ended after ${stuckMs} ms, and no timer of the fake clock is set that could end it`,
          );
        }
      }
    },
  };
}
