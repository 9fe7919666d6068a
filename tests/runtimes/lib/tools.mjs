// What the runners share: where each runtime's binary is, the package as its users get it, and the golden records.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, BUILD, must, PKG, ROOT, run } from "../../../scripts/lib/run.mjs";

export const HERE = join(ROOT, "tests", "runtimes");
export const GOLDEN = join(ROOT, "tests", "conformance", "golden.ndjson");
const MODULES = join(HERE, "node_modules");

/** Where a runtime's binary may be; `undefined` in the list is one that this platform has not. */
const BINARIES = {
  node20: [`node20-${process.platform}-${process.arch}/bin/node`],
  node22: [`node22-${process.platform}-${process.arch}/bin/node`],
  node24: [`node24-${process.platform}-${process.arch}/bin/node`],
  deno: ["linux-x64-glibc", "linux-arm64-glibc", "darwin-arm64", "darwin-x64"].map((name) => `@deno/${name}/deno`),
  bun: ["linux-x64", "linux-aarch64", "darwin-aarch64", "darwin-x64"].map((name) => `@oven/bun-${name}/bin/bun`),
  workerd: ["linux-64", "linux-arm64", "darwin-arm64", "darwin-64"].map(
    (name) => `@cloudflare/workerd-${name}/bin/workerd`,
  ),
};

/** Installs the runtimes unless they are there. They need no install script: the binaries lie in packages by platform. */
export async function ensureRuntimes() {
  const installed = statSync(join(MODULES, ".package-lock.json"), { throwIfNoEntry: false });
  if (installed !== undefined && installed.mtimeMs >= statSync(join(HERE, "package-lock.json")).mtimeMs) return;
  await must("npm ci", "npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: HERE });
}

/** A runtime's binary, or `undefined` if it can't be had here. */
export function binary(name) {
  if (name === "chromium")
    return process.env.CHROMIUM ?? ask("sh", ["-c", "command -v chromium || command -v google-chrome"]);
  return BINARIES[name].map((path) => join(MODULES, path)).find((path) => existsSync(path));
}

/**
 * A folder with the packed package under node_modules, as `npm install` leaves it, the suite, and its entries.
 *
 * @param {string} name Of the folder, under build/runtimes.
 * @param {{ from?: string }} [options] The package's folder, `pkg` if not given.
 */
export async function stage(name, { from = PKG } = {}) {
  const folder = join(BUILD, "runtimes", name);
  const home = join(folder, "node_modules", "evenkeel");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  const packed = await must("npm pack", "npm", ["pack", "--json", "--silent", "--pack-destination", folder], {
    cwd: from,
  });
  const [{ filename }] = [JSON.parse(packed)]
    .flat()
    .flatMap((one) => (one.filename === undefined ? Object.values(one) : one));
  await must("tar", "tar", ["-xzf", join(folder, filename), "--strip-components=1", "-C", home]);
  cpSync(join(ROOT, "tests", "conformance"), join(folder, "conformance"), { recursive: true });
  for (const file of ["main.mjs", "print.mjs"]) cpSync(join(HERE, file), join(folder, file));
  writeFileSync(
    join(folder, "package.json"),
    '{ "private": true, "type": "module", "dependencies": { "evenkeel": "*" } }\n',
  );
  return folder;
}

/** Runs a program that prints a result as its last line. */
export async function resultOf(command, args, options) {
  const { code, output } = await run(command, args, options);
  const line = output.trimEnd().split("\n").at(-1) ?? "";
  if (code !== 0 || !line.startsWith("{")) return broken(`${command} ended with ${code}:\n${output.slice(-4_000)}`);
  return JSON.parse(line);
}

/** The result of a host that could not run the suite at all. */
export function broken(error) {
  return { passed: 0, failed: 1, failures: [{ name: "the suite runs", error }], golden: "" };
}

/** What is wrong with golden records, or `undefined`: the first line that differs. */
export function compareGolden(got) {
  const expected = readFileSync(GOLDEN, "utf8");
  if (got === expected) return undefined;
  const [a, b] = [got.split("\n"), expected.split("\n")];
  const at = b.findIndex((line, i) => line !== a[i]);
  return `line ${at + 1} of the golden records differs:\n  got      ${a[at]}\n  expected ${b[at]}`;
}
