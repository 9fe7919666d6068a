#!/usr/bin/env node
/** `npx evenkeel …`. The one part of the package that is a Node program; see `evenkeel --help`. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { CLASSIFY_USAGE, classifyLines } from "./cli/classify.js";
import { EXPLAIN_USAGE, explain } from "./cli/explain.js";
import { Misuse } from "./cli/flags.js";
import { POLICY_USAGE, policy } from "./cli/policy.js";

const USAGE = `usage: evenkeel <command> [options]

  classify   judge errors given as JSON Lines on standard input
  explain    say what one error is and what to do about it
  policy     say what a policy means, and what is wrong with it

evenkeel <command> --help tells more of each, evenkeel --version says which evenkeel this is.
`;

const COMMANDS: Readonly<Record<string, { run(args: string[]): Promise<number>; usage: string }>> = {
  classify: { run: classifyLines, usage: CLASSIFY_USAGE },
  explain: { run: explain, usage: EXPLAIN_USAGE },
  policy: { run: policy, usage: POLICY_USAGE },
};

/** Runs a command; resolves to the exit status: 0, 1 if something on standard input was wrong, 2 for a misuse. */
async function main([name, ...args]: string[]): Promise<number> {
  if (name === "--version" || name === "-v" || name === "-V" || name === "version") {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    process[name === undefined ? "stderr" : "stdout"].write(USAGE);
    return name === undefined ? 2 : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    process.stderr.write(`evenkeel: there is no command ${JSON.stringify(name)}\n\n${USAGE}`);
    return 2;
  }
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(command.usage);
    return 0;
  }
  try {
    return await command.run(args);
  } catch (error) {
    if (!(error instanceof Misuse)) throw error;
    process.stderr.write(`evenkeel ${name}: ${error.message}\n(evenkeel ${name} --help lists the options)\n`);
    return 2;
  }
}

function version(): string {
  const { version: own } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return own;
}

// Whoever reads may stop reading, as `head` does.
process.stdout.on("error", (error) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

process.exitCode = await main(process.argv.slice(2));
