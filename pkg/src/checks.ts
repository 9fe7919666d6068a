/** What the checks of options are built from: each takes a value and its path, and throws if it is wrong. */
import { KeelConfigError } from "./errors.js";

/** Throws {@link KeelConfigError} if a value is wrong. */
export type Check = (value: unknown, path: string) => void;

/** A number in a range. */
export function number(min: number, max: number, what = "a number"): Check {
  return (value, path) => {
    if (typeof value !== "number" || !(value >= min && value <= max)) {
      throw new KeelConfigError(path, value, `${what} from ${min} to ${max}`);
    }
  };
}

/** A whole number in a range. */
export function whole(min: number, max: number): Check {
  const range = number(min, max, "a whole number");
  return (value, path) => {
    range(value, path);
    if (!Number.isInteger(value)) throw new KeelConfigError(path, value, `a whole number from ${min} to ${max}`);
  };
}

/** Milliseconds. */
export const ms = (min: number, max = 2_147_483_647): Check => number(min, max, "milliseconds");

/** One of some words. */
export function oneOf(values: readonly string[]): Check {
  const expected = `one of ${values.map((v) => JSON.stringify(v)).join(", ")}`;
  return (value, path) => {
    if (typeof value !== "string" || !values.includes(value)) throw new KeelConfigError(path, value, expected);
  };
}

/** A function. */
export const func: Check = (value, path) => {
  if (typeof value !== "function") throw new KeelConfigError(path, value, "a function");
};

/** True or false. */
export const boolean: Check = (value, path) => {
  if (typeof value !== "boolean") throw new KeelConfigError(path, value, "true or false");
};

/** Control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Text without control characters. */
export function string(max: number): Check {
  return (value, path) => {
    if (typeof value !== "string" || value.length === 0 || value.length > max || CONTROL.test(value)) {
      throw new KeelConfigError(path, value, `a string of 1 to ${max} characters, none of them a control character`);
    }
  };
}

/** An object with these members and no others, each of which may be absent unless it is `needed`. */
export function object(members: Record<string, Check>, needed: readonly string[] = []): Check {
  return (value, path) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new KeelConfigError(path, value, "an object");
    }
    for (const [name, member] of Object.entries(value)) {
      const at = path === "" ? name : `${path}.${name}`;
      const check = Object.hasOwn(members, name) ? members[name] : undefined;
      if (check === undefined) {
        // Never shown: somebody may have given a key as an option.
        const got = typeof member === "string" ? Symbol.for("string") : member;
        throw new KeelConfigError(at, got, `no such member; known are ${Object.keys(members).join(", ")}`);
      }
      if (member !== undefined || needed.includes(name)) check(member, at);
    }
    for (const name of needed) if (!(name in value)) members[name]?.(undefined, `${path}.${name}`);
  };
}

/** What a check takes, or `false`. */
export const orFalse =
  (check: Check): Check =>
  (value, path) => {
    if (value === false) return;
    if (typeof value !== "object" || value === null) throw new KeelConfigError(path, value, "an object, or false");
    check(value, path);
  };

/** An array of so many items, each of which passes a check. */
export const items =
  (min: number, max: number, check: Check): Check =>
  (value, path) => {
    if (!Array.isArray(value) || value.length < min || value.length > max)
      throw new KeelConfigError(path, value, min === 0 ? `an array of at most ${max}` : `an array of ${min} to ${max}`);
    value.forEach((one: unknown, at) => {
      check(one, `${path}[${at}]`);
    });
  };

/** One, or up to 64 of them. */
export const some = (check: Check): Check => {
  const many = items(1, 64, check);
  return (value, path) => {
    (Array.isArray(value) ? many : check)(value, path);
  };
};
