/**
 * Where the wasm core enters. Each entry file says what its host can use (a compiled module, or bytes); it is compiled and
 * instantiated when a core is first needed, synchronously, so there is no promise that two requests of a Worker could share,
 * and an import costs no more than its reading.
 */
import { __wbg_reset_state, initSync } from "./core.js";

let installed = false;
let poisoned = false;
let generation = 0;
let failure: unknown;
let provided: (() => object) | undefined;

/**
 * Gives evenkeel its WebAssembly core. Only users of `evenkeel/slim` call it; the other entries do so themselves.
 *
 * @param source - `evenkeel/core.wasm`, compiled (`WebAssembly.Module`) or as bytes (`Uint8Array`, `ArrayBuffer`). A second
 * call changes nothing.
 * @throws An `Error` that says what to do where this is no core, or the host refuses it; the host's own is its `cause`.
 * After it another one can be given.
 */
export function install(source: object): void {
  // To TypeScript a module is any object, and projects for Node alone have no type of that name.
  if (installed) return;
  try {
    start(source);
  } catch (error) {
    throw unloaded(error);
  }
}

function start(source: object): void {
  // By name and not by `instanceof`: a module may come from another realm (edge runtimes evaluate in a VM context).
  const compiled = Object.prototype.toString.call(source) === "[object WebAssembly.Module]";
  const module = (compiled ? source : new WebAssembly.Module(source as BufferSource)) as WebAssembly.Module;
  // The glue does ask `instanceof`, and would compile what is compiled. The module is our own core, so it may be dressed.
  if (!(module instanceof WebAssembly.Module)) Object.setPrototypeOf(module, WebAssembly.Module.prototype);
  // The glue keeps whatever starts, and takes no other after it.
  if (!WebAssembly.Module.exports(module).some(({ name }) => name === "core_begin"))
    throw new Error("no core is in it");
  initSync({ module });
  installed = true;
  failure = undefined;
}

/** Says what {@link requireCore} is to install, unless something is by then, or an entry before has said so. */
export function provide(source: () => object): void {
  provided ??= source;
}

/**
 * Loads the core unless it is there. Throws an error that says what to do if it could not be loaded, or not be started anew.
 * A host that has refused once is not asked again, unless another entry comes with the core in another form.
 */
export function requireCore(): void {
  const source = provided;
  if (!installed && source !== undefined) {
    provided = undefined;
    try {
      start(source());
    } catch (error) {
      failure = error ?? new Error("it threw nothing");
    }
  }
  if (!installed) throw unloaded(failure);
  if (poisoned) revive();
}

/** What is called when the instance has been given up: calls that wait would else hear of it only when their time is up. */
export const onRestart = new Set<() => void>();

/**
 * Replaces the instance after a trap. Objects of the old one throw when they are used or freed. Where the host refuses
 * another one (out of memory, mostly), the next {@link requireCore} asks again.
 */
export function restartCore(): void {
  poisoned = true;
  generation += 1;
  try {
    revive();
  } catch {
    // The next call is told.
  }
  for (const tell of [...onRestart]) tell();
}

function revive(): void {
  try {
    __wbg_reset_state();
  } catch (error) {
    throw new Error(
      `evenkeel: the WebAssembly core has failed, and this host gives no new instance of it: ${messageOf(error)}. ` +
        'With `onCoreFailure: "pass-through"` requests go out without it.',
      { cause: error },
    );
  }
  poisoned = false;
}

/** How often the instance was replaced: objects of an earlier generation are dead. All keels share one instance. */
export function coreGeneration(): number {
  return generation;
}

function unloaded(error: unknown): Error {
  return new Error(explain(error), { cause: error });
}

function explain(error: unknown): string {
  if (error === undefined) {
    return (
      "evenkeel has no WebAssembly core: `evenkeel/slim` comes without one. Call `install(module)` with the compiled " +
      "`evenkeel/core.wasm` first, or import from `evenkeel`."
    );
  }
  const message = messageOf(error);
  if (typeof WebAssembly === "undefined") {
    return "evenkeel: this host has no WebAssembly (a browser in Lockdown Mode, or a runtime started with --jitless).";
  }
  if (/content security policy|unsafe-eval/i.test(message)) {
    return `evenkeel: this page's Content-Security-Policy forbids WebAssembly. Add 'wasm-unsafe-eval' to its script-src. (${message})`;
  }
  if (/disallowed by embedder/i.test(message)) {
    return (
      "evenkeel: this host compiles no WebAssembly from bytes (Cloudflare Workers). Import from `evenkeel` with a bundler " +
      `that knows the condition "workerd" (wrangler does), not from \`evenkeel/inline\`. (${message})`
    );
  }
  const what = `evenkeel: the WebAssembly core could not be loaded: ${message}`;
  // A page's main thread compiles up to some size at once (Chromium: 8 MB), a worker's any.
  if (/on the main thread/i.test(message)) return `${what} Use evenkeel in a Web Worker.`;
  if (/out of memory/i.test(message)) return what;
  return `${what}. Bundle and serve evenkeel's files as they were published, \`core.wasm\` as bytes or a module.`;
}

function messageOf(error: unknown): string {
  return String(error instanceof Error ? error.message : error);
}
