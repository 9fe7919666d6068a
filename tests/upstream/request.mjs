/**
 * Reads HTTP/1.1 requests from a socket, one after the other: head, then a body with a content-length or in chunks.
 * Just enough of HTTP for clients that behave; a request that doesn't parse ends the connection. Credentials are
 * masked here, so that nothing further on can print one.
 */

const SECRET_HEADERS = new Set([
  "authorization",
  "proxy-authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "cookie",
]);

/**
 * @param {import("node:net").Socket} socket
 * @returns {AsyncGenerator<{ method: string, path: string, headers: Record<string, string>, body: string, json: unknown }>}
 */
export async function* readRequests(socket) {
  const input = byteReader(socket);
  for (;;) {
    const head = await input.until("\r\n\r\n");
    if (head === null) return;
    const [requestLine = "", ...lines] = head.toString("latin1").split("\r\n");
    const [method = "", path = ""] = requestLine.split(" ");
    /** @type {Record<string, string>} */
    const headers = {};
    for (const line of lines) {
      const colon = line.indexOf(":");
      if (colon < 1) continue;
      const name = line.slice(0, colon).trim().toLowerCase();
      const value = line.slice(colon + 1).trim();
      headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
    }
    const body = await readBody(input, headers);
    if (body === null) return;
    for (const name of Object.keys(headers)) {
      if (SECRET_HEADERS.has(name)) headers[name] = masked(headers[name] ?? "");
    }
    const text = body.toString("utf8");
    yield {
      method,
      path: path.replace(/([?&](?:api_)?key=)([^&]*)/gi, (_, name, value) => name + masked(value)),
      headers,
      body: text,
      json: parsed(text),
    };
  }
}

/** `Bearer sk-test-1234` becomes `Bearer ***1234`. */
export function masked(/** @type {string} */ value) {
  const [, scheme = "", secret = ""] = /^(\w+ )?(.*)$/s.exec(value) ?? [];
  return `${scheme}***${secret.length >= 12 ? secret.slice(-4) : ""}`;
}

function parsed(/** @type {string} */ text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * @param {ReturnType<typeof byteReader>} input
 * @param {Record<string, string>} headers
 */
async function readBody(input, headers) {
  if (!/chunked/i.test(headers["transfer-encoding"] ?? ""))
    return input.exactly(Number(headers["content-length"] ?? 0));
  const chunks = [];
  for (;;) {
    const line = await input.until("\r\n");
    if (line === null) return null;
    const size = Number.parseInt(line.toString("latin1"), 16);
    const chunk = await input.exactly(size);
    if (chunk === null || (await input.until("\r\n")) === null) return null;
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(chunk);
  }
}

/**
 * Bytes on demand from a socket. Null once the connection has ended before there was enough.
 *
 * It listens to `data` and doesn't pause: what a client sends between two requests is small, and a client that goes
 * away has to be noticed while an answer is being played.
 *
 * @param {import("node:net").Socket} socket
 */
function byteReader(socket) {
  /** @type {Buffer[]} */
  let pieces = [];
  let length = 0;
  let over = false;
  let wake = () => {};
  socket.on("data", (bytes) => {
    pieces.push(bytes);
    length += bytes.length;
    wake();
  });
  for (const event of ["end", "close", "error"]) {
    socket.on(event, () => {
      over = true;
      wake();
    });
  }
  const more = () => new Promise((resolve) => (wake = () => resolve(undefined)));
  const joined = () => {
    if (pieces.length !== 1) pieces = [Buffer.concat(pieces)];
    return /** @type {Buffer} */ (pieces[0]);
  };
  const take = (/** @type {number} */ count, /** @type {number} */ skip) => {
    const all = joined();
    pieces = [all.subarray(count + skip)];
    length -= count + skip;
    return all.subarray(0, count);
  };

  return {
    /** @returns {Promise<Buffer | null>} What comes before `mark`; the mark itself is consumed. */
    async until(/** @type {string} */ mark) {
      for (;;) {
        const at = joined().indexOf(mark);
        if (at >= 0) return take(at, mark.length);
        if (over) return null;
        await more();
      }
    },
    /** @returns {Promise<Buffer | null>} */
    async exactly(/** @type {number} */ count) {
      while (length < count) {
        if (over) return null;
        await more();
      }
      return take(count, 0);
    },
  };
}
