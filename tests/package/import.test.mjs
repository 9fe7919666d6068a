// What an import costs: counted, and never timed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, test } from "node:test";

const dist = new URL("../../pkg/dist/", import.meta.url);
const at = (file) => JSON.stringify(new URL(file, dist).href);

/** The files that a host reads for an entry, itself included. */
function filesOf(entry) {
  const found = new Map();
  const visit = (url) => {
    if (found.has(url.href)) return;
    const code = url.pathname.endsWith(".js") ? readFileSync(url, "utf8") : "";
    found.set(url.href, basename(url.pathname));
    for (const [, path] of code.matchAll(/^(?:import|export)[^"\n]*"(\.\/[^"]+)";$/gm)) visit(new URL(path, url));
  };
  visit(new URL(entry, dist));
  return [...found.values()].sort();
}

/** Runs module code in a fresh Node; gives the JSON that it prints. */
function inFreshNode(code) {
  const args = ["--input-type=module", "--eval", code];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
}

// Everything that an import could cost a host, or that a Worker forbids at module scope.
const COUNTING = `
  const asked = {};
  const count = (name) => { asked[name] = (asked[name] ?? 0) + 1; };
  const watch = (object, name) => {
    const original = object[name];
    if (original === undefined) return;
    object[name] = new Proxy(original, {
      apply(target, self, args) { count(name); return Reflect.apply(target, self, args); },
      construct(target, args, made) { count(name); return Reflect.construct(target, args, made); },
    });
  };
  for (const name of ["setTimeout", "setInterval", "fetch", "atob"]) watch(globalThis, name);
  // To look at these is to load them, in Node some tens of milliseconds.
  for (const name of ["Response", "Request", "Headers", "FormData", "navigator"]) {
    const { get, value } = Object.getOwnPropertyDescriptor(globalThis, name) ?? {};
    const look = () => { count(name); return get === undefined ? value : get.call(globalThis); };
    Object.defineProperty(globalThis, name, { configurable: true, get: look });
  }
  for (const name of ["getRandomValues", "randomUUID"]) watch(crypto, name);
  for (const name of ["Module", "Instance", "Memory", "compile", "instantiate", "compileStreaming"]) watch(WebAssembly, name);
  watch(Math, "random");
  watch(AbortSignal, "timeout");`;

describe("I5 importing costs reading, and little of that", () => {
  for (const [entry, files] of Object.entries({
    "entry.inline.js": ["entry.inline.js", "main.js"],
    "entry.workerd.js": ["core.wasm", "entry.workerd.js", "main.js"],
    "entry.edge-light.js": ["core.wasm", "entry.edge-light.js", "main.js"],
    "slim.js": ["main.js", "slim.js"],
    "testing.js": ["testing.js"],
  })) {
    test(`I5 ${entry} reads ${files.length === 1 ? "itself alone" : files.join(", ")}`, () => {
      assert.deepEqual(filesOf(entry), files);
    });
  }

  test("I5 neither the import nor createKeel compiles, draws random numbers, sets timers or fetches", () => {
    const asked = inFreshNode(`${COUNTING}
      const { createKeel } = await import(${at("entry.inline.js")});
      createKeel({ ledger: () => {}, fetch: async () => new Response("{}"), breaker: false });
      console.log(JSON.stringify(asked));`);
    assert.deepEqual(asked, {});
  });

  test("I5 the first call compiles and starts the core, and the second call of any keel does not", () => {
    const [first, second] = inFreshNode(`${COUNTING}
      const { createKeel } = await import(${at("entry.inline.js")});
      const call = async () => {
        const keel = createKeel({ fetch: async () => new Response("{}") });
        await (await keel.fetch("https://api.openai.com/v1/models")).text();
        return { ...asked };
      };
      console.log(JSON.stringify([await call(), await call()]));`);
    // The module that unpacks the core, and the core.
    assert.deepEqual([first.Module, first.Instance], [2, 2]);
    assert.deepEqual([second.Module, second.Instance], [2, 2]);
  });
});

describe("the inlined core", () => {
  test("comes out as it went in, to the byte", () => {
    const { length, same } = inFreshNode(`
      import { readFileSync } from "node:fs";
      const { Module } = WebAssembly;
      const seen = [];
      const construct = (target, [bytes]) => { seen.push(new Uint8Array(bytes)); return new target(bytes); };
      WebAssembly.Module = new Proxy(Module, { construct });
      const { createKeel } = await import(${at("entry.inline.js")});
      createKeel().explainPolicy();
      const core = readFileSync(new URL(${at("core.wasm")}));
      console.log(JSON.stringify({ length: seen.length, same: core.equals(seen[1]) }));`);
    assert.deepEqual([length, same], [2, true]);
  });

  test("is text that no tool has to escape, whichever quotes it prefers", () => {
    const code = readFileSync(new URL("entry.inline.js", dist), "utf8");
    const text = /^var text = "(.*)";$/m.exec(code)?.[1] ?? "";
    assert.ok(text.length > readFileSync(new URL("core.wasm", dist)).length, `${text.length} letters`);
    assert.match(text, /^[ !#%&()*+,\-./0-9:;=>?@A-Z[\]^_a-z{|}~]+$/);
  });
});
