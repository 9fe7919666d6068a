/** A request whose body has to be read first: waited for as long as its caller waits. */
import { timeLeft } from "./begin.js";
import { ignore } from "./ignore.js";
import { type Outgoing, type Reading, unread } from "./request.js";
import { listen, unlisten } from "./signals.js";
import type { CallContext, Clock, KeelOptions } from "./types.js";
import { MAX_DELAY } from "./waiting.js";

/**
 * Waits for a request's body for as long as its caller does, and says how much of the caller's time is left. One that
 * didn't come in time leaves a request that can't be sent and has no time: the core ends it as it ends every other.
 */
export async function whole(
  { clock, options }: { readonly clock: Clock; readonly options: KeelOptions },
  made: Promise<Outgoing>,
  reading: Reading,
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  context: CallContext,
): Promise<[Outgoing, CallContext]> {
  const startedAt = clock.now();
  const ms = Math.min(timeLeft(context), options.timeouts?.totalMs ?? Number.POSITIVE_INFINITY);
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
      const { deadlineMs } = context;
      const late = spent > 0 && deadlineMs !== undefined;
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
