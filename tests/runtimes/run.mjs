// Runs the conformance suite in one runtime: `node tests/runtimes/run.mjs <name>`, or `all`. With `--update` the golden
// records are written from what this runtime gives; every other one then has to give the same.
//
// The package is the packed tarball (`npm run build` first). The last line is `N passed, M failed`.

import { writeFileSync } from "node:fs";
import { runMain, Stop, say } from "../../scripts/lib/run.mjs";
import bun from "./hosts/bun.mjs";
import chromium from "./hosts/chromium.mjs";
import deno from "./hosts/deno.mjs";
import edge from "./hosts/edge.mjs";
import node from "./hosts/node.mjs";
import workerd from "./hosts/workerd.mjs";
import { compareGolden, ensureRuntimes, GOLDEN } from "./lib/tools.mjs";

const HOSTS = { ...node, ...deno, ...bun, ...workerd, ...edge, ...chromium };

await runMain(async () => {
  const names = process.argv.slice(2).filter((name) => name !== "--update");
  const update = process.argv.includes("--update");
  const chosen = names[0] === "all" ? Object.keys(HOSTS) : names;
  if (chosen.length === 0 || chosen.some((name) => HOSTS[name] === undefined)) {
    throw new Stop(`usage: node tests/runtimes/run.mjs [--update] all | ${Object.keys(HOSTS).join(" | ")}`);
  }
  await ensureRuntimes();
  const total = { passed: 0, failed: 0 };
  for (const name of chosen) {
    const began = Date.now();
    const result = await HOSTS[name]();
    if (update && result.golden !== "") writeFileSync(GOLDEN, result.golden);
    const wrong = result.golden === "" ? undefined : compareGolden(result.golden);
    if (wrong !== undefined) {
      result.failed += 1;
      result.failures.push({ name: "the scripted run is the same to the byte on every host", error: wrong });
    }
    for (const failure of result.failures) say(`✗ ${name}: ${failure.name}\n    ${failure.error}`);
    say(`${name}: ${result.passed} passed, ${result.failed} failed (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    total.passed += result.passed;
    total.failed += result.failed;
  }
  say(`${total.passed} passed, ${total.failed} failed`);
  if (total.failed > 0) process.exitCode = 1;
});
