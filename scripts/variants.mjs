// Builds the core at every optimisation level worth asking about and prints the table of sizes for docs/performance.md.
//
// Each variant also gets a package of its own, build/variants/<name>/pkg, which a benchmark can import to measure speed:
// size alone does not decide.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { packageAround } from "./lib/dist.mjs";
import { BUILD, must, options, runMain, say } from "./lib/run.mjs";
import { SMALLEST } from "./lib/tools.mjs";

const LEVELS = ["s", "z", "2", "3"];
const PASSES = ["none", "-Os", "-Oz", "-O3", SMALLEST];

await runMain(async () => {
  const { levels, passes } = options(
    { levels: LEVELS.join(","), passes: PASSES.join(",") },
    "usage: node scripts/variants.mjs [--levels s,z,2,3] [--passes=none,-Os,-Oz,-O3]",
  );
  say("| opt-level | wasm-opt | simd128 | wasm, bytes | gzip -9, bytes |\n| --- | --- | --- | ---: | ---: |");
  for (const level of levels.split(",")) {
    for (const pass of passes.split(",")) {
      for (const simd of [false, true]) {
        const name = `${level}${pass === "none" ? "" : pass.replace(/[ -]+/g, "-")}${simd ? "-simd" : ""}`;
        const out = join("build", "variants", name);
        const args = ["scripts/build.mjs", "--out", out, "--opt-level", level, `--wasm-opt=${pass}`];
        await must(name, process.execPath, simd ? [...args, "--simd"] : args);
        await packageAround(join(BUILD, "variants", name), join(BUILD, "variants", name, "pkg"));
        const wasm = readFileSync(join(BUILD, "variants", name, "core.wasm"));
        const cells = [level, pass, simd ? "yes" : "no", wasm.length, gzipSync(wasm, { level: 9 }).length];
        say(`| ${cells.join(" | ")} |`);
      }
    }
  }
});
