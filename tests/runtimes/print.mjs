// Entry for hosts with a standard output.

import { conformance } from "./main.mjs";

console.log(JSON.stringify(await conformance()));
