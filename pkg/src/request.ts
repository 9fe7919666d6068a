/**
 * A request that can be sent more than once: whatever was given to `fetch`, with a body that can be read again, and what
 * the core has to know of it. What the caller wrote leaves as it is; unknown members of `init` (Node's `dispatcher`,
 * Workers' `cf`) go through untouched.
 */

/** What is different in what is sent. */
export interface Change {
  /** Where it goes instead. */
  readonly url: string | null;
  readonly headers: readonly (readonly [string, string])[];
  /** Whether the headers take the place of the caller's, or only fill in what is not there. */
  readonly replace: boolean;
}

/** What has a signal, or makes one when it is asked for it. */
export interface Signalled {
  readonly signal: AbortSignal | null;
}

/** A request as the driver sends it. */
export interface Outgoing {
  readonly url: string;
  readonly method: string;
  /** Its body, if it is known: what model, limits and the prompt's hash are read from. */
  readonly body: string | Uint8Array | null;
  /** Whether it can be sent again. */
  readonly replayable: boolean;
  /** The caller's own signal. */
  readonly signal: AbortSignal | null;
  /** A header of the request. */
  header(name: string): string | null;
  /** Sends an attempt, whose signal is asked for by who listens to it. */
  send(fetchFn: typeof fetch, attempt: Signalled, changes: readonly Change[]): Promise<Response>;
}

/** The body that is being read. */
export interface Reading {
  /** Gives it up, if it is a stream. */
  stop: ((why: unknown) => void) | undefined;
}

type Init = RequestInit & { duplex?: "half" };

const utf8 = new TextDecoder();

/** Reads what was given to `fetch`. A promise only where the body has to be read first. */
export function outgoing(
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  maxBytes: number,
  reading: Reading,
): Outgoing | Promise<Outgoing> {
  if (typeof input !== "object" || input === null || "href" in input)
    return fromInit(input, hrefOf(input), plainHeaders({ ...init }), maxBytes, reading);
  return fromRequest(input, init, maxBytes, reading);
}

/**
 * The URL as `fetch` understands it: what is told of a request (its host, and so whose key it gets) must come from the
 * same parser that decides where it goes. One that is not absolute stays as it is.
 */
function hrefOf(input: string | URL): string {
  try {
    return new URL(input).href;
  } catch {
    return String(input);
  }
}

/** Headers that can be read more than once: an iterator is used up by the first attempt. */
function plainHeaders(init: Init): Init {
  const headers = init.headers as unknown;
  if (headers === undefined || headers === null || Array.isArray(headers)) return init;
  if (typeof (headers as Headers).getSetCookie === "function") return init;
  const iterable = typeof (headers as Iterable<unknown>)[Symbol.iterator] === "function";
  return iterable ? { ...init, headers: new Headers(headers as [string, string][]) } : init;
}

/** What is told of a request whose body didn't come in time; it is never sent. */
export function unread(input: RequestInfo | URL, init: RequestInit | undefined, why: unknown): Outgoing {
  const request = typeof input !== "object" || input === null || "href" in input ? undefined : input;
  return {
    ...plain(input, request?.url ?? String(input), init ?? {}, null, false),
    method: init?.method ?? request?.method ?? "GET",
    signal: init?.signal ?? request?.signal ?? null,
    header: (name) => headerOf(init?.headers, name) ?? request?.headers.get(name) ?? null,
    send: () => Promise.reject(why),
  };
}

function fromInit(
  input: string | URL,
  url: string,
  init: Init,
  maxBytes: number,
  reading: Reading,
): Outgoing | Promise<Streamed> {
  const body = init.body;
  if (body === null || body === undefined) return plain(input, url, init, null, true);
  if (typeof body === "string") return plain(input, url, init, body, true);
  const bytes = bytesOf(body);
  if (bytes !== undefined) return plain(input, url, { ...init, body: bytes }, bytes, true);
  if (body instanceof URLSearchParams)
    return plain(input, url, { ...init, body: new URLSearchParams(body) }, body.toString(), true);
  // A form keeps its parts; only the model's name is of interest, not the file.
  if (body instanceof FormData) return plain(input, url, { ...init, body: copyOf(body) }, modelOf(body), true);
  if (body instanceof Blob) {
    return body.size > maxBytes
      ? plain(input, url, init, null, true)
      : body.arrayBuffer().then((bytes) => plain(input, url, init, new Uint8Array(bytes), true));
  }
  const stream = body as unknown as { getReader?: unknown; [Symbol.asyncIterator]?: unknown };
  if (typeof stream.getReader === "function" || typeof stream[Symbol.asyncIterator] === "function") {
    return fromStream(input, url, init, stream as unknown as AnyStream, maxBytes, reading);
  }
  // A kind that only the user's `fetch` knows (a form of a polyfill, a buffer of another realm) is its business.
  return plain(input, url, init, null, true);
}

/** A copy of a body of bytes: it is sent as it is now, also where its owner has filled it anew before a retry. */
function bytesOf(body: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
  return body instanceof ArrayBuffer ? new Uint8Array(body.slice(0)) : undefined;
}

function copyOf(form: FormData): FormData {
  const copy = new FormData();
  // A file keeps its name.
  for (const [name, value] of form) copy.append(name, value as string);
  return copy;
}

/** What was read, and what has to be sent of it where that is too long to be kept. */
type Streamed = Outgoing & { readonly rest?: Init };

type AnyStream = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>;

async function fromStream(
  input: RequestInfo | URL,
  url: string,
  init: Init,
  body: AnyStream,
  maxBytes: number,
  reading: Reading,
): Promise<Streamed> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const source = chunksOf(body);
  reading.stop = (why) => void source.return(why).catch(() => {});
  for (;;) {
    const next = await source.next();
    if (next.done === true) break;
    chunks.push(next.value);
    size += next.value.byteLength;
    if (size > maxBytes) {
      const rest: Init = { body: replay(chunks, source), duplex: "half" };
      return { ...plain(input, url, { ...init, ...rest }, null, false), rest };
    }
  }
  const bytes = concat(chunks);
  return plain(input, url, { ...init, body: bytes as Uint8Array<ArrayBuffer> }, bytes, true);
}

async function fromRequest(
  request: Request,
  init: RequestInit | undefined,
  maxBytes: number,
  reading: Reading,
): Promise<Outgoing> {
  const { signal, headers } = request;
  const own: Init = { ...init };
  const use = (sent: RequestInfo | URL, more: Init, body: Outgoing["body"], replayable: boolean): Outgoing => ({
    ...plain(sent, request.url, { ...own, ...more }, body, replayable),
    method: own.method ?? request.method,
    signal: own.signal ?? signal,
    header: (name) => headerOf(own.headers, name) ?? headers.get(name),
    // The host turns Request and init into what is sent, so that what only it knows (`cf`, mode, cache) is kept.
    send: (fetchFn, attempt, changes) => {
      const next: Init = { ...own, ...more, signal: attempt.signal };
      if (changes.length > 0) next.headers = changed(own.headers ?? headers, changes);
      const url = elsewhere(changes);
      if (url !== null) {
        next.method ??= request.method;
        next.headers ??= headers;
        return fetchFn(url, next);
      }
      return fetchFn(
        sent instanceof Request && next.body !== undefined && next.body !== null ? new Request(sent, next) : sent,
        next,
      );
    },
  });
  if (own.body !== undefined && own.body !== null) {
    const made: Streamed = await fromInit(request.url, request.url, own, maxBytes, reading);
    return made.replayable ? use(request, {}, made.body, true) : use(request, made.rest ?? {}, null, false);
  }
  if (request.body === null || request.body === undefined) return use(request, {}, null, true);
  const made = await fromStream(request.url, request.url, { body: request.body }, request.body, maxBytes, reading);
  const body = made.body;
  if (body instanceof Uint8Array) return use(request, { body: body as Uint8Array<ArrayBuffer> }, body, true);
  return use(request, made.rest ?? {}, null, false);
}

function plain(
  input: RequestInfo | URL,
  url: string,
  init: Init,
  body: string | Uint8Array | null,
  replayable: boolean,
): Outgoing {
  return {
    url,
    method: init.method ?? "GET",
    body,
    replayable,
    signal: init.signal ?? null,
    header: (name) => headerOf(init.headers, name),
    send: (fetchFn, attempt, changes) => {
      const next: Init = {
        ...init,
        get signal() {
          return attempt.signal;
        },
        // A `fetch` may put its own in the place of it.
        set signal(signal) {
          Object.defineProperty(next, "signal", { value: signal, writable: true });
        },
      };
      if (changes.length === 0) return fetchFn(input, next);
      next.headers = changed(init.headers, changes);
      return fetchFn(elsewhere(changes) ?? input, next);
    },
  };
}

function headerOf(headers: HeadersInit | undefined, name: string): string | null {
  if (headers === undefined || headers === null) return null;
  if (typeof (headers as Headers).get === "function") return (headers as Headers).get(name) ?? null;
  if (Array.isArray(headers)) {
    for (const [key, value] of headers) if (isNamed(key, name) && value !== undefined) return String(value);
    return null;
  }
  for (const key in headers) {
    const value = (headers as Record<string, string>)[key];
    if (isNamed(key, name) && value !== undefined && Object.hasOwn(headers, key)) return String(value);
  }
  return null;
}

function isNamed(key: unknown, name: string): boolean {
  return typeof key === "string" && key.length === name.length && key.toLowerCase() === name;
}

function changed(headers: HeadersInit | undefined, changes: readonly Change[]): Headers {
  const all = new Headers(headers);
  for (const change of changes) {
    for (const [name, value] of change.headers) if (change.replace || !all.has(name)) all.set(name, value);
  }
  return all;
}

function elsewhere(changes: readonly Change[]): string | null {
  for (const { url } of changes) if (url !== null) return url;
  return null;
}

/** What the core reads of a form: its model, as the JSON that it knows. */
function modelOf(form: FormData): string | null {
  const model = form.get("model");
  return typeof model === "string" ? JSON.stringify({ model, stream: form.get("stream") === "true" }) : null;
}

/** The chunks of a stream. Its `return` ends the stream itself, also while a chunk is awaited. */
interface Source extends AsyncIterator<Uint8Array, void, undefined> {
  return(why?: unknown): Promise<IteratorReturnResult<void>>;
}

function chunksOf(body: AnyStream): Source {
  const encoder = new TextEncoder();
  const next = (result: { done?: boolean | undefined; value?: unknown }): IteratorResult<Uint8Array, void> => {
    if (result.done === true) return { done: true, value: undefined };
    const { value } = result;
    return { done: false, value: typeof value === "string" ? encoder.encode(value) : (value as Uint8Array) };
  };
  if (typeof (body as ReadableStream<Uint8Array>).getReader === "function") {
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    return {
      next: async () => next(await reader.read()),
      return: async (why) => ({ done: true, value: await reader.cancel(why) }),
    };
  }
  const chunks = (body as AsyncIterable<Uint8Array | string>)[Symbol.asyncIterator]();
  return {
    next: async () => next(await chunks.next()),
    async return() {
      // A generator ends only after its next chunk; a stream of Node's can be ended at once.
      const { destroy } = body as { destroy?: unknown };
      if (typeof destroy === "function") destroy.call(body);
      else await chunks.return?.();
      return { done: true, value: undefined };
    },
  };
}

/** A stream of what was read already, and then of the rest. */
export function replay(
  chunks: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array, void, undefined>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const next = chunks[at];
        if (next !== undefined) {
          at += 1;
          controller.enqueue(next as Uint8Array<ArrayBuffer>);
          return;
        }
        const more = await rest.next();
        if (more.done === true) controller.close();
        else controller.enqueue(more.value as Uint8Array<ArrayBuffer>);
      },
      async cancel() {
        await rest.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** One array of several. */
export function concat(chunks: readonly Uint8Array[]): Uint8Array {
  const first = chunks[0];
  if (chunks.length === 1 && first !== undefined) return first;
  const all = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  return all;
}

/** A body as text, for the user's token counter. */
export function textOf(body: string | Uint8Array): string {
  return typeof body === "string" ? body : utf8.decode(body);
}
