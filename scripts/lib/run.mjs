// What every script needs to talk to a person and to run commands: paths, messages, processes.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { delimiter, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/[/\\]$/, "");
export const TOOLS = join(ROOT, ".tools");
export const BUILD = join(ROOT, "build");
export const PKG = join(ROOT, "pkg");
export const DIST = join(PKG, "dist");

const colour = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
const paint = (code) => (text) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
export const bold = paint(1);
export const dim = paint(2);
export const red = paint(31);
export const green = paint(32);
export const yellow = paint(33);

/** Something is missing on this machine, or went wrong in a way that a stack trace does not explain. */
export class Stop extends Error {}

/** Runs `main` and turns a [`Stop`] into a message and exit status 1. */
export async function runMain(main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    console.error(`${red("error:")} ${error.message}`);
    process.exitCode = 1;
  }
}

export function say(text) {
  console.log(text);
}

/** `process.env` with `first` in front of the PATH and `extra` on top. */
export function environment(extra = {}, first = [join(TOOLS, "bin"), join(ROOT, "node_modules", ".bin")]) {
  const path = [...first, process.env.PATH ?? ""].filter((part) => part !== "").join(delimiter);
  return { ...process.env, PATH: path, ...extra };
}

const onWindows = process.platform === "win32";

/**
 * Runs a command and resolves to `{ code, output }`; never rejects for a non-zero status.
 * With `show` the output also goes to the terminal as it comes.
 */
export function run(command, args, { cwd = ROOT, env = environment(), show = false } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], shell: onWindows });
    let output = "";
    const take = (stream) => (chunk) => {
      output += chunk;
      if (show) stream.write(chunk);
    };
    child.stdout.setEncoding("utf8").on("data", take(process.stdout));
    child.stderr.setEncoding("utf8").on("data", take(process.stderr));
    child.on("error", (error) => resolve({ code: 127, output: `${output}${command}: ${error.message}\n` }));
    child.on("close", (code, signal) =>
      resolve({ code: code ?? 1, output: signal ? `${output}(${signal})\n` : output }),
    );
  });
}

/** Runs a command that has to work: its output is shown, and `Stop` thrown, when it does not. */
export async function must(what, command, args, options) {
  const result = await run(command, args, options);
  if (result.code !== 0) {
    if (!options?.show) process.stderr.write(result.output);
    throw new Stop(`${what} failed: \`${command} ${args.join(" ")}\` ended with status ${result.code}`);
  }
  return result.output;
}

/** Standard output of a command, trimmed, or `undefined` if it cannot be run or fails. */
export function ask(command, args, options = {}) {
  const result = spawnSync(command, args, {
    cwd: ROOT,
    encoding: "utf8",
    env: environment(),
    shell: onWindows,
    ...options,
  });
  return result.status === 0 ? result.stdout.trim() : undefined;
}

/** All files under a path (or the path itself if it is a file), sorted, as absolute paths. */
export function filesUnder(path) {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.name !== "node_modules")
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => filesUnder(join(path, entry.name)));
}

/** A hash over names and contents of files and over further strings. */
export function fingerprint(paths, strings = []) {
  const hash = createHash("sha256");
  for (const file of paths.flatMap(filesUnder)) {
    hash
      .update(`${relative(ROOT, file).split(sep).join("/")}\0`)
      .update(readFileSync(file))
      .update("\0");
  }
  for (const text of strings) hash.update(`${text}\0`);
  return hash.digest("hex");
}

/** `["--flag", "--name", "value"]` read by a small table `{ flag: false, name: "" }` of defaults. */
export function options(defaults, usage) {
  const found = { ...defaults };
  const args = process.argv.slice(2);
  for (let at = 0; at < args.length; at += 1) {
    const [, name, inline] = /^--([a-z-]+)(?:=(.*))?$/.exec(args[at]) ?? [];
    if (name === "help") {
      say(usage);
      process.exit(0);
    }
    if (name === undefined || !(name in defaults)) throw new Stop(`unknown argument ${args[at]}\n\n${usage}`);
    if (typeof defaults[name] === "boolean") {
      found[name] = true;
    } else {
      at += inline === undefined ? 1 : 0;
      found[name] = inline ?? args[at];
      if (found[name] === undefined) throw new Stop(`--${name} needs a value\n\n${usage}`);
    }
  }
  return found;
}
