// What the build makes of wasm-bindgen's glue, and that it notices when that is not what it knows.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { foldGlue } from "../../scripts/lib/glue.mjs";

const glue = readFileSync(new URL("../../build/wasm/core.js", import.meta.url), "utf8");
const methods = (code) => [...code.matchAll(/wasm\.(core_\w+)\(/g)].map(([, name]) => name);

test("the folded glue calls the same functions in the same order, and checks the instance in as many places", () => {
  const folded = foldGlue(glue);
  assert.deepEqual(methods(folded), methods(glue));
  assert.equal(folded.match(/live\(this\);/g)?.length, glue.match(/Invalid stale object/g)?.length);
  assert.ok(folded.length < glue.length * 0.8, `${folded.length} of ${glue.length}`);
});

for (const [what, from, to] of [
  ["a check that is written otherwise", /this\.__wbg_inst !== undefined/g, "this.__wbg_inst != null"],
  ["one check that is written otherwise", "this.__wbg_inst !== undefined", "this.__wbg_inst != null"],
  ["a result that is freed otherwise", "deferred1_0 = ret[0];", "deferred1_0 = ret.at(0);"],
  ["a new instance by schedule", "__wbg_reinit_scheduled = false", "__wbg_reinit_scheduled = true"],
  ["memory that is asked for otherwise", "malloc, realloc) {", "alloc) {"],
]) {
  test(`${what} fails the build`, () => {
    const changed = glue.replace(from, to);
    assert.notEqual(changed, glue);
    assert.throws(() => foldGlue(changed), /glue has changed|by itself/);
  });
}
