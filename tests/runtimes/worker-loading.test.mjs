// How the core enters a Worker: as the module that a `.wasm` import gives, or inlined, while the Worker starts.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { stage } from "./lib/tools.mjs";
import { bundleWorker, latestDate, startWorkerd } from "./lib/workerd.mjs";

/** Counts what is compiled and started, from before evenkeel is evaluated. */
const COUNT = `
export const counts = { Module: 0, Instance: 0 };
for (const name of ["Module", "Instance"]) {
  WebAssembly[name] = new Proxy(WebAssembly[name], {
    construct(target, args) { counts[name] += 1; return Reflect.construct(target, args); },
  });
}`;

const worker = (entry) => `
import { counts } from "./count.mjs";
import { createKeel } from "${entry}";
const keel = createKeel({ fetch: async () => new Response("answered") });
const atStart = { ...counts };
export default { async fetch() {
  const text = await keel.fetch("https://api.openai.com/v1/models").then((answer) => answer.text(), (error) => error.message);
  return Response.json({ text, atStart, counts });
} };`;

/** What such a Worker answers to its first two requests. */
async function answers(name, entry, date) {
  const folder = await stage(name);
  writeFileSync(join(folder, "count.mjs"), COUNT);
  writeFileSync(join(folder, "entry.mjs"), worker(entry));
  const bundle = await bundleWorker(folder, "entry.mjs", { inline: entry !== "evenkeel" });
  const server = await startWorkerd(bundle, { date });
  try {
    const ask = async () => (await fetch(server.url)).json();
    return [await ask(), await ask()];
  } finally {
    await server.stop();
  }
}

describe("a Worker's core", { timeout: 60_000 }, () => {
  for (const date of ["2024-10-14", latestDate()]) {
    test(`I1 I5 at ${date} an imported wasm module is taken without a patch, and started by the first request`, async () => {
      const [first, second] = await answers(`worker-loading-${date}`, "evenkeel", date);
      assert.deepEqual(first, {
        text: "answered",
        atStart: { Module: 0, Instance: 0 },
        counts: { Module: 0, Instance: 1 },
      });
      assert.deepEqual(second, first);
    });
  }

  test("I1 inlined, it is compiled while the Worker starts, where its date allows that", async () => {
    const [first, second] = await answers("worker-inline", "evenkeel/inline", latestDate());
    assert.equal(first.text, "answered");
    assert.deepEqual(first.atStart, first.counts, "nothing is compiled in a request");
    assert.deepEqual(second, first);
  });

  test("I1 inlined, it says what to do where the date does not", async () => {
    const [first, second] = await answers("worker-inline-old", "evenkeel/inline", "2025-05-31");
    for (const { text } of [first, second])
      assert.match(text, /this host compiles no WebAssembly from bytes.*Import from `evenkeel` with a bundler/);
  });
});
