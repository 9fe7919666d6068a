// Folds what wasm-bindgen's glue says in every method anew, and leaves out what this core has no use for. The code does the
// same as before; its statements are found by their exact form, and a form that is not as expected fails the build, since
// then a new version of wasm-bindgen wants to be looked at.

import { Stop } from "./run.mjs";

/** A form, by what it is replaced, and how often it is at least there. */
const FOLDS = [
  {
    what: "the check that an object is of this instance",
    form: /if \(this\.__wbg_inst !== undefined && this\.__wbg_inst !== __wbg_instance_id\) \{\s*throw new Error\('Invalid stale object from previous Wasm instance'\);\s*\}/g,
    by: "live(this);",
    least: 20,
  },
  {
    // Rust asks for it by `schedule_reinit`, which the core does not call: the flag stays false.
    what: "the look whether a new instance is scheduled",
    form: /^\s*__wbg_call_guard\(\);\n/gm,
    by: "",
    least: 20,
  },
  {
    what: "a result",
    form: /let ret;\s*ret = (wasm\.\w+\([^;]*\));/g,
    by: "const ret = $1;",
    least: 20,
  },
  {
    // Without memory the core traps, and its memory is gone with it.
    what: "freeing the arguments if one of them finds no memory",
    form: /try \{([^{}]*)\} catch \(e\) \{(?:\s*if \(ptr\d+\) \{[^{}]*\})+\s*throw e;\s*\}/g,
    by: "$1",
    least: 2,
  },
  {
    what: "a string that is returned",
    form: /let deferred(\d+)_0;\s*let deferred\1_1;\s*try \{([\s\S]*?)deferred\1_0 = ret\[0\];\s*deferred\1_1 = ret\[1\];\s*return getStringFromWasm0\(ret\[0\], ret\[1\]\);\s*\} finally \{\s*wasm\.__wbindgen_free\(deferred\1_0, deferred\1_1, 1\);\s*\}/g,
    by: "$2return takeString(ret);",
    least: 5,
  },
  {
    what: "a string that is passed",
    form: /passStringToWasm0\((\w+), wasm\.__wbindgen_malloc, wasm\.__wbindgen_realloc\)/g,
    by: "passStringToWasm0($1)",
    least: 5,
  },
  {
    what: "passing a string where the host cannot encode into memory",
    form: /function passStringToWasm0\(arg, malloc, realloc\) \{\s*if \(realloc === undefined\) \{[^{}]*\}\n/g,
    by: "function passStringToWasm0(arg) {\nconst { __wbindgen_malloc: malloc, __wbindgen_realloc: realloc } = wasm;\n",
    least: 1,
  },
  {
    what: "encoding into memory where the host has no such thing",
    form: /if \(!\('encodeInto' in cachedTextEncoder\)\) \{[\s\S]*?\n\}\n/g,
    by: "",
    least: 1,
  },
];

const HELPERS = `
function live(object) {
  if (object.__wbg_inst !== __wbg_instance_id) throw new Error("Invalid stale object from previous Wasm instance");
}

function takeString([at, length]) {
  try {
    return getStringFromWasm0(at, length);
  } finally {
    wasm.__wbindgen_free(at, length, 1);
  }
}
`;

/** The glue, shorter. */
export function foldGlue(code) {
  if (/__wbg_reinit_scheduled = true/.test(code)) throw new Stop("the glue schedules new instances by itself now");
  let folded = code;
  for (const { what, form, by, least } of FOLDS) {
    const found = [...folded.matchAll(form)].length;
    if (found < least)
      throw new Stop(`wasm-bindgen's glue has changed: ${what} was found ${found} times (scripts/lib/glue.mjs)`);
    folded = folded.replace(form, by);
  }
  for (const left of [
    "this.__wbg_inst !==",
    "deferred",
    "__wbg_call_guard();",
    "catch (e) {\n                if (ptr",
  ]) {
    if (folded.includes(left))
      throw new Stop(`wasm-bindgen's glue has changed: "${left}" is left (scripts/lib/glue.mjs)`);
  }
  return folded + HELPERS;
}
