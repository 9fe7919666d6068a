// How the core enters a Worker: as the module that a `.wasm` import gives, or inlined, while the Worker starts.

import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
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

/** A Worker that uses evenkeel, and a dependency that has brought a copy along. */
const COPIES = `
import * as one from "evenkeel";
import * as two from "./node_modules/dependency/index.js";
const options = { retry: { baseMs: 1, capMs: 2, budget: false }, timeouts: { minAttemptMs: 1 }, breaker: false };
const keels = Object.entries({ one, two }).map(([name, copy]) =>
  copy.createKeel({ ...options, fetch: async () => new Response(name) }));
const failing = one.createKeel({ ...options, fetch: async () => { throw new TypeError("Network connection lost."); } });
const ask = (keel) => keel.fetch("https://api.openai.com/v1/models");
export default { async fetch() {
  const answers = await Promise.all(keels.map(async (keel) => (await ask(keel)).text()));
  const error = await ask(failing).then(String, (thrown) => thrown);
  const { name, reason } = error;
  const [own, others] = [one, two].map((copy) => error instanceof copy.KeelError);
  return Response.json({ answers, error: { name, class: error.class, reason, own, others } });
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

  test("two copies of the package in one Worker work side by side, and their errors are recognisable", async () => {
    const folder = await stage("worker-copies");
    const modules = join(folder, "node_modules");
    cpSync(join(modules, "evenkeel"), join(modules, "dependency", "node_modules", "evenkeel"), { recursive: true });
    writeFileSync(join(modules, "dependency", "index.js"), 'export * from "evenkeel";\n');
    writeFileSync(join(folder, "entry.mjs"), COPIES);
    const bundle = await bundleWorker(folder, "entry.mjs", { copies: 2 });
    const server = await startWorkerd(bundle, { date: "2024-10-14" });
    try {
      const ask = async () => (await fetch(server.url)).json();
      const seen = await Promise.all([ask(), ask(), ask()]);
      for (const { answers, error } of seen) {
        assert.deepEqual(answers, ["one", "two"]);
        assert.deepEqual(error, {
          name: "KeelError",
          class: "connection_error",
          reason: "attempts_exhausted",
          own: true,
          others: false,
        });
      }
    } finally {
      await server.stop();
    }
  });
});
