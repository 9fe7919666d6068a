/**
 * Listening to a caller's signal. Many calls may share one, and a host warns of a leak at the eleventh listener: so there
 * is one for each signal, for as long as any call listens, and gone with the last of them.
 */
type Listener = (event: Event) => void;

const listening = new WeakMap<AbortSignal, { readonly calls: Set<Listener>; readonly tell: Listener }>();

/** Has `call` called when `signal` is aborted, until {@link unlisten}. */
export function listen(signal: AbortSignal, call: Listener): void {
  let known = listening.get(signal);
  if (known === undefined) {
    const calls = new Set<Listener>();
    const tell: Listener = (event) => {
      for (const one of [...calls]) one(event);
    };
    known = { calls, tell };
    listening.set(signal, known);
    signal.addEventListener("abort", tell);
  }
  known.calls.add(call);
}

/** Ends what {@link listen} began. */
export function unlisten(signal: AbortSignal, call: Listener): void {
  const known = listening.get(signal);
  if (known === undefined) return;
  known.calls.delete(call);
  if (known.calls.size > 0) return;
  listening.delete(signal);
  signal.removeEventListener("abort", known.tell);
}
