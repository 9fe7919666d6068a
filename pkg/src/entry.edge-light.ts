/** The entry of Vercel's edge runtime, whose bundlers know a wasm module by `?module`. */
import module from "./core.wasm?module";
import { provide } from "./load.js";

provide(() => module);

export * from "./index.js";
