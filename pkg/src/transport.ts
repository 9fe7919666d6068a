/** Transport errors as the core reads them: the error and its causes, packed. */

import { FIELD, RECORD } from "./packed.js";

/** How deep causes are followed; undici nests two, proxies a few more. */
const MAX_DEPTH = 8;
/** Characters of a message that cross. */
const MAX_TEXT = 512;

/** Packs an error and its causes, outermost first: name, code, message. Whatever was thrown, this does not throw. */
export function packError(error: unknown): string {
  let packed = "";
  let current: unknown = error;
  for (let depth = 0; depth < MAX_DEPTH && current !== undefined && current !== null; depth += 1) {
    if (typeof current !== "object") {
      packed += `${FIELD}${FIELD}${clean(current)}${RECORD}`;
      break;
    }
    packed += `${clean(member(current, "name"))}${FIELD}${clean(member(current, "code"))}${FIELD}${clean(member(current, "message"))}${RECORD}`;
    const errors = member(current, "errors");
    // An AggregateError (happy eyeballs) says little itself; its first error does.
    const next = member(current, "cause") ?? (Array.isArray(errors) ? errors[0] : undefined);
    if (next === current) break;
    current = next;
  }
  return packed;
}

function member(value: object, name: string): unknown {
  try {
    return (value as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}

function clean(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? line(String(value), MAX_TEXT) : "";
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROL = /[\u0000-\u001f]/g;

/** Text as it may cross, packed with others: on one line, and cut. */
export function line(text: string, max: number): string {
  return text.slice(0, max).replace(CONTROL, " ");
}

/** A name as it may cross, packed with others. */
export function strip(text: string | undefined): string {
  return text === undefined ? "" : line(text, 512);
}
