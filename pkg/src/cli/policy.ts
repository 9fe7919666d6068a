/** `evenkeel policy`: what a policy means, for a person, before it meets traffic. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { createKeel, KeelConfigError, type KeelOptions } from "../entry.inline.js";
import { render } from "../policy.js";
import { flags, Misuse } from "./flags.js";

/** What `evenkeel policy --help` says. */
export const POLICY_USAGE = `usage: evenkeel policy [--config FILE | --preset NAME] [--json]

Says what a policy means: the worst case of one call in time and requests, its waits drawn on a time axis, and what is
wrong with it.

  --config FILE   options of createKeel as JSON
  --preset NAME   interactive, standard (the default) or background
  --json          the same as JSON, as keel.explainPolicy() gives it

exit status: 0; 1 if something is wrong with the policy; 2 for a misuse
`;

/** Runs the command. */
export async function policy(args: string[]): Promise<number> {
  const given = flags(args, { config: "text", preset: "text", json: "switch" });
  if (given.config !== undefined && given.preset !== undefined) {
    throw new Misuse("--config and --preset exclude each other; a config may hold a preset");
  }
  const options = given.config === undefined ? { preset: given.preset ?? "standard" } : read(given.config);
  const explained = explain(options as KeelOptions);
  process.stdout.write(given.json === true ? `${JSON.stringify(explained)}\n` : render(explained));
  return explained.findings.some(({ severity }) => severity === "problem") ? 1 : 0;
}

function explain(options: KeelOptions) {
  try {
    return createKeel(options).explainPolicy();
  } catch (error) {
    if (error instanceof KeelConfigError) throw new Misuse(error.message);
    throw error;
  }
}

function read(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    throw new Misuse(`${path || '""'} can't be read`);
  }
  let options: unknown;
  try {
    options = JSON.parse(text);
  } catch {
    throw new Misuse(`${path} is not JSON`);
  }
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new Misuse(`${path}: expected an object of options`);
  return options;
}
