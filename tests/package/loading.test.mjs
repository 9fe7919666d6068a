// How the core enters: each entry loads it by itself, and where a host refuses, the error says what to do.
// Each case runs in a Node of its own, since a core that is in stays in.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const dist = new URL("../../pkg/dist/", import.meta.url);
const at = (file) => JSON.stringify(new URL(file, dist).href);

/** Runs module code in a fresh Node and gives what it prints. */
function inFreshNode(code, ...flags) {
  const args = [...flags, "--input-type=module", "--eval", code];
  return execFileSync(process.execPath, args, { encoding: "utf8" }).trim();
}

const askForCore = (file) => `
  const { createKeel } = await import(${at(file)});
  try { createKeel().explainPolicy(); console.log("loaded"); } catch (error) { console.log(error.message); }`;

test("the main entry finds its core by itself", () => {
  assert.equal(inFreshNode(askForCore("entry.inline.js")), "loaded");
});

test("the package can be required, and gives the same module as an import", () => {
  const code = `
    import { createRequire } from "node:module";
    const path = ${JSON.stringify(fileURLToPath(new URL("../../package.json", import.meta.url)))};
    const required = createRequire(path)("evenkeel");
    const imported = await import(${at("entry.inline.js")});
    console.log(required.createKeel === imported.createKeel && typeof imported.createKeel);`;
  assert.equal(inFreshNode(code, "--no-warnings"), "function");
});

test("slim without a core says that install has to be called", () => {
  const message = inFreshNode(askForCore("slim.js"));
  assert.match(message, /evenkeel\/slim.*Call `install\(module\)`/);
});

test("I1 slim takes a compiled module or bytes, and a second install changes nothing", () => {
  const code = (argument) => `
    import { readFileSync } from "node:fs";
    const { install } = await import(${at("slim.js")});
    const bytes = readFileSync(new URL(${at("core.wasm")}));
    install(${argument});
    install(new Uint8Array([1, 2, 3]));
    ${askForCore("slim.js")}`;
  assert.equal(inFreshNode(code("bytes")), "loaded");
  assert.equal(inFreshNode(code("new WebAssembly.Module(bytes)")), "loaded");
});

test("I1 a module that was compiled in another realm is taken as it is, and not compiled again", () => {
  const code = `
    import { readFileSync } from "node:fs";
    import { runInNewContext } from "node:vm";
    const { install } = await import(${at("slim.js")});
    const bytes = readFileSync(new URL(${at("core.wasm")}));
    const module = runInNewContext("new WebAssembly.Module(bytes)", { bytes });
    WebAssembly.Module = new Proxy(WebAssembly.Module, { construct() { throw new Error("compiled again"); } });
    install(module);
    ${askForCore("slim.js")}`;
  assert.equal(inFreshNode(code), "loaded");
});

test("I1 a core that the host refused is not asked for again, and another entry's is taken after it", () => {
  const code = `
    import { readFileSync } from "node:fs";
    const { createKeel, provide } = await import(${at("main.js")});
    let asked = 0;
    const use = () => { try { createKeel().explainPolicy(); return "loaded"; } catch (error) { return error.message; } };
    provide(() => { asked += 1; throw new Error("not here"); });
    console.log(use());
    console.log(use(), asked);
    provide(() => readFileSync(new URL(${at("core.wasm")})));
    console.log(use());`;
  const [first, again, loaded] = inFreshNode(code).split("\n");
  assert.match(first, /^evenkeel: the WebAssembly core could not be loaded: not here\./);
  assert.deepEqual([again, loaded], [`${first} 1`, "loaded"]);
});

test("importing never throws, and a refusal by a Content-Security-Policy names the directive to add", () => {
  const refuse = (text) => `
    WebAssembly.Module = class { constructor() { throw new WebAssembly.CompileError(${JSON.stringify(text)}); } };
    ${askForCore("entry.inline.js")}`;
  const chromium =
    "WebAssembly.Module(): Compiling or instantiating WebAssembly module violates the following Content Security " +
    "policy directive because 'unsafe-eval' is not an allowed source of script";
  assert.match(inFreshNode(refuse(chromium)), /Add 'wasm-unsafe-eval' to its script-src/);
  const workerd = "WebAssembly.Module(): Wasm code generation disallowed by embedder";
  assert.match(inFreshNode(refuse(workerd)), /Import from `evenkeel` with a bundler/);
});

test("a host without WebAssembly is told apart from a broken file", () => {
  const code = `delete globalThis.WebAssembly; ${askForCore("entry.inline.js")}`;
  assert.match(inFreshNode(code), /this host has no WebAssembly/);
});
