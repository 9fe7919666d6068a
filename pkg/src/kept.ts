/**
 * A response around a body that is held in memory, for Node: making and reading a stream costs Node more than all the rest of
 * a response, and hardly anybody wants one. So the response answers `json()`, `text()` and the like from the bytes, and makes
 * a stream, a byte stream as the host's own, when somebody asks for `body`. Hosts with responses of their own (Deno, Bun, Workers) take the
 * bytes as they are, and hand responses on by what is inside of them, so nothing of this is for them.
 */

let cheaper: boolean | undefined;

/** Whether this is Node. Not asked at module scope, where it makes every import of the package wait for Node's navigator. */
export function keptIsCheaper(): boolean {
  // Node before 21 has no `navigator`.
  cheaper ??= (globalThis.navigator?.userAgent ?? "Node.js").startsWith("Node.js") && !("EdgeRuntime" in globalThis);
  return cheaper;
}

const utf8 = new TextDecoder();

interface Inside {
  readonly upstream: Response;
  readonly bytes: Uint8Array<ArrayBuffer>;
  headers: Headers | (() => Headers);
  /** Whether the bytes were given out without a response of the host's. */
  used: boolean;
  /** The host's own, once something was asked that only it can do. */
  real: Response | undefined;
}

// Not a private field: those are not seen through a proxy, which the methods of Node's own responses stand.
const INSIDE = Symbol("evenkeel.inside");

/** Whose body it is. */
interface Keeper {
  [INSIDE]: Inside;
}

type KeptClass = new (inside: Inside) => Response;
let made: KeptClass | undefined;

/** A response with the upstream's status and URL, around `bytes`. */
export function kept(upstream: Response, bytes: Uint8Array<ArrayBuffer>, headers: () => Headers): Response {
  made ??= define();
  return new made({ upstream, bytes, headers, used: false, real: undefined });
}

/** When it is needed: where a test runs without the host's `Response`, importing this must not fail. */
function define(): KeptClass {
  const class_ = class extends Response {
    declare [INSIDE]: Inside;

    constructor(inside: Inside) {
      super(null, { status: inside.upstream.status });
      this[INSIDE] = inside;
    }
  };
  const { prototype } = class_;
  // Defined and not assigned: somebody may have frozen the host's own prototype.
  const member = (name: string, value: (this: Keeper) => unknown) =>
    Object.defineProperty(prototype, name, { value, writable: true, enumerable: true, configurable: true });
  /** Answers from the bytes, once; what only the host can do, or has begun, is left to it. */
  const reads = (
    name: "json" | "text" | "arrayBuffer" | "blob" | "formData" | "bytes",
    read?: (inside: Inside) => unknown,
  ) => {
    // `bytes` is not in every Node.
    if (!(name in prototype)) return;
    member(name, async function () {
      const inside = this[INSIDE];
      return read === undefined || inside.real !== undefined ? realOf(inside)[name]() : read(inside);
    });
  };
  reads("json", (inside) => JSON.parse(utf8.decode(use(inside))));
  reads("text", (inside) => utf8.decode(use(inside)));
  reads("arrayBuffer", (inside) => use(inside).slice().buffer);
  reads("bytes", (inside) => use(inside).slice());
  reads("blob");
  reads("formData");
  member("clone", function () {
    const inside = this[INSIDE];
    const { status, statusText, url, redirected, type } = inside.upstream;
    const { body } = realOf(inside).clone();
    const copy = new Response(body, { status, headers: headersOf(inside) });
    return show(copy, { statusText, url, redirected, type });
  });
  const get = (name: string, of: (inside: Inside) => unknown) =>
    Object.defineProperty(prototype, name, {
      get(this: Keeper) {
        return of(this[INSIDE]);
      },
      enumerable: true,
    });
  for (const name of ["statusText", "url", "redirected", "type"] as const) get(name, ({ upstream }) => upstream[name]);
  get("headers", headersOf);
  get("body", (inside) => realOf(inside).body);
  get("bodyUsed", ({ real, used }) => real?.bodyUsed ?? used);
  Object.defineProperty(prototype, "constructor", { value: Response });
  return class_;
}

/** Gives a response members that it can't be made with. */
export function show(response: Response, members: Readonly<Record<string, unknown>>): Response {
  for (const name in members) Object.defineProperty(response, name, { value: members[name], enumerable: true });
  return response;
}

/** The bytes, once. */
function use(inside: Inside): Uint8Array<ArrayBuffer> {
  if (inside.used) throw new TypeError("Body is unusable: Body has already been read");
  inside.used = true;
  return inside.bytes;
}

function headersOf(inside: Inside): Headers {
  if (typeof inside.headers === "function") inside.headers = new Headers(inside.headers());
  return inside.headers;
}

/** The host's own response around the same bytes, as far read as this one is. */
function realOf(inside: Inside): Response {
  if (inside.real === undefined) {
    inside.real = new Response(inside.bytes, { headers: headersOf(inside) });
    if (inside.used) void inside.real.arrayBuffer();
  }
  return inside.real;
}
