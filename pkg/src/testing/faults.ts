/**
 * Transport errors as each runtime words them: what `fetch` rejects with where there is no HTTP answer, and what a body
 * ends with that is broken off. Recorded from the runtimes named, with the addresses replaced.
 */

/** What went wrong on the wire. */
export type FaultKind = "refused" | "dns" | "connect-timeout" | "reset" | "body-reset";

/** Whose words are used. */
export type RuntimeName = "node" | "bun" | "deno" | "workerd" | "browser";

interface Wording {
  readonly name?: string;
  readonly code?: string;
  readonly message: string;
  readonly cause?: { readonly name?: string; readonly code?: string; readonly message: string };
}

const NODE = "fetch failed";
const DENO = "error sending request for url (https://api.example.com/)";
const LOST = "Network connection lost.";
const CHROMIUM = "Failed to fetch";

const WORDINGS: Readonly<Record<RuntimeName, Readonly<Record<FaultKind, Wording>>>> = {
  node: {
    refused: {
      name: "TypeError",
      message: NODE,
      cause: { code: "ECONNREFUSED", message: "connect ECONNREFUSED 192.0.2.1:443" },
    },
    dns: {
      name: "TypeError",
      message: NODE,
      cause: { code: "ENOTFOUND", message: "getaddrinfo ENOTFOUND api.example.com" },
    },
    "connect-timeout": {
      name: "TypeError",
      message: NODE,
      cause: { name: "ConnectTimeoutError", code: "UND_ERR_CONNECT_TIMEOUT", message: "Connect Timeout Error" },
    },
    reset: { name: "TypeError", message: NODE, cause: { code: "ECONNRESET", message: "read ECONNRESET" } },
    "body-reset": {
      name: "TypeError",
      message: "terminated",
      cause: { name: "SocketError", code: "UND_ERR_SOCKET", message: "other side closed" },
    },
  },
  bun: {
    refused: { code: "ConnectionRefused", message: "Unable to connect. Is the computer able to access the url?" },
    dns: { code: "ConnectionRefused", message: "Unable to connect. Is the computer able to access the url?" },
    "connect-timeout": { name: "TimeoutError", code: "ETIMEDOUT", message: "The operation timed out." },
    reset: {
      code: "ECONNRESET",
      message:
        "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()",
    },
    "body-reset": {
      code: "ECONNRESET",
      message:
        "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()",
    },
  },
  deno: {
    refused: {
      name: "TypeError",
      message: `${DENO}: client error (Connect): tcp connect error: Connection refused (os error 111)`,
    },
    dns: {
      name: "TypeError",
      message: `${DENO}: client error (Connect): dns error: failed to lookup address information: Name or service not known`,
    },
    "connect-timeout": {
      name: "TypeError",
      message: `${DENO}: client error (Connect): tcp connect error: Connection timed out (os error 110)`,
    },
    reset: {
      name: "TypeError",
      message: `${DENO}: client error (SendRequest): connection error: Connection reset by peer (os error 104)`,
    },
    "body-reset": { name: "TypeError", message: "error reading a body from connection" },
  },
  workerd: {
    refused: { message: LOST },
    dns: { message: "internal error; reference = 0123456789abcdefghijklmn" },
    "connect-timeout": { message: LOST },
    reset: { message: LOST },
    "body-reset": { message: LOST },
  },
  browser: {
    refused: { name: "TypeError", message: CHROMIUM },
    dns: { name: "TypeError", message: CHROMIUM },
    "connect-timeout": { name: "TypeError", message: CHROMIUM },
    reset: { name: "TypeError", message: CHROMIUM },
    "body-reset": { name: "TypeError", message: "network error" },
  },
};

/**
 * An error as `fetch` or a body's reader gives it.
 *
 * @param kind - What happened.
 * @param runtime - Whose words to use; browsers are Chromium's. Default `"node"`.
 */
export function transportError(kind: FaultKind, runtime: RuntimeName = "node"): Error {
  const { cause, ...outer } = WORDINGS[runtime][kind];
  return make(outer, cause === undefined ? undefined : make(cause, undefined));
}

function make({ name, code, message }: Wording, cause: Error | undefined): Error {
  const options = cause === undefined ? undefined : { cause };
  const error = name === "TypeError" ? new TypeError(message, options) : new Error(message, options);
  if (name !== undefined && name !== "TypeError") error.name = name;
  return code === undefined ? error : Object.assign(error, { code });
}
