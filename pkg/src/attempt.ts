/**
 * The signal of one attempt: made when somebody asks for it. A host's `fetch` does, a stub or one that keeps no socket often
 * doesn't.
 */
export class Attempt {
  #controller: AbortController | undefined;
  #stopped: { readonly reason: unknown } | undefined;

  /** The signal, also after the attempt was stopped. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped.reason);
    }
    return this.#controller.signal;
  }

  stop(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#controller?.abort(reason);
  }
}
