// Vercel's edge runtime, as `@edge-runtime/vm` imitates it: the condition `edge-light`, and a wasm module imported by
// `?module`, which Vercel's bundler compiles ahead of time.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "esbuild";
import { broken, HERE, stage } from "../lib/tools.mjs";

/** A `?module` import gives what the runtime was handed, under this name. */
const HANDED = "__evenkeel_core_module";

export default {
  async edge() {
    const folder = await stage("edge");
    const wasm = [];
    const module = {
      name: "wasm-module",
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /\.wasm\?module$/ }, ({ path, resolveDir }) => {
          wasm.push(join(resolveDir, path.replace("?module", "")));
          return { path, namespace: "wasm-module" };
        });
        onLoad({ filter: /.*/, namespace: "wasm-module" }, () => ({
          contents: `export default globalThis.${HANDED};`,
        }));
      },
    };
    const { outputFiles } = await build({
      entryPoints: [join(folder, "main.mjs")],
      bundle: true,
      write: false,
      format: "iife",
      globalName: "suite",
      target: "es2022",
      conditions: ["edge-light"],
      plugins: [module],
      logLevel: "error",
    });
    if (wasm.length !== 1 || !existsSync(wasm[0])) return broken('the condition "edge-light" was not taken');
    const { EdgeVM } = createRequire(join(HERE, "package.json"))("@edge-runtime/vm");
    const compiled = new WebAssembly.Module(readFileSync(wasm[0]));
    const vm = new EdgeVM({ extend: (context) => Object.assign(context, { [HANDED]: compiled }) });
    try {
      return await vm.evaluate(`${outputFiles[0].text}; suite.conformance()`);
    } catch (error) {
      return broken(error.stack ?? String(error));
    }
  },
};
