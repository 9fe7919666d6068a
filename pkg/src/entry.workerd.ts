/** The entry of Cloudflare Workers, where a `.wasm` import is a compiled module and bytes may not be compiled. */
import module from "./core.wasm";
import { provide } from "./load.js";

provide(() => module);

export * from "./index.js";
