/** `createKeel`: one policy, one control state, one ledger. */
import { Budget } from "./budget.js";
import { checkContext, checkParts, HOST_CLOCK, readOptions } from "./config.js";
import { CoreHandle } from "./core-handle.js";
import { drive, type Shared } from "./driver.js";
import { failure, KeelConfigError } from "./errors.js";
import { explain } from "./policy.js";
import { keysOf } from "./pools.js";
import { makeNotice } from "./records.js";
import { Sinks } from "./sinks.js";
import type { CallContext, ControlState, Keel, KeelOptions, ScopedKeel } from "./types.js";

/** Marks a keel's own `fetch`, so that one that was installed as the global `fetch` doesn't call itself. */
const OWN = Symbol.for("evenkeel.fetch");
const DEFAULT_MAX_BODY = 33_554_432;

/**
 * Makes a keel. Synchronous, without I/O, timers or randomness, so it is allowed at module scope everywhere.
 *
 * @param options - All optional; see {@link KeelOptions} for each with its default.
 * @throws {@link KeelConfigError} for an option that is unknown, of the wrong type or out of range.
 *
 * @example
 * ```ts
 * const keel = createKeel({ ledger: (record) => console.log(record) });
 * const openai = new OpenAI({ fetch: keel.fetch });
 * ```
 */
export function createKeel(options: KeelOptions = {}): Keel {
  const config = readOptions(options);
  const clock = options.clock ?? HOST_CLOCK;
  const sinks = new Sinks(options.ledger);
  const notice = (kind: string, error: unknown): void => {
    const what =
      error instanceof Error ? `${error.name}: ${error.message.slice(0, 200)}` : "the core of another keel failed";
    sinks.emit(makeNotice(kind, clock.now(), "core", { error: what }));
  };
  const handle = new CoreHandle(config, options.seed, clock, (error) => notice("core_restarted", error));
  const hostFetch = globalThis.fetch;
  let closed = false;
  let missing = false;

  const shared: Shared = {
    handle,
    sinks,
    clock,
    options,
    maxBody: options.body?.maxBufferedBytes ?? DEFAULT_MAX_BODY,
    keys: keysOf(options.pools),
    fetch() {
      if (options.fetch !== undefined) return options.fetch;
      const current = globalThis.fetch;
      if (current === hostFetch || Object.hasOwn(current, OWN)) return (input, init) => hostFetch(input, init);
      // Somebody has replaced it since, perhaps around this keel's own: a request that comes back marked goes to the host.
      return (input, init) => current(input, { ...init, [OWN]: true } as RequestInit);
    },
    core() {
      try {
        const core = handle.get();
        missing = false;
        return core;
      } catch (error) {
        if (options.onCoreFailure !== "pass-through" || error instanceof KeelConfigError) throw error;
        // Once, and not for every request that goes out without it.
        if (!missing) {
          missing = true;
          notice("core_missing", error);
        }
        return undefined;
      }
    },
  };

  const scoped = (context: CallContext): typeof fetch => {
    const own = (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
      if (init !== undefined && init !== null && OWN in init) return hostFetch(input, init);
      if (closed) return Promise.reject(failure("keel_closed", false, context.logicalRequestId));
      return drive(shared, input, init, context);
    };
    return Object.defineProperty(own, OWN, { value: true }) as typeof fetch;
  };

  return {
    fetch: scoped({}),
    with(context): ScopedKeel {
      return { fetch: scoped({ ...checkContext(context) }) };
    },
    state: () => JSON.parse(handle.get().state(clock.now())) as ControlState,
    budget: (parts) => new Budget(checkParts(parts), clock),
    explainPolicy: () => explain(handle.get().limits(), options),
    enableKey(keyId) {
      const core = handle.get();
      if (typeof keyId !== "string" || !core.enableKey(keyId, clock.now()))
        throw new KeelConfigError("keyId", keyId, "the id of a key of one of the pools");
      sinks.emitPacked(core.takeRecords());
      handle.waiters.wake(core);
    },
    flush: () => sinks.flush(clock),
    close() {
      closed = true;
    },
    [Symbol.dispose]() {
      closed = true;
    },
  };
}
