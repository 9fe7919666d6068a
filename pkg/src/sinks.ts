/** Hands records to the user's sinks. A sink that throws or stalls never touches a call. */
import { unpack } from "./records.js";
import type { Clock, LedgerRecord, LedgerSink } from "./types.js";

/** How often a waiting `flush` looks again by itself. */
const FLUSH_POLL_MS = 50;
/** How long `flush` waits for what is being written; hosts give `waitUntil` no more. */
const FLUSH_MAX_MS = 30_000;

type Write = (record: LedgerRecord) => void | Promise<void>;

/** The sinks of one keel. */
export class Sinks {
  readonly #writes: readonly Write[];
  readonly #flushes: readonly (() => void | Promise<void>)[];
  readonly #writing = new Set<object>();
  #waiting = new Set<() => void>();

  constructor(sinks: LedgerSink | readonly LedgerSink[] | undefined) {
    const all =
      sinks === undefined ? [] : Array.isArray(sinks) ? (sinks as readonly LedgerSink[]) : [sinks as LedgerSink];
    this.#writes = all.map((sink) => (typeof sink === "function" ? sink : (record) => sink.write(record)));
    this.#flushes = all.flatMap((sink) =>
      typeof sink === "object" && sink.flush !== undefined ? [() => sink.flush?.()] : [],
    );
  }

  /** Whether anybody listens. */
  get any(): boolean {
    return this.#writes.length > 0;
  }

  /** Gives packed records to every sink. */
  emitPacked(packed: string): void {
    if (this.any) unpack(packed, (record) => this.emit(record));
  }

  /** Gives a record to every sink. */
  emit(record: LedgerRecord): void {
    for (const write of this.#writes) {
      try {
        const done = write(record);
        if (done !== undefined) this.#track(done);
      } catch {
        // Documented: a sink that throws loses its record and nothing else.
      }
    }
  }

  /**
   * Resolves when what is being written now has been, and every sink has flushed. What takes longer than 30 s in all is
   * given up on: the request that it belongs to may have been ended by the host, and then it never settles. Each caller waits on a promise
   * and a timer of its own: on Workers, one that waits on another request's promise alone would be ended as hung.
   */
  async flush(clock: Clock): Promise<void> {
    const writes = [...this.#writing];
    const until = clock.now() + FLUSH_MAX_MS;
    while (writes.some((write) => this.#writing.has(write))) {
      if (clock.now() >= until) {
        for (const write of writes) this.#writing.delete(write);
        break;
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          clock.clearTimeout(timer);
          resolve();
        };
        const timer = clock.setTimeout(wake, FLUSH_POLL_MS);
        this.#waiting.add(wake);
      });
    }
    if (this.#flushes.length === 0) return;
    const flushed = Promise.allSettled(this.#flushes.map(async (flush) => flush()));
    let timer: unknown;
    const over = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, Math.max(0, until - clock.now()));
    });
    await Promise.race([flushed, over]);
    clock.clearTimeout(timer);
  }

  #track(done: Promise<void>): void {
    const write = {};
    this.#writing.add(write);
    const settled = (): void => {
      this.#writing.delete(write);
      for (const wake of this.#waiting) wake();
    };
    // A thenable that throws from `then` is still a sink's own trouble.
    try {
      Promise.resolve(done).then(settled, settled);
    } catch {
      settled();
    }
  }
}
