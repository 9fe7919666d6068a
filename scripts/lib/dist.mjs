// Puts a built core into a dist folder, or a whole package around another core than the one that ships.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DIST, PKG } from "./run.mjs";

/** The wasm as module, as bytes in JavaScript, and its glue. */
export function copyCore(from, dist) {
  mkdirSync(dist, { recursive: true });
  for (const name of ["core.js", "core.d.ts", "core.wasm"]) cpSync(join(from, name), join(dist, name));
  const base64 = readFileSync(join(from, "core.wasm")).toString("base64");
  writeFileSync(join(dist, "core.inline.js"), `export default "${base64}";\n`);
  writeFileSync(
    join(dist, "core.wasm.d.ts"),
    "/** The core, compiled: what Workers and edge functions get when they import a `.wasm` file. */\n" +
      "declare const module: WebAssembly.Module;\nexport default module;\n",
  );
}

/** The package as it is in pkg/dist, in the folder `to`, with the core of the folder `from`. */
export function packageAround(from, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  cpSync(join(PKG, "package.json"), join(to, "package.json"));
  cpSync(DIST, join(to, "dist"), { recursive: true });
  copyCore(from, join(to, "dist"));
}
