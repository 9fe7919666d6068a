/** A provider that does what its script says, as a `fetch`: no sockets, no host of its own, no time but the clock's. */
import type { Clock } from "../types.js";
import { type FaultKind, type RuntimeName, transportError } from "./faults.js";

/** A part of a body; with `wait`, it comes so many milliseconds after the one before. */
export type Chunk =
  | string
  | Uint8Array
  | {
      /** The bytes. */
      readonly data: string | Uint8Array;
      /** Milliseconds before them. */
      readonly wait: number;
    };

/** How one request is answered. Without any member: 200 and an empty body. */
export interface Step {
  /** HTTP status. Default 200. */
  readonly status?: number;
  /** Response headers. `content-type: application/json` is added to `json`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The body, as JSON. */
  readonly json?: unknown;
  /** The body. */
  readonly body?: string | Uint8Array;
  /** The body, in parts. */
  readonly chunks?: readonly Chunk[];
  /** Milliseconds before the head. Default 0. */
  readonly delayMs?: number;
  /** Milliseconds between two chunks that don't say their own. Default 0. */
  readonly gapMs?: number;
  /** Bytes of the body after which it ends as `end` says. Default: all. */
  readonly cutAt?: number;
  /**
   * How the body ends: `"close"`, cleanly (a cut looks the same); `"reset"`, the connection breaks; `"stall"`, nothing
   * comes any more and it never ends. Default `"close"`.
   */
  readonly end?: "close" | "reset" | "stall";
  /** No answer, but this error: a kind, or an error of your own. */
  readonly fail?: FaultKind | Error;
  /** No answer, ever. */
  readonly hang?: boolean;
  /** Whose words a failure of the connection uses. Default `"node"`. */
  readonly as?: RuntimeName;
}

/** One request as the upstream saw it. */
export interface SeenRequest {
  /** From 1. */
  readonly n: number;
  /** When it came, by the clock. */
  readonly at: number;
  /** Where it went. */
  readonly url: string;
  /** Its method, in upper case. */
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as text. */
  readonly body: string;
  /** The body as JSON; `undefined` if it isn't any. */
  readonly json: unknown;
  /** Whether the caller gave it up, at any time before the end of the answer's body. */
  readonly aborted: boolean;
}

/**
 * The steps in order, one a request, or a function that chooses. A request beyond the last step, or for which the
 * function gives nothing, is answered by a 400 that says so: it is not retried, and easily seen.
 */
export type Script = readonly Step[] | ((request: SeenRequest) => Step | undefined | Promise<Step | undefined>);

/** Options of {@link scriptedUpstream}. */
export interface UpstreamOptions {
  /** Whose time delays are. Default: the host's. */
  clock?: Clock;
}

/** A provider as a `fetch`. */
export interface ScriptedUpstream {
  /** Give this to `createKeel`, or to your own code. Works without `this`. */
  readonly fetch: typeof fetch;
  /** What came, in order. */
  readonly seen: readonly SeenRequest[];
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const HOST: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (handle) => {
    clearTimeout(handle as number);
  },
};

/** Makes a {@link ScriptedUpstream}. */
export function scriptedUpstream(script: Script, { clock = HOST }: UpstreamOptions = {}): ScriptedUpstream {
  const seen: Writable<SeenRequest>[] = [];
  const answer = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const signal = init.signal ?? (input instanceof Request ? input.signal : null);
    signal?.throwIfAborted();
    const request = note(input, init, seen.length + 1, clock.now());
    seen.push(request);
    const body = init.body ?? (input instanceof Request ? input.body : null);
    if (typeof body !== "string" && body !== null) {
      request.body = await textOf(input, init);
      request.json = parse(request.body);
    }
    const step = typeof script === "function" ? await script(request) : script[request.n - 1];
    return new Exchange(clock, request, step ?? unscripted(request), signal).answer();
  };
  return { fetch: answer as typeof fetch, seen };
}

/** One request and its answer. */
class Exchange {
  readonly #clock: Clock;
  readonly #request: Writable<SeenRequest>;
  readonly #step: Step;
  readonly #signal: AbortSignal | null;
  #giveUp: ((reason: unknown) => void) | undefined;

  constructor(clock: Clock, request: Writable<SeenRequest>, step: Step, signal: AbortSignal | null) {
    this.#clock = clock;
    this.#request = request;
    this.#step = step;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#onAbort);
    if (signal?.aborted === true) this.#request.aborted = true;
  }

  async answer(): Promise<Response> {
    const { hang, fail, delayMs, as } = this.#step;
    try {
      if (hang === true) await this.#wait(Number.POSITIVE_INFINITY);
      await this.#wait(delayMs ?? 0);
      if (fail !== undefined) throw typeof fail === "string" ? transportError(fail, as) : fail;
    } catch (error) {
      this.#over();
      throw error;
    }
    return this.#response();
  }

  readonly #onAbort = (): void => {
    this.#request.aborted = true;
    this.#giveUp?.(this.#signal?.reason);
  };

  #over(): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }

  /** Rejects with the signal's reason if the caller gives up. */
  #wait(ms: number): Promise<void> {
    this.#signal?.throwIfAborted();
    if (ms === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = ms === Number.POSITIVE_INFINITY ? undefined : this.#clock.setTimeout(resolve, ms);
      this.#giveUp = (reason) => {
        if (timer !== undefined) this.#clock.clearTimeout(timer);
        reject(reason);
      };
    });
  }

  #response(): Response {
    const { status = 200, json, body, chunks } = this.#step;
    const headers = new Headers(this.#step.headers);
    if (json !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
    const whole = json === undefined ? body : JSON.stringify(json);
    const parts = cut(chunks ?? (whole === undefined ? [] : [whole]), this.#step.cutAt);
    const bodiless = status === 204 || status === 205 || status === 304;
    if (bodiless) this.#over();
    const response = new Response(bodiless ? null : this.#stream(parts), { status, headers });
    Object.defineProperty(response, "url", { value: this.#request.url });
    return response;
  }

  /** Sends by the clock whether anyone reads or not, as a network does. */
  #stream(
    parts: readonly { bytes: Uint8Array<ArrayBuffer>; wait: number | undefined }[],
  ): ReadableStream<Uint8Array<ArrayBuffer>> {
    const { gapMs = 0, end = "close", as } = this.#step;
    let open = true;
    return new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        const send = async (): Promise<void> => {
          for (const [at, { bytes, wait }] of parts.entries()) {
            await this.#wait(wait ?? (at === 0 ? 0 : gapMs));
            if (!open) return;
            controller.enqueue(bytes);
          }
          if (end === "stall") await this.#wait(Number.POSITIVE_INFINITY);
          if (end === "reset") {
            // An error throws away what is queued and unread; it comes a turn later, as it does from a socket.
            await this.#wait(1);
            throw transportError("body-reset", as);
          }
          if (open) controller.close();
        };
        send()
          .catch((error: unknown) => {
            if (open) controller.error(error);
          })
          .finally(() => this.#over());
      },
      cancel: (reason) => {
        open = false;
        this.#request.aborted = true;
        this.#giveUp?.(reason);
        this.#over();
      },
    });
  }
}

function cut(
  chunks: readonly Chunk[],
  at = Number.POSITIVE_INFINITY,
): { bytes: Uint8Array<ArrayBuffer>; wait: number | undefined }[] {
  const encoder = new TextEncoder();
  const parts = [];
  let left = at;
  for (const chunk of chunks) {
    const own = typeof chunk === "object" && !(chunk instanceof Uint8Array) ? chunk : { data: chunk, wait: undefined };
    const bytes = typeof own.data === "string" ? encoder.encode(own.data) : new Uint8Array(own.data);
    const kept = bytes.subarray(0, Math.min(bytes.byteLength, left));
    left -= kept.byteLength;
    if (kept.byteLength > 0) parts.push({ bytes: kept, wait: own.wait });
    if (left <= 0) break;
  }
  return parts;
}

function note(input: RequestInfo | URL, init: RequestInit, n: number, at: number): Writable<SeenRequest> {
  const request = input instanceof Request ? input : undefined;
  const headers = new Headers(init.headers ?? request?.headers);
  const body = typeof init.body === "string" ? init.body : "";
  return {
    n,
    at,
    url: request === undefined ? String(input) : request.url,
    method: init.method ?? request?.method ?? "GET",
    headers: Object.fromEntries(headers),
    body,
    json: parse(body),
    aborted: false,
  };
}

/** The text of a body that is no string, as the host would send it. */
function textOf(input: RequestInfo | URL, init: RequestInit): Promise<string> {
  if (init.body === undefined && input instanceof Request) return input.clone().text();
  return new Response(init.body ?? null).text();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unscripted({ n, method, url }: SeenRequest): Step {
  return {
    status: 400,
    json: {
      error: { message: `the script has no step for request ${n}, ${method} ${url}`, type: "unscripted_request" },
    },
  };
}
