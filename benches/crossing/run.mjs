// How a record should cross from Rust to JavaScript: `node benches/crossing/run.mjs`, after `npm run build`, whose
// wasm-bindgen it uses. An object by serde-wasm-bindgen, JSON, or one packed string that JavaScript takes apart.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { BUILD, must, ROOT, TOOLS } from "../../scripts/lib/run.mjs";
import { cpu, interleaved } from "../lib/measure.mjs";
import { heading, table } from "../lib/print.mjs";

const target = join(BUILD, "crossing");
const crate = join(ROOT, "benches", "crossing");
await must("cargo", "cargo", ["build", "--release", "--target", "wasm32-unknown-unknown", "--target-dir", target], {
  cwd: crate,
});
const wasm = join(target, "wasm32-unknown-unknown", "release", "crossing.wasm");
await must("wasm-bindgen", join(TOOLS, "bin", "wasm-bindgen"), ["--target", "web", "--out-dir", target, wasm]);

const { initSync, asObject, asJson, asPacked } = await import(pathToFileURL(join(target, "crossing.js")).href);
initSync({ module: readFileSync(join(target, "crossing_bg.wasm")) });

/** The same object as the other two give, spelled out as `pkg/src/records.ts` does. */
const expected = asObject();
const fields = Object.keys(expected).map((name, at) =>
  typeof expected[name] === "number" ? `${name}: Number(f[${at}])` : `${name}: f[${at}] || null`,
);
const unpack = new Function("text", `const f = text.split("\\u001f"); return { ${fields.join(", ")} };`);

const sink = { last: undefined };
const loop = (make) => async (n) => {
  for (let i = 0; i < n; i += 1) sink.last = make();
};
const times = await interleaved(
  {
    "serde-wasm-bindgen": loop(asObject),
    "serde_json and JSON.parse": loop(() => JSON.parse(asJson())),
    "packed string and split": loop(() => unpack(asPacked())),
  },
  { clock: cpu, calls: 5_000 },
);
if (sink.last?.provider !== "openai" || sink.last.bytes !== 412) throw new Error("the record did not arrive");
heading("A record of 39 fields from Rust to a JavaScript object");
table(
  ["", "µs a record"],
  Object.keys(times).map((name) => [name, times[name].toFixed(2)]),
);
