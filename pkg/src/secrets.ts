/** Keeps keys out of what leaves with an error: hosts quote a header's value, or a URL, in the errors that they throw. */
import { credentialOf } from "./pools.js";
import type { Outgoing } from "./request.js";

/** How deep causes are looked into. */
const MAX_DEPTH = 8;
/** Shorter values are no keys, and would be found everywhere. */
const MIN_SECRET = 6;

/** The error as it came, or without what it quotes: told by name, with the keys of the request taken out. */
export function withoutSecrets(error: unknown, request: Outgoing): unknown {
  const secrets = secretsOf(request);
  if (secrets.length === 0) return error;
  try {
    // Not by `instanceof`: the errors of a host's `fetch` may be of another realm than this code (test runners).
    let current = error;
    for (let depth = 0; depth < MAX_DEPTH && current !== undefined && current !== null; depth += 1) {
      const message = messageOf(current);
      if (secrets.some((secret) => message.includes(secret))) return redacted(error, secrets);
      current = (current as Error).cause;
    }
    return error;
  } catch {
    // What can't be looked into is not given on.
    return undefined;
  }
}

/** Of an error; what else was thrown is its own message. */
function messageOf(error: unknown): string {
  return String((error as Error).message ?? error);
}

function redacted(error: unknown, secrets: readonly string[]): Error {
  let message = messageOf(error);
  for (const secret of secrets) message = message.replaceAll(secret, "[removed]");
  const told = new Error(message);
  told.name = `${(error as Error).name ?? told.name}`;
  return told;
}

function secretsOf({ url, header }: Outgoing): string[] {
  const found = [credentialOf(header).replace(/^Bearer\s+/i, "")];
  // By hand: what is wrong with the URL may be why there is an error.
  const userInfo = /^[^:/?#]*:\/\/([^/?#]+)@/.exec(url)?.[1];
  if (userInfo !== undefined) found.push(userInfo, ...userInfo.split(":"));
  for (const [, value] of url.matchAll(/[?&](?:key|api[_-]?key|token|access_token)=([^&#]+)/gi))
    found.push(value ?? "");
  return found.filter((secret) => secret.length >= MIN_SECRET);
}
