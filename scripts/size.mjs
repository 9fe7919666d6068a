// What a user downloads: the main entry's wasm and JavaScript, raw and gzip -9, part by part. Fails over its budget.
//
// The JavaScript is bundled and minified by esbuild as a user's bundler would. The budget is on wasm + JavaScript; the
// inlined form, one file with the wasm as text, is printed beside it. With --json, the numbers for docs/performance.md.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { sharesOf } from "./lib/dist.mjs";
import { BUILD, DIST, options, ROOT, runMain, Stop, say } from "./lib/run.mjs";

/** Bytes of wasm + JavaScript of the main entry, gzip -9, that it is meant to come down to (docs/performance.md). */
const TARGET = 85_000;
/** Bytes that it may have today: what it has, and little more, so that it does not grow unseen. */
const BUDGET = 135_500;

await runMain(async () => {
  const { json } = options({ json: false }, "usage: node scripts/size.mjs [--json]");
  const wasm = readFileSync(join(DIST, "core.wasm"));
  const module = await bundle("entry.workerd.js");
  const inline = await bundle("entry.inline.js");

  const glue = (await sharesOf(join(BUILD, "wasm"))).get("core.js") ?? 0;
  const rows = [
    ["core.wasm", wasm.length, gzip(wasm)],
    ["JavaScript, bundled", module.length, gzip(module)],
    ["  of which wasm-bindgen's glue", glue],
    ["  of which ours", module.length - glue],
    ["wasm + JavaScript", wasm.length + module.length, gzip(wasm) + gzip(module)],
    ["the same in one file (inlined)", inline.length, gzip(inline)],
  ];
  const compressed = rows[4][2];
  mkdirSync(BUILD, { recursive: true });
  const facts = {
    target: TARGET,
    budget: BUDGET,
    rows: rows.map(([part, raw, gz]) => ({ part: part.trim(), raw, gzip: gz ?? null })),
  };
  writeFileSync(join(BUILD, "size.json"), `${JSON.stringify(facts, null, 2)}\n`);
  if (json) {
    say(JSON.stringify(facts, null, 2));
  } else {
    say("| main entry | raw, bytes | gzip -9, bytes |\n| --- | ---: | ---: |");
    for (const [part, raw, gz] of rows)
      say(`| ${part.trim()} | ${count(raw)} | ${gz === undefined ? "" : count(gz)} |`);
    say(`\nbudget ${count(BUDGET)}, used ${count(compressed)}; target ${count(TARGET)}`);
  }
  if (compressed > BUDGET) throw new Stop(`the main entry is ${count(compressed - BUDGET)} bytes over its budget`);
});

async function bundle(entry) {
  const result = await build({
    entryPoints: [join(DIST, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    external: ["*.wasm", "node:*"],
    logLevel: "silent",
    absWorkingDir: ROOT,
  });
  return Buffer.from(result.outputFiles[0].contents);
}

function gzip(bytes) {
  return gzipSync(bytes, { level: 9 }).length;
}

function count(number) {
  return number.toLocaleString("en-GB");
}
