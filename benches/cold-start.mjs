// Cold start: from before the module is evaluated to the moment at which the first call reaches `fetch`. Prints medians of
// a fresh process (Node) or isolate (workerd) each time, beside that of a bare `fetch` call in the same host.
//
//   npm run build && node benches/cold-start.mjs [--runs 15] [--json]

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { options, runMain, say } from "../scripts/lib/run.mjs";
import { binary, ensureRuntimes, stage } from "../tests/runtimes/lib/tools.mjs";
import { bundleWorker, latestDate, startWorkerd } from "../tests/runtimes/lib/workerd.mjs";

/** Milliseconds, by the plan. */
const LIMIT = 5;

const NODE = `
const began = performance.now();
const { createKeel } = await import("evenkeel");
const imported = performance.now();
let sent;
const keel = createKeel({ fetch: () => { sent = performance.now(); return Promise.resolve(new Response("{}")); } });
await keel.fetch("https://api.openai.com/v1/chat/completions", { method: "POST", body: '{"model":"gpt-5"}' });
console.log(JSON.stringify({ import: imported - began, call: sent - imported, total: sent - began }));`;

// A Worker's clock stands still while code runs, in production; workerd's moves on, in whole milliseconds. So what is
// measured is from outside: the first request to a new process, with and without evenkeel in its module.
const WORKER = `
import { createKeel } from "evenkeel";
const keel = createKeel({ fetch: async () => new Response("{}") });
export default { async fetch() { return keel.fetch("https://api.openai.com/v1/chat/completions", { method: "POST", body: '{"model":"gpt-5"}' }); } };`;
const BARE = `
import module from "./core.wasm";
const own = async () => new Response(module === undefined ? "" : "{}");
export default { async fetch() { return own("https://api.openai.com/v1/chat/completions"); } };`;

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const round = (ms) => Math.round(ms * 100) / 100;

await runMain(async () => {
  const flags = options({ runs: "15", json: false }, "usage: node benches/cold-start.mjs [--runs N] [--json]");
  const runs = Number(flags.runs);
  await ensureRuntimes();
  const folder = await stage("cold-start");
  writeFileSync(join(folder, "cold.mjs"), NODE);
  const rows = [];
  for (const name of ["node20", "node22", "node24"]) {
    const samples = Array.from({ length: runs }, () =>
      JSON.parse(execFileSync(binary(name), ["cold.mjs"], { cwd: folder, encoding: "utf8" })),
    );
    const of = (part) => round(median(samples.map((sample) => sample[part])));
    rows.push({ host: name, import: of("import"), call: of("call"), total: of("total") });
  }
  rows.push(await inWorkerd(folder, runs));
  if (flags.json) say(JSON.stringify({ limit: LIMIT, runs, rows }, null, 2));
  else {
    say("| host | module | to the first fetch | together, ms |\n| --- | ---: | ---: | ---: |");
    for (const row of rows) say(`| ${row.host} | ${row.import ?? ""} | ${row.call ?? ""} | ${row.total} |`);
    say(
      `\nlimit ${LIMIT} ms, medians of ${runs}; workerd: the first request to a fresh process, less that of a bare worker`,
    );
  }
});

async function inWorkerd(folder, runs) {
  writeFileSync(join(folder, "cold-worker.mjs"), WORKER);
  const bundle = await bundleWorker(folder, "cold-worker.mjs");
  const withKeel = await firstRequests(bundle, runs);
  writeFileSync(join(bundle, "worker.mjs"), BARE);
  const without = await firstRequests(bundle, runs);
  return { host: "workerd", total: round(median(withKeel) - median(without)) };
}

/** From the start of a process to the end of its first answer. */
async function firstRequests(bundle, runs) {
  const samples = [];
  for (let run = 0; run < runs; run += 1) {
    const began = performance.now();
    const server = await startWorkerd(bundle, { date: latestDate() });
    try {
      await (await fetch(server.url)).text();
      samples.push(performance.now() - began);
    } finally {
      await server.stop();
    }
  }
  return samples;
}
