// What `install` takes where nothing knows of WebAssembly's types, as in a project for Node alone.

import { readFileSync } from "node:fs";
import { install } from "evenkeel/slim";

install(readFileSync("core.wasm"));
install(new ArrayBuffer(8));
// @ts-expect-error a path is no module
install("core.wasm");
