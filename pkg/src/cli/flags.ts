/** Flags of the command line, and how a misuse of them is told. */
import { parseArgs } from "node:util";

/** A command that was not used as it can be: exit status 2, and a message for a person. */
export class Misuse extends Error {}

/** A flag: one text, a text as often as it is given, or a switch. */
export type FlagKind = "text" | "texts" | "switch";

/** What was given of a table of flags. */
export type Given<T extends Readonly<Record<string, FlagKind>>> = {
  readonly [K in keyof T]?: T[K] extends "texts" ? readonly string[] : T[K] extends "text" ? string : boolean;
};

/** Reads `args` by a table of flags; throws a {@link Misuse} for what is not known, or lacks its value. */
export function flags<const T extends Readonly<Record<string, FlagKind>>>(args: string[], table: T): Given<T> {
  const options = Object.fromEntries(
    Object.entries(table).map(([name, kind]) => [
      name,
      { type: kind === "switch" ? ("boolean" as const) : ("string" as const), multiple: kind === "texts" },
    ]),
  );
  try {
    return parseArgs({ args, options, strict: true, allowPositionals: false }).values as Given<T>;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // Node goes on with advice on positional arguments, which no command takes.
    throw new Misuse(message.split(/\. (?:To specify|This command)/, 1)[0] ?? message);
  }
}
