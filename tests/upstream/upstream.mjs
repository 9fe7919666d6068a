/**
 * A scripted upstream: one small HTTP/1.1 server over real sockets that answers each request with the next step of a
 * script, and writes down what it saw. It speaks HTTP by hand over `node:net`, because what it has to do wrong
 * (reset after byte 17, a wrong content-length, a head that never comes) is what an HTTP library prevents.
 *
 * Servers listen on 127.0.0.1, port 0. Nothing is left behind by `close()`: no socket, no timer.
 */
import net from "node:net";
import { performance } from "node:perf_hooks";
import { readRequests } from "./request.mjs";

/** @typedef {Iterable<string | Uint8Array | number>} Parts */

/**
 * One answer. Everything is optional; `{}` is an empty 200.
 *
 * @typedef {object} Step
 * @property {number} [status] Default 200.
 * @property {string} [statusText] Reason phrase; a plain one by default.
 * @property {Record<string, string | string[]> | [string, string][]} [headers] An array of pairs keeps order and repeats.
 * @property {unknown} [json] Sent as JSON, with its content type.
 * @property {string | Uint8Array | Parts | (() => Parts)} [body] Parts are written one by one; a number among them is
 *   a pause in milliseconds. Parts are sent chunked, the rest with a content-length.
 * @property {boolean} [chunked] Force (true) or forbid (false) chunked transfer.
 * @property {number | false} [contentLength] The length to claim; false claims none (the body ends with the connection).
 * @property {number} [delayHeadMs] Silence before the head.
 * @property {number} [delayBetweenChunksMs] Silence before each part but the first.
 * @property {{ bytes: number, everyMs: number }} [drip] Write the body in pieces of so many bytes.
 * @property {boolean} [resetBeforeHead] TCP reset instead of an answer.
 * @property {number} [resetAtByte] TCP reset after so many bytes of the body (0: right after the head).
 * @property {boolean} [endBeforeHead] FIN instead of an answer.
 * @property {number} [endAtByte] FIN after so many bytes of the body, whatever the head promised.
 * @property {"head" | number} [hang] Say nothing more: before the head, or after so many bytes of the body. The
 *   connection stays open until the client closes it.
 * @property {boolean} [close] Answer `connection: close` and close after the answer. Default false: keep-alive.
 * @property {number} [closeIdleMs] Keep-alive, but drop the idle connection after so many milliseconds, unannounced.
 * @property {string | Uint8Array} [raw] These bytes instead of status line, headers and body.
 */

/**
 * What one request looked like, and what became of it. Times are milliseconds since the server started.
 *
 * @typedef {object} Seen
 * @property {number} n Number of the request, from 1.
 * @property {number} nOfPath Number among the requests to this path, from 1.
 * @property {number} connection Number of the connection, from 1.
 * @property {string} method
 * @property {string} path With the query; values of `key` and `api_key` are masked.
 * @property {Record<string, string>} headers Lower-case names; credentials are masked to `***` and their last 4 characters.
 * @property {string} body
 * @property {unknown} json The body parsed, undefined where it isn't JSON.
 * @property {number} at When the request had arrived in full.
 * @property {number | null} headAt When the head of the answer was written.
 * @property {number | null} endAt When the exchange was over.
 * @property {number} sentBytes Bytes of the body that were written.
 * @property {boolean} completed The step was played to its end.
 * @property {boolean} abortedByClient The client closed the connection before the step had ended.
 */

/** @typedef {(request: Seen) => Step | Promise<Step>} StepFunction */
/** @typedef {Step[] | StepFunction} Script */

/**
 * @typedef {object} Upstream
 * @property {string} url `http://127.0.0.1:PORT`, without a slash at the end.
 * @property {number} port
 * @property {Seen[]} seen Every request, in order of arrival.
 * @property {{ opened: number, open: number }} connections
 * @property {() => number} inFlight Requests not yet answered in full.
 * @property {number} maxInFlight The most requests that were in flight at once.
 * @property {Seen[]} unscripted Requests for which the script had no step left.
 * @property {(count: number, timeoutMs?: number) => Promise<void>} waitForRequests
 * @property {(condition: () => boolean, timeoutMs?: number) => Promise<void>} waitUntil
 * @property {() => Promise<void>} close
 */

/**
 * Starts a server.
 *
 * `script` is a list of steps, a function from the request to a step, or an object from path (without query; `*` for
 * all others) to either. A list that has run out repeats its last step with `repeatLast`, and otherwise answers 418
 * and notes the request under `unscripted`.
 *
 * @param {{ script: Script | Record<string, Script>, repeatLast?: boolean }} options
 * @returns {Promise<Upstream>}
 */
export async function startUpstream({ script, repeatLast = false }) {
  const startedAt = performance.now();
  const now = () => performance.now() - startedAt;
  /** @type {Set<net.Socket>} */
  const sockets = new Set();
  const counts = new Map();
  let inFlight = 0;

  /** @type {Upstream} */
  const upstream = {
    url: "",
    port: 0,
    seen: [],
    connections: { opened: 0, open: 0 },
    inFlight: () => inFlight,
    maxInFlight: 0,
    unscripted: [],
    waitForRequests: (count, timeoutMs) => waitUntil(() => upstream.seen.length >= count, timeoutMs),
    waitUntil,
    close,
  };

  /** @returns {Promise<Step>} */
  async function stepFor(/** @type {Seen} */ seen) {
    const path = seen.path.split("?")[0] ?? "";
    const perPath = !Array.isArray(script) && typeof script !== "function";
    const list = perPath ? (script[path] ?? script["*"]) : script;
    if (typeof list === "function") return (await list(seen)) ?? {};
    const scriptName = perPath ? (script[path] ? path : "*") : "";
    const played = counts.get(scriptName) ?? 0;
    counts.set(scriptName, played + 1);
    const step = list?.[played] ?? (repeatLast ? list?.at(-1) : undefined);
    if (step) return step;
    upstream.unscripted.push(seen);
    return {
      status: 418,
      json: { error: { message: `no step is left in the script for request ${seen.n} to ${path}` } },
    };
  }

  const server = net.createServer({ noDelay: true }, (socket) => {
    const connection = ++upstream.connections.opened;
    upstream.connections.open++;
    sockets.add(socket);
    socket.on("error", () => {}); // a reset by the client is an event here, not a failure
    socket.on("close", () => {
      sockets.delete(socket);
      upstream.connections.open--;
    });
    serve(socket, connection).catch((error) => {
      socket.destroy();
      queueMicrotask(() => {
        throw error; // a mistake in a script must not look like a network failure
      });
    });
  });

  async function serve(/** @type {net.Socket} */ socket, /** @type {number} */ connection) {
    for await (const request of readRequests(socket)) {
      const path = request.path.split("?")[0];
      /** @type {Seen} */
      const seen = {
        n: upstream.seen.length + 1,
        nOfPath: upstream.seen.filter((other) => other.path.split("?")[0] === path).length + 1,
        connection,
        ...request,
        at: now(),
        headAt: null,
        endAt: null,
        sentBytes: 0,
        completed: false,
        abortedByClient: false,
      };
      upstream.seen.push(seen);
      inFlight++;
      upstream.maxInFlight = Math.max(upstream.maxInFlight, inFlight);
      try {
        const keep = await play(socket, await stepFor(seen), seen, now);
        if (!keep) return;
      } finally {
        inFlight--;
        seen.endAt = now();
      }
    }
  }

  async function close() {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
    await waitUntil(() => inFlight === 0);
  }

  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(undefined));
  });
  upstream.port = /** @type {net.AddressInfo} */ (server.address()).port;
  upstream.url = `http://127.0.0.1:${upstream.port}`;
  return upstream;
}

/** The URL of a port on this machine that nobody listens on: connections to it are refused. */
export async function refusedUrl() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {net.AddressInfo} */ (server.address());
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/**
 * Plays one step. Resolves to true if the connection can serve another request.
 *
 * @param {net.Socket} socket
 * @param {Step} step
 * @param {Seen} seen
 * @param {() => number} now
 */
async function play(socket, step, seen, now) {
  const gone = () => socket.destroyed || socket.readableEnded;
  const abandon = () => {
    seen.abortedByClient = true;
    socket.destroy();
    return false;
  };
  const finish = (/** @type {boolean} */ keep) => {
    seen.completed = true;
    return keep;
  };

  if (step.delayHeadMs) await pause(socket, step.delayHeadMs);
  if (gone()) return abandon();
  if (step.hang === "head") {
    await pause(socket, Number.POSITIVE_INFINITY);
    return abandon();
  }
  if (step.resetBeforeHead) return finish(reset(socket));
  if (step.endBeforeHead) return finish(end(socket));
  if (step.raw !== undefined) {
    await write(socket, step.raw);
    return finish(step.close ? end(socket) : true);
  }

  const { head, parts, chunked, closes } = compose(step);
  await write(socket, head);
  seen.headAt = now();

  const cutAt = Math.min(
    step.resetAtByte ?? Infinity,
    step.endAtByte ?? Infinity,
    typeof step.hang === "number" ? step.hang : Infinity,
  );
  /** What happens once `cutAt` bytes of the body are out. */
  const cut = async () => {
    if (typeof step.hang === "number") {
      await pause(socket, Number.POSITIVE_INFINITY);
      return abandon();
    }
    await pause(socket, SETTLE_MS); // so that the bytes arrive before the end does
    return finish(step.resetAtByte !== undefined ? reset(socket) : end(socket));
  };

  let first = true;
  for (const part of dripped(parts, step.drip)) {
    if (seen.sentBytes >= cutAt) break;
    if (typeof part === "number") await pause(socket, part);
    else if (!first && step.delayBetweenChunksMs) await pause(socket, step.delayBetweenChunksMs);
    if (gone()) return abandon();
    if (typeof part === "number") continue;
    first = false;
    const bytes = part.subarray(0, Math.max(0, cutAt - seen.sentBytes));
    if (bytes.length === 0) continue;
    await write(socket, chunked ? frame(bytes) : bytes);
    if (gone()) return abandon();
    seen.sentBytes += bytes.length;
  }
  if (cutAt !== Infinity) return cut();
  if (chunked) await write(socket, "0\r\n\r\n");
  if (gone()) return abandon();
  if (step.closeIdleMs !== undefined) {
    const timer = setTimeout(() => socket.destroy(), step.closeIdleMs);
    socket.once("close", () => clearTimeout(timer));
  }
  return finish(closes ? end(socket) : true);
}

/** Time for bytes to reach a client on the same machine before the connection is cut under it. */
const SETTLE_MS = 15;

/** The bytes of the head, and the body in parts. */
function compose(/** @type {Step} */ step) {
  const { body, contentType } = bodyOf(step);
  const whole = typeof body === "string" || body instanceof Uint8Array;
  const closeDelimited = step.contentLength === false && !step.chunked;
  const chunked = step.chunked ?? (!whole && step.contentLength === undefined);
  const closes = step.close === true || (closeDelimited && !chunked);
  /** @type {Parts} */
  const parts = whole ? [body] : body;
  const headers = headerPairs(step.headers);
  const has = (/** @type {string} */ name) => headers.some(([other]) => other.toLowerCase() === name);
  if (contentType && !has("content-type")) headers.push(["content-type", contentType]);
  const status = step.status ?? 200;
  const bodiless = status === 204 || status === 304;
  if (chunked) headers.push(["transfer-encoding", "chunked"]);
  else if (!closeDelimited && !bodiless && !has("content-length")) {
    headers.push(["content-length", String(step.contentLength ?? lengthOf(parts))]);
  }
  if (closes) headers.push(["connection", "close"]);
  const lines = [
    `HTTP/1.1 ${status} ${step.statusText ?? REASONS[status] ?? ""}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  return { head: Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), parts, chunked, closes };
}

/** @returns {{ body: string | Uint8Array | Parts, contentType: string | null }} */
function bodyOf(/** @type {Step} */ step) {
  if (step.json !== undefined) return { body: JSON.stringify(step.json), contentType: "application/json" };
  const body = typeof step.body === "function" ? step.body() : step.body;
  return { body: body ?? "", contentType: null };
}

/** @type {Record<number, string>} */
const REASONS = {
  200: "OK",
  400: "Bad Request",
  401: "Unauthorized",
  404: "Not Found",
  418: "I'm a Teapot",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/** @returns {[string, string][]} */
function headerPairs(/** @type {Step["headers"]} */ headers) {
  if (!headers) return [];
  if (Array.isArray(headers)) return headers.map(([name, value]) => [name, String(value)]);
  return Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one) => /** @type {[string, string]} */ ([name, String(one)])),
  );
}

function lengthOf(/** @type {Parts} */ parts) {
  let length = 0;
  for (const part of parts) if (typeof part !== "number") length += Buffer.byteLength(part);
  return length;
}

/**
 * The parts as bytes, cut small where the step drips. Numbers (pauses) stay.
 *
 * @param {Parts} parts
 * @param {Step["drip"]} drip
 * @returns {Generator<Uint8Array | number>}
 */
function* dripped(parts, drip) {
  let any = false;
  for (const part of parts) {
    if (typeof part === "number") {
      yield part;
      continue;
    }
    const bytes = Buffer.from(part);
    if (!drip) {
      yield bytes;
      continue;
    }
    for (let start = 0; start < bytes.length; start += drip.bytes) {
      if (any) yield drip.everyMs;
      any = true;
      yield bytes.subarray(start, start + drip.bytes);
    }
  }
}

function frame(/** @type {Uint8Array} */ bytes) {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

/** Writes, and waits until the kernel has it or the connection is gone. */
function write(/** @type {net.Socket} */ socket, /** @type {string | Uint8Array} */ bytes) {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve(undefined);
    const done = () => {
      socket.off("close", done);
      resolve(undefined);
    };
    socket.once("close", done);
    socket.write(bytes, done);
  });
}

/** Waits, or less long if the client goes away. */
function pause(/** @type {net.Socket} */ socket, /** @type {number} */ ms) {
  return new Promise((resolve) => {
    if (socket.destroyed || socket.readableEnded) return resolve(undefined);
    const done = () => {
      clearTimeout(timer);
      socket.off("close", done);
      socket.off("end", done);
      resolve(undefined);
    };
    const timer = Number.isFinite(ms) ? setTimeout(done, ms) : undefined;
    socket.once("close", done);
    socket.once("end", done);
  });
}

function reset(/** @type {net.Socket} */ socket) {
  socket.resetAndDestroy();
  return false;
}

function end(/** @type {net.Socket} */ socket) {
  socket.end();
  return false;
}

/**
 * Looks every few milliseconds whether `condition` holds, and gives up with its text after `timeoutMs`.
 *
 * @param {() => boolean} condition
 * @param {number} [timeoutMs]
 */
async function waitUntil(condition, timeoutMs = 5000) {
  const giveUpAt = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > giveUpAt) throw new Error(`the upstream waited ${timeoutMs} ms in vain for: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
