// What one successful, non-streamed call costs over the bare stub `fetch`, the ledger on, beside other layers that people
// use: `node benches/call.mjs [--hosts]`. With `--hosts` in Deno, Bun, workerd and three versions of Node too, as far as
// tests/runtimes has installed them.

import { contenders } from "./lib/contenders.mjs";
import { libraries } from "./lib/libraries.mjs";
import { cpu, interleaved } from "./lib/measure.mjs";
import { heading, table, target } from "./lib/print.mjs";

/** Overhead of evenkeel over that of a peer, at most. */
const TARGETS = { cockatiel: 0.8, openai: 0.25 };

report(`this Node, ${process.version}, processor time`, await interleaved(contenders(libraries), { clock: cpu }));
if (process.argv.includes("--hosts")) {
  const { callsIn } = await import("./lib/hosts.mjs");
  for (const host of ["node20", "node22", "node24", "deno", "bun", "workerd"]) {
    const times = await callsIn(host);
    if (times === undefined) console.log(`\n${host}: skipped, not installed (node tests/runtimes/run.mjs ${host})`);
    else report(host, times);
  }
}

function report(where, times) {
  heading(`One call: ${where}`);
  const over = (name) => times[name] - times.bare;
  table(
    ["", "µs a call", "over bare", "× cockatiel's", "× openai's"],
    Object.keys(times).map((name) => [
      name,
      times[name].toFixed(1),
      over(name).toFixed(1),
      (over(name) / over("cockatiel")).toFixed(2),
      (over(name) / over("openai")).toFixed(2),
    ]),
  );
  for (const [peer, most] of Object.entries(TARGETS)) {
    target(`overhead over ${peer}'s`, over("evenkeel") / over(peer), most, "at most");
  }
}
