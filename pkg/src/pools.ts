/** Puts a pool's key into a request: in the place where the request carries one, or where its provider wants it. */
import type { Change } from "./request.js";
import type { Pool, PoolKey } from "./types.js";

/** A key of the pools, with the pool that it belongs to. */
export interface OwnedKey {
  readonly key: PoolKey;
  readonly pool: Pool;
}

/** Headers that carry keys, in the order in which they are looked for. */
const KEY_HEADERS = ["authorization", "x-api-key", "x-goog-api-key", "api-key"] as const;

const BY_PROVIDER: Readonly<Record<string, (typeof KEY_HEADERS)[number]>> = {
  anthropic: "x-api-key",
  gemini: "x-goog-api-key",
  azure: "api-key",
};

/** All keys in the order of the options, which is how the core numbers them. */
export function keysOf(pools: readonly Pool[] | undefined): readonly OwnedKey[] {
  return (pools ?? []).flatMap((pool) => pool.keys.map((key) => ({ key, pool })));
}

/** What a request carries as its key, whatever header it is in; empty if nothing. */
export function credentialOf(header: (name: string) => string | null): string {
  for (const name of KEY_HEADERS) {
    const value = header(name);
    if (value !== null) return value;
  }
  return "";
}

/** A key that could not be had. */
export class KeyUnavailable extends TypeError {}

/** The value of a key; rejects with a clear error that names the key's id and nothing of its value. */
export async function secretOf({ key }: OwnedKey): Promise<string> {
  if (typeof key.value === "string") return sendable(key.id, key.value);
  let value: unknown;
  try {
    value = await key.value();
  } catch (cause) {
    throw new KeyUnavailable(`evenkeel: the function of key ${JSON.stringify(key.id)} failed`, { cause });
  }
  if (typeof value === "string" && value !== "") return sendable(key.id, value);
  throw new KeyUnavailable(`evenkeel: the function of key ${JSON.stringify(key.id)} gave no string`);
}

/** A header takes only some characters; what a host says of others quotes the whole value. */
export const SENDABLE = /^[\x21-\x7e]+$/;

function sendable(id: string, value: string): string {
  if (SENDABLE.test(value)) return value;
  throw new KeyUnavailable(
    `evenkeel: key ${JSON.stringify(id)} holds a character that no header can (a line break at its end?)`,
  );
}

/** What has to change for a request to go out with this key. */
export function withKey(
  url: string,
  header: (name: string) => string | null,
  { pool }: OwnedKey,
  value: string,
): Change {
  const target = pool.baseURL === undefined ? url : rebase(url, pool.baseURL);
  const query = new URL(target);
  if (query.searchParams.has("key")) {
    query.searchParams.set("key", value);
    return { url: query.href, headers: [], replace: true };
  }
  const name = KEY_HEADERS.find((one) => header(one) !== null) ?? BY_PROVIDER[pool.provider] ?? "authorization";
  const headers: [string, string][] = [[name, name === "authorization" ? `Bearer ${value}` : value]];
  return { url: pool.baseURL === undefined ? null : target, headers, replace: true };
}

/** The path at another base: its origin, and its path before the request's; what ends the one and begins the other stands once. */
function rebase(url: string, baseURL: string): string {
  const from = new URL(url);
  const base = new URL(baseURL);
  const prefix = base.pathname.replace(/\/+$/, "");
  let shared = prefix;
  // Base URLs are mostly written as the SDKs take them, with the `/v1` that every request brings along.
  while (!`${from.pathname}/`.startsWith(`${shared}/`)) {
    const next = shared.indexOf("/", 1);
    shared = next < 0 ? "" : shared.slice(next);
  }
  return `${base.origin}${prefix}${from.pathname.slice(shared.length)}${from.search}`;
}
