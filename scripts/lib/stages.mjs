// The stages of `npm test`, in order. A new one is a new entry:
//
//   name      as in `--only name`
//   about     what it checks, for `--list`
//   command   [program, ...arguments], or a function that gives them
//   count     output => { passed, failed, skipped? }; without it the stage is one check, judged by its exit status
//   needs     () => undefined if it can run here, else the reason why not; { reason, allowed: true } may be skipped in
//             CI too
//   env       further environment variables

import { existsSync } from "node:fs";
import { join } from "node:path";
import { binary, ensureRuntimes } from "../../tests/runtimes/lib/tools.mjs";
import { ask, DIST, filesUnder, ROOT } from "./run.mjs";

const node = process.execPath;
const script = (name) => join(ROOT, "scripts", name);
const packaging = (name) => join(ROOT, "tests", "packaging", name);
const bin = (name, path) => join(ROOT, "node_modules", name, path);

const rust = () =>
  ask("cargo", ["--version"]) === undefined ? "Rust is not installed (https://rustup.rs)" : undefined;
const component = (name) => () =>
  rust() ??
  (ask("cargo", [name, "--version"]) === undefined
    ? `cargo ${name} is not installed (rustup component add ${name === "fmt" ? "rustfmt" : name})`
    : undefined);
const wasmTarget = () => {
  const sysroot = ask("rustc", ["--print", "sysroot"]) ?? "";
  const lib = join(sysroot, "lib", "rustlib", "wasm32-unknown-unknown", "lib");
  if (existsSync(lib)) return component("clippy")();
  // The build has tried to add the target and went on with std from source, which clippy cannot use.
  return { reason: "rustup has no wasm32-unknown-unknown here", allowed: true };
};
const built = () => (existsSync(join(DIST, "main.js")) ? undefined : "pkg/dist is not built");
const RUNTIMES = join(ROOT, "tests", "runtimes");
const allTests = () => filesUnder(join(ROOT, "tests")).filter((file) => file.endsWith(".test.mjs"));
const WWW_TESTS = join(ROOT, "tests", "www");
const tests = () => allTests().filter((file) => !file.startsWith(RUNTIMES) && !file.startsWith(WWW_TESTS));
const runtimeTests = () => allTests().filter((file) => file.startsWith(RUNTIMES));

const NO_CHROMIUM = "there is no Chromium (Debian: `apt-get install chromium`; or set CHROMIUM to its path)";

/** Why a runtime can't be had here, after an attempt to install it. */
const runtime = (name) => async () => {
  const unbuilt = built();
  if (unbuilt !== undefined) return unbuilt;
  try {
    await ensureRuntimes();
  } catch (error) {
    return `the runtimes could not be installed: ${error.message}`;
  }
  if (name === "edge" || binary(name) !== undefined) return undefined;
  return name === "chromium" ? NO_CHROMIUM : `${name} has no npm package for ${process.platform} on ${process.arch}`;
};

/** Reads `N passed, M failed` or `N passed, M failed, K skipped`, the last line of a script that counts. */
function lastLine(output) {
  const found = /(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$/.exec(output);
  const [, passed, failed, skipped = 0] = found ?? [0, 0, 1];
  return { passed: Number(passed), failed: Number(failed), skipped: Number(skipped) };
}

const conformance = (name, about) => ({
  name,
  about: `the conformance suite in ${about}`,
  command: [node, join(RUNTIMES, "run.mjs"), name],
  count: lastLine,
  needs: runtime(name),
});

/** Sums the `test result:` lines of cargo test, one a test binary. */
function cargoTests(output) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [, passed, failed, ignored] of output.matchAll(
    /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/gm,
  )) {
    counts.passed += Number(passed);
    counts.failed += Number(failed);
    counts.skipped += Number(ignored);
  }
  return counts;
}

/** Reads the closing numbers of `node --test`. */
export function nodeTests(output) {
  const number = (name) => Number(new RegExp(`^(?:#|ℹ) ${name} (\\d+)$`, "m").exec(output)?.[1] ?? 0);
  return {
    passed: number("pass"),
    failed: number("fail") + number("cancelled"),
    skipped: number("skipped") + number("todo"),
  };
}

export const STAGES = [
  { name: "fmt", about: "rustfmt", command: ["cargo", "fmt", "--check"], needs: component("fmt") },
  {
    name: "clippy",
    about: "clippy, natively, tests included",
    command: ["cargo", "clippy", "--all-targets", "--", "-D", "warnings"],
    needs: component("clippy"),
  },
  {
    name: "rust",
    about: "Rust unit, table, property and doc tests",
    command: ["cargo", "test"],
    // The same cases each time; CONTRIBUTING.md says how to draw others.
    env: { PROPTEST_RNG_SEED: process.env.PROPTEST_RNG_SEED ?? "2026" },
    count: cargoTests,
    needs: rust,
  },
  {
    name: "build",
    about: "the npm package, with the core that can trap beside it",
    command: [node, script("build.mjs"), "--with-trap"],
    needs: rust,
  },
  {
    name: "clippy-wasm",
    about: "clippy of the wasm side",
    command: [
      "cargo",
      "clippy",
      "--lib",
      "--target",
      "wasm32-unknown-unknown",
      "--features",
      "module",
      "--",
      "-D",
      "warnings",
    ],
    needs: wasmTarget,
  },
  {
    name: "tsc",
    about: "types of pkg/src",
    command: [node, bin("typescript", "bin/tsc"), "-p", "pkg", "--noEmit"],
    needs: built,
  },
  {
    name: "biome",
    about: "lint and format of everything in JavaScript, TypeScript and JSON",
    command: [node, bin("@biomejs/biome", "bin/biome"), "ci", "--colors=off", "."],
  },
  {
    name: "node",
    about: "tests/**/*.test.mjs in this Node",
    command: () => [node, "--test", "--test-reporter=spec", ...tests()],
    count: nodeTests,
    needs: () => built() ?? (tests().length === 0 ? "there are no tests/**/*.test.mjs" : undefined),
  },
  conformance("node20", "Node 20"),
  conformance("node22", "Node 22"),
  conformance("node24", "Node 24"),
  conformance("deno", "Deno, without permissions"),
  conformance("bun", "Bun"),
  conformance("workerd", "workerd, at three compatibility dates, with and without nodejs_compat"),
  conformance("edge", "@edge-runtime/vm"),
  conformance("chromium", "headless Chromium"),
  {
    name: "runtimes",
    about: "what only a runtime other than Node shows: tests/runtimes/*.test.mjs",
    command: () => [node, "--test", "--test-reporter=spec", ...runtimeTests()],
    count: nodeTests,
    needs: async () => (await runtime("workerd")()) ?? (await runtime("chromium")()),
  },
  {
    name: "www",
    about: "the page in www/, in headless Chromium",
    command: [node, "--test", "--test-reporter=spec", join(WWW_TESTS, "www.test.mjs")],
    count: nodeTests,
    needs: () => built() ?? (binary("chromium") === undefined ? NO_CHROMIUM : undefined),
  },
  {
    name: "size",
    about: "size of the main entry against its budget",
    command: [node, script("size.mjs")],
    needs: built,
  },
  {
    name: "pack",
    about: "the packed tarball: files, publint, types by attw",
    command: [node, script("pack.mjs")],
    needs: built,
  },
  {
    name: "types",
    about: "tests/types against the packed tarball, as users' projects are set up",
    command: [node, packaging("types.mjs")],
    count: lastLine,
    needs: built,
  },
  {
    name: "readme",
    about: "the code of pkg/README.md, type-checked and run",
    command: [node, packaging("readme.mjs")],
    count: lastLine,
    needs: built,
  },
  {
    name: "examples",
    about: "each app under examples/, built with the packed tarball and run",
    command: [node, packaging("examples.mjs")],
    count: lastLine,
    needs: built,
  },
  {
    name: "typedoc",
    about: "every export of the package is documented",
    command: [node, bin("typedoc", "bin/typedoc"), "--emit", "none"],
    needs: built,
  },
  {
    name: "rustdoc",
    about: "the crate's documentation, without a warning",
    command: ["cargo", "doc", "--no-deps"],
    env: { RUSTDOCFLAGS: "-D warnings" },
    needs: rust,
  },
  {
    name: "crate",
    about: "the Rust crate packs, and builds from what was packed",
    command: ["cargo", "package", "--allow-dirty"],
    needs: rust,
  },
];
