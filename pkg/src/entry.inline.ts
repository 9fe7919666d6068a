/** The entry of every host that compiles wasm from bytes: no file, no `fetch`, no permission, bundled or not. */
import base64 from "./core.inline.js";
import { tryInstall } from "./load.js";

tryInstall(() => {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
});

export * from "./index.js";
