// What calls leave behind: 100,000 of them in a row, and how long an instance takes to make.
//
//   node --expose-gc benches/memory.mjs

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createKeel } from "../build/pkg-open/dist/entry.inline.js";
import { Core, initSync, readOptions } from "../build/pkg-open/dist/inside.js";
import { DIST } from "../scripts/lib/run.mjs";
import { contenders } from "./lib/contenders.mjs";
import { median } from "./lib/measure.mjs";
import { heading, target } from "./lib/print.mjs";

const CALLS = 100_000;

heading("Memory and start");

const module = new WebAssembly.Module(readFileSync(join(DIST, "core.wasm")));
// The instance that the package uses; asking again gives the same one.
const { memory } = initSync({ module });

// Every kind of end: answers, failures, cancelled calls, streams that break.
const { evenkeel } = contenders({ createKeel });
const mixed = createKeel({
  fetch: troubled,
  ledger: () => {},
  retry: { baseMs: 0, capMs: 1, budget: false },
  breaker: false,
});
let turn = 0;
await evenkeel?.(900);
await inTrouble(100);
const after1000 = memory.buffer.byteLength;
const heapBefore = heap();
await evenkeel?.(CALLS * 0.9);
await inTrouble(CALLS * 0.1);
target(
  "wasm memory grown after the first thousand calls, KB",
  (memory.buffer.byteLength - after1000) / 1_024,
  0,
  "at most",
);
console.log(
  `       wasm memory ${memory.buffer.byteLength / 1_024} KB; JavaScript heap grown by ${heap() - heapBefore} KB`,
);

// The same through a core of our own, which can be asked what is still under way.
const { hashKey, limits, control } = readOptions({});
const core = new Core(1, 2, hashKey, limits, control);
const url = "https://api.openai.com/v1/chat/completions";
const body = new TextEncoder().encode('{"id":"1","choices":[{"index":0,"finish_reason":"stop"}]}');
const grownFrom = memory.buffer.byteLength;
const start = Date.now();
for (let i = 0; i < CALLS; i += 1) {
  const now = start + i;
  const id =
    core.begin(
      now,
      url,
      "\u001f\u001f\u001fPOST\u001f",
      '{"model":"gpt-5"}',
      2,
      0,
      -1,
      Number.POSITIVE_INFINITY,
      -1,
    ) >>> 7;
  if (i % 10 === 0) {
    core.cancelled(id, now);
    core.ending(id);
  } else {
    core.head(id, now, 200, "content-type:application/json\n");
    core.body(id, now, body, true);
  }
  core.takeRecords();
}
target("calls left in the core when all have ended", core.sweep(start + CALLS), 0, "at most");
target(
  "wasm memory grown by a hundred thousand calls in the core alone, KB",
  (memory.buffer.byteLength - grownFrom) / 1_024,
  64,
  "at most",
);

// Calls that wait behind a bucket with one place. The memory of an instance grows and never shrinks, so this comes last.
const queued = readOptions({ concurrency: { max: 1, maxQueued: 1_000_000 } });
const crowded = new Core(1, 2, queued.hashKey, queued.limits, queued.control);
const question = '{"model":"gpt-5","max_tokens":500,"messages":[{"role":"user","content":"Why is the sky blue?"}]}';
const before = memory.buffer.byteLength;
for (let i = 0; i <= CALLS; i += 1) {
  const context = `tenant-${i % 1_000}\u001fticket.summary\u001f\u001fPOST\u001f`;
  crowded.begin(start, url, context, question, 2, 0, -1, Number.POSITIVE_INFINITY, -1);
}
target(
  "wasm memory of a whole waiting call, of 100,000, bytes",
  (memory.buffer.byteLength - before) / CALLS,
  1_024,
  "at most",
);
console.log(`       waiting: ${JSON.parse(crowded.state(start)).waiting}`);

const imports = importsOf(module);
const times = [];
for (let i = 0; i < 21; i += 1) {
  const begin = performance.now();
  new WebAssembly.Instance(module, imports);
  times.push(performance.now() - begin);
}
target("instantiation from a compiled module, ms", median(times), 2, "at most");

async function troubled(_url, init) {
  turn += 1;
  switch (turn % 5) {
    case 0:
      throw new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET" }) });
    case 1:
      return new Response('{"error":{"message":"no","type":"invalid_request_error"}}', { status: 400 });
    case 2:
      return new Response('{"cut":', { headers: { "content-type": "application/json" } });
    case 3:
      init.signal.throwIfAborted();
      return new Response('data: {"choices":[{"delta":{"content":"a"}}]}\n\n', {
        headers: { "content-type": "text/event-stream" },
      });
    default:
      return new Response('{"choices":[]}', { headers: { "content-type": "application/json" } });
  }
}

async function inTrouble(n) {
  const bodies = JSON.stringify({ model: "gpt-5", messages: [] });
  for (let i = 0; i < n; i += 1) {
    try {
      await (await mixed.fetch(url, { method: "POST", body: bodies })).text();
    } catch {
      // What fails is what is asked for here; only what it leaves behind counts.
    }
  }
}

function heap() {
  globalThis.gc?.();
  return Math.round(process.memoryUsage().heapUsed / 1_024);
}

/** Something for every import, so that the time is that of the instance. */
function importsOf(compiled) {
  const all = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(compiled)) {
    all[from] ??= {};
    all[from][name] = kind === "function" ? () => {} : undefined;
  }
  return all;
}
