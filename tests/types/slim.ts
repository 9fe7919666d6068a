// What `install` takes. The DOM's types know of WebAssembly; Node's do not (slim-node.ts).

import { install } from "evenkeel/slim";

install(new Uint8Array());
install(new ArrayBuffer(8));
install(new WebAssembly.Module(new Uint8Array()));
// @ts-expect-error a path is no module
install("core.wasm");
