/** The entry of every host that compiles wasm from bytes: no file, no `fetch`, no permission, bundled or not. */
import { decoder, start, text } from "./core.inline.js";
import { provide, requireCore } from "./load.js";

provide(() => {
  const module = new WebAssembly.Module(Uint8Array.from(atob(decoder), (letter) => letter.charCodeAt(0)));
  const { memory, decode } = new WebAssembly.Instance(module).exports as unknown as Decoder;
  const { written } = new TextEncoder().encodeInto(text, new Uint8Array(memory.buffer, start));
  return new Uint8Array(memory.buffer, start, decode(start + written));
});

interface Decoder {
  readonly memory: WebAssembly.Memory;
  decode(end: number): number;
}

// Workers compile bytes while they start (since the compatibility date 2025-06-01) or never.
if ("WebSocketPair" in globalThis) {
  try {
    requireCore();
  } catch {
    // Whoever uses the core is told why there is none.
  }
}

export * from "./index.js";
