/**
 * A response around a body that is held in memory, for Node: making and reading a stream costs Node more than all the rest of
 * a response, and hardly anybody wants one. So the response answers `json()`, `text()` and the like from the bytes, and makes
 * a stream, a byte stream as the host's own, when somebody asks for `body`. Hosts with responses of their own (Deno, Bun, Workers) take the
 * bytes as they are, and hand responses on by what is inside of them, so nothing of this is for them.
 */

/** Node before 21 has no `navigator`. */
export const KEPT_IS_CHEAPER =
  (globalThis.navigator?.userAgent ?? "Node.js").startsWith("Node.js") && !("EdgeRuntime" in globalThis);

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
    [INSIDE]: Inside;

    constructor(inside: Inside) {
      const { status, statusText } = inside.upstream;
      super(null, { status, statusText });
      this[INSIDE] = inside;
    }

    override async json(): Promise<unknown> {
      const { real } = this[INSIDE];
      return real === undefined ? JSON.parse(utf8.decode(use(this[INSIDE]))) : real.json();
    }

    override async text(): Promise<string> {
      const { real } = this[INSIDE];
      return real === undefined ? utf8.decode(use(this[INSIDE])) : real.text();
    }

    override async arrayBuffer(): Promise<ArrayBuffer> {
      const { real } = this[INSIDE];
      return real === undefined ? use(this[INSIDE]).slice().buffer : real.arrayBuffer();
    }

    override async blob(): Promise<Blob> {
      return realOf(this).blob();
    }

    override async formData(): Promise<FormData> {
      return realOf(this).formData();
    }

    override clone(): Response {
      const inside = this[INSIDE];
      if (inside.used || inside.real !== undefined) {
        const { upstream } = inside;
        const { status, statusText } = upstream;
        const copy = new Response(realOf(this).clone().body, { status, statusText, headers: headersOf(inside) });
        for (const name of ["url", "redirected", "type"] as const)
          Object.defineProperty(copy, name, { value: upstream[name], enumerable: true });
        return copy;
      }
      return kept(inside.upstream, inside.bytes, () => new Headers(this.headers));
    }
  };
  const define = (name: string, get: (this: { [INSIDE]: Inside }) => unknown): void => {
    Object.defineProperty(class_.prototype, name, { get, enumerable: true, configurable: true });
  };
  define("url", function () {
    return this[INSIDE].upstream.url;
  });
  define("redirected", function () {
    return this[INSIDE].upstream.redirected;
  });
  define("type", function () {
    return this[INSIDE].upstream.type;
  });
  define("headers", function () {
    return headersOf(this[INSIDE]);
  });
  define("body", function () {
    return realOf(this).body;
  });
  define("bodyUsed", function () {
    const { used, real } = this[INSIDE];
    return real === undefined ? used : real.bodyUsed;
  });
  // Not in every Node.
  if ("bytes" in Response.prototype) {
    Object.defineProperty(class_.prototype, "bytes", {
      value: async function bytes(this: Response): Promise<Uint8Array> {
        return new Uint8Array(await this.arrayBuffer());
      },
      writable: true,
      configurable: true,
    });
  }
  Object.defineProperty(class_.prototype, "constructor", { value: Response, writable: true, configurable: true });
  Object.defineProperty(class_, "name", { value: "Response" });
  return class_;
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
function realOf({ [INSIDE]: inside }: { readonly [INSIDE]: Inside }): Response {
  if (inside.real === undefined) {
    const { status, statusText } = inside.upstream;
    inside.real = new Response(inside.bytes, { status, statusText, headers: headersOf(inside) });
    if (inside.used) void inside.real.arrayBuffer();
  }
  return inside.real;
}
