/** The entry of Vercel's edge runtime, whose bundlers know a wasm module by `?module`. */
import module from "./core.wasm?module";
import { tryInstall } from "./load.js";

tryInstall(() => module);

export * from "./index.js";
