// The conformance suite in whatever runs this file: Node, Deno, Bun and a browser take it as it is, Workers and the edge
// VM call `conformance` from their own entry. The last line of the output is the result, as JSON.

import * as lib from "evenkeel";
import * as testing from "evenkeel/testing";
import { run } from "./conformance/suite.mjs";

/** Resolves to `{ passed, failed, failures, golden }`. */
export async function conformance() {
  const failures = [];
  const totals = await run(lib, testing, (result) => {
    if (result.error !== undefined) failures.push(result);
  });
  return { ...totals, failures };
}
