// Cold start: from before the module is evaluated to the moment at which the first call reaches `fetch`, in fresh processes.
// Node by the clock, as a median and the fastest, which is what other work on the machine disturbs least. workerd from
// outside, on Linux by the time for which its main thread ran.
//
//   npm run build && node benches/cold-start.mjs [--runs 15] [--json]

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { options, ROOT, runMain, say } from "../scripts/lib/run.mjs";
import { binary, ensureRuntimes, stage } from "../tests/runtimes/lib/tools.mjs";
import { bundleWorker, latestDate, startWorkerd } from "../tests/runtimes/lib/workerd.mjs";

/** Milliseconds, by the plan. */
const LIMIT = 5;
const SCHEDSTAT = existsSync("/proc/self/schedstat");

// What any call in the host needs and loads when it is first asked for: Node spends milliseconds on `crypto` alone. With
// `HOST` it is there before the clock starts, so what is left is evenkeel's own.
const NODE = `
if (process.env.HOST) {
  crypto.getRandomValues(new Uint32Array(2));
  new AbortController();
  new URL("https://api.openai.com/v1/chat/completions");
  clearTimeout(setTimeout(() => {}, 1000));
}
const began = performance.now();
const { createKeel } = await import("evenkeel");
const imported = performance.now();
let sent;
const keel = createKeel({ fetch: () => { sent = performance.now(); return Promise.resolve(new Response("{}")); } });
await keel.fetch("https://api.openai.com/v1/chat/completions", { method: "POST", body: '{"model":"gpt-5"}' });
console.log(JSON.stringify({ import: imported - began, call: sent - imported, total: sent - began }));`;

/** The same of an SDK that is found in the workspace, for comparison. */
const SDK = `
const began = performance.now();
const { default: OpenAI } = await import("openai");
const imported = performance.now();
let sent;
const fetch = () => { sent = performance.now(); return Promise.resolve(Response.json({})); };
const openai = new OpenAI({ apiKey: "none", maxRetries: 0, fetch });
await openai.chat.completions.create({ model: "gpt-5", messages: [] });
console.log(JSON.stringify({ import: imported - began, call: sent - imported, total: sent - began }));`;

// A Worker's clock stands still while code runs, in production; workerd's moves on, in whole milliseconds. So what is
// measured is from outside: a new process until its first answer, with and without evenkeel. The answer is the signal
// that `fetch` was reached, and no part of it is read.
const WORKER = `
import { createKeel } from "evenkeel";
let reached;
const keel = createKeel({ fetch: () => { reached(new Response("{}")); return new Promise(() => {}); } });
export default { fetch() {
  const answer = new Promise((resolve) => { reached = resolve; });
  keel.fetch("https://api.openai.com/v1/chat/completions", { method: "POST", body: '{"model":"gpt-5"}' }).catch(() => {});
  return answer;
} };`;
const BARE = `
import module from "./core.wasm";
const own = async () => new Response(module === undefined ? "" : "{}");
export default { async fetch() {
  crypto.getRandomValues(new Uint32Array(2));
  new AbortController();
  new URL("https://api.openai.com/v1/chat/completions");
  clearTimeout(setTimeout(() => {}, 1000));
  return own();
} };`;

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const round = (ms) => Math.round(ms * 10) / 10;
const middle = (numbers) => ({ median: round(median(numbers)), fastest: round(Math.min(...numbers)) });

await runMain(async () => {
  const flags = options({ runs: "15", json: false }, "usage: node benches/cold-start.mjs [--runs N] [--json]");
  const runs = Number(flags.runs);
  await ensureRuntimes();
  const folder = await stage("cold-start");
  writeFileSync(join(folder, "cold.mjs"), NODE);
  const rows = [];
  for (const name of ["node20", "node22", "node24"]) {
    const start = (args, cwd, env = {}) => JSON.parse(execFileSync(binary(name), args, { cwd, encoding: "utf8", env }));
    const fresh = [];
    const own = [];
    const sdk = [];
    for (let run = 0; run < runs; run += 1) {
      fresh.push(start(["cold.mjs"], folder));
      own.push(start(["cold.mjs"], folder, { HOST: "1" }));
      sdk.push(start(["--input-type=module", "--eval", SDK], ROOT));
    }
    const of = (samples, part) => middle(samples.map((sample) => sample[part]));
    const parts = { import: of(fresh, "import"), call: of(fresh, "call"), total: of(fresh, "total") };
    rows.push({ host: name, ...parts, own: of(own, "total"), sdk: of(sdk, "total") });
  }
  rows.push(await inWorkerd(folder, runs));
  if (flags.json) say(JSON.stringify({ limit: LIMIT, runs, rows }, null, 2));
  else {
    say("| host | module, ms | to the first fetch, ms | together, ms | without what the host loads, ms | openai, ms |");
    say("| --- | ---: | ---: | ---: | ---: | ---: |");
    const cell = (part) => (part === undefined ? "" : `${part.median} (${part.fastest})`);
    for (const { host, ...row } of rows)
      say(`| ${host} | ${["import", "call", "total", "own", "sdk"].map((part) => cell(row[part])).join(" | ")} |`);
    say(`\nlimit ${LIMIT} ms; median of ${runs}, and the fastest`);
  }
});

async function inWorkerd(folder, runs) {
  writeFileSync(join(folder, "cold-worker.mjs"), WORKER);
  const bundle = await bundleWorker(folder, "cold-worker.mjs");
  const code = readFileSync(join(bundle, "worker.mjs"), "utf8");
  const ours = [];
  const bare = [];
  for (let run = 0; run < runs; run += 1) {
    writeFileSync(join(bundle, "worker.mjs"), code);
    ours.push(await firstRequest(bundle));
    writeFileSync(join(bundle, "worker.mjs"), BARE);
    bare.push(await firstRequest(bundle));
  }
  const own = { median: median(ours) - median(bare), fastest: Math.min(...ours) - Math.min(...bare) };
  return { host: "workerd", own: { median: round(own.median), fastest: round(own.fastest) } };
}

/** From the start of a process to the end of its first answer. */
async function firstRequest(bundle) {
  const began = performance.now();
  const server = await startWorkerd(bundle, { date: latestDate() });
  try {
    await (await fetch(server.url)).text();
    if (!SCHEDSTAT) return performance.now() - began;
    return Number(readFileSync(`/proc/${server.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } finally {
    await server.stop();
  }
}
