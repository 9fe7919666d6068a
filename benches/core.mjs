// The wasm core alone, without the driver: `node benches/core.mjs [build/wasm | build/variants/<name> …]`. Each argument is
// a directory with core.js and core.wasm. Megabytes of a stream a second, nanoseconds a chunk of one event, and
// microseconds a whole call that succeeds.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { heading, table } from "./lib/print.mjs";

const ROUNDS = 12;
const CONTEXT = "\u001f\u001f\u001fPOST\u001f";
const URL = "https://api.openai.com/v1/chat/completions";
/** No two tokens in a row are alike, as in a real stream. */
const WORDS = [
  "I",
  " see",
  " what",
  " you",
  " mean",
  ":",
  " the",
  " answer",
  " is",
  " in",
  " the",
  " second",
  "\\n\\n",
  "line",
];
const event = (/** @type {number} */ at) =>
  'data: {"id":"chatcmpl-abc","object":"chat.completion.chunk","created":1700000000,"model":"gpt-5",' +
  `"choices":[{"index":0,"delta":{"content":"${WORDS[at % WORDS.length]}"},"finish_reason":null}]}\n\n`;
const ANSWER =
  '{"id":"x","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant",' +
  '"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}';

const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);
const directories = process.argv.length > 2 ? process.argv.slice(2) : ["build/wasm"];
heading(`The core alone: ${process.version}, the best of ${ROUNDS} rounds`);
const rows = [];
for (const directory of directories) rows.push([directory, ...(await measure(directory))]);
table(["", "stream, MB/s", "ns a chunk", "µs a call"], rows);

async function measure(/** @type {string} */ directory) {
  const { Core, initSync } = await import(pathToFileURL(resolve(directory, "core.js")).href);
  initSync({ module: new WebAssembly.Module(readFileSync(resolve(directory, "core.wasm"))) });
  const core = new Core(1, 2, "", new Float64Array(0), "");
  let now = 1e12;
  const begin = (/** @type {string} */ body) =>
    core.begin(now, URL, CONTEXT, body, 2, 0, -1, Number.POSITIVE_INFINITY, -1) >>> 7;

  const stream = begin('{"model":"gpt-5","stream":true}');
  core.head(stream, now, 200, "content-type:text/event-stream\n");
  const long = bytes(Array.from({ length: 400 }, (_, at) => event(at)).join(""));
  const short = WORDS.map((_, at) => bytes(event(at)));
  let turn = 0;
  const answer = bytes(ANSWER);
  const megabytes = long.length / 1_000 / best(60, () => core.chunk(stream, now, long));
  const chunk =
    best(20_000, () => {
      turn = turn + 1 === short.length ? 0 : turn + 1;
      core.chunk(stream, now, short[turn]);
    }) * 1e6;
  let records = "";
  const call = best(3_000, () => {
    const id = begin('{"model":"gpt-5"}');
    core.head(id, now, 200, "content-type:application/json\n");
    core.body(id, now, answer, true);
    core.ending(id);
    records = core.takeRecords();
    now += 1;
  });
  if (!records.includes("succeeded")) throw new Error("the call that is measured did not succeed");
  return [megabytes.toFixed(0), chunk.toFixed(0), (call * 1e3).toFixed(1)];
}

/** Milliseconds of one run. */
function best(/** @type {number} */ runs, /** @type {() => void} */ run) {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    for (let at = 0; at < runs; at += 1) run();
    least = Math.min(least, (performance.now() - start) / runs);
  }
  return least;
}
