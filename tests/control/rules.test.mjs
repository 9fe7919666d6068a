// A user's own rules: the wrapper refuses at createKeel what the core would refuse at the first call, and nothing else.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { createKeel, KeelConfigError } from "evenkeel";
import { judge } from "../../build/pkg-open/dist/inside.js";

const CASE = {
  provider: "acme",
  protocol: "",
  url: "",
  status: 503,
  headers: "",
  body: "{}",
  stream: false,
  error: "",
  now: Date.UTC(2026, 10, 30),
};

/** What the core says is wrong, or `undefined`. */
function byCore(rules) {
  try {
    judge(CASE, JSON.stringify(rules));
    return undefined;
  } catch (error) {
    return error.message;
  }
}

/** The path that the wrapper refuses, or `undefined`. */
function byWrapper(rules) {
  try {
    createKeel({ providers: { acme: { match: ["acme.io"], rules } } });
    return undefined;
  } catch (error) {
    assert.ok(error instanceof KeelConfigError, String(error));
    assert.match(error.message, /expected/);
    return error.path;
  }
}

const ok = { status: 503, class: "overloaded" };
const right = [
  [],
  [ok],
  [{ name: "a", status: [400, "500-599", "4xx", "429", " 502 - 504 "], class: "server_error" }],
  [
    {
      code: "E17",
      type: ["a", "b"],
      text: "wait",
      class: "rate_limited",
      scope: "bucket",
      retryable: false,
      waitMs: 0,
    },
  ],
  [{ text: "é".repeat(128), class: "unknown", waitMs: 31_622_400_000 }],
  [{ type: "x", class: "cancelled", scope: undefined, waitMs: 1.5 }],
  Array(256).fill(ok),
  [{ status: Array(64).fill(400), class: "bad_request" }],
];
const wrong = [
  [{ a: 1 }, ""],
  ["rules", ""],
  [[null], "[0]"],
  [["x"], "[0]"],
  [[ok, 7], "[1]"],
  [[[ok]], "[0]"],
  [[{}], "[0].class"],
  [[{ class: "unknown" }], "[0]"],
  [[{ class: "unknown", name: "n", scope: "key" }], "[0]"],
  [[{ status: 429 }], "[0].class"],
  [[{ ...ok, class: "rate limited" }], "[0].class"],
  [[{ ...ok, class: null }], "[0].class"],
  [[{ ...ok, class: "toString" }], "[0].class"],
  [[{ ...ok, status: 99 }], "[0].status"],
  [[{ ...ok, status: 600 }], "[0].status"],
  [[{ ...ok, status: 503.5 }], "[0].status"],
  [[{ ...ok, status: -503 }], "[0].status"],
  [[{ ...ok, status: "6xx" }], "[0].status"],
  [[{ ...ok, status: "5XX" }], "[0].status"],
  [[{ ...ok, status: "5xx " }], "[0].status"],
  [[{ ...ok, status: "599-500" }], "[0].status"],
  [[{ ...ok, status: "500-" }], "[0].status"],
  [[{ ...ok, status: "500-599-600" }], "[0].status"],
  [[{ ...ok, status: "" }], "[0].status"],
  [[{ ...ok, status: null }], "[0].status"],
  [[{ ...ok, status: true }], "[0].status"],
  [[{ ...ok, status: {} }], "[0].status"],
  [[{ ...ok, status: [] }], "[0].status"],
  [[{ ...ok, status: [503, "nope"] }], "[0].status[1]"],
  [[{ ...ok, status: [[503]] }], "[0].status[0]"],
  [[{ ...ok, status: Array(65).fill(400) }], "[0].status"],
  [[{ ...ok, code: "" }], "[0].code"],
  [[{ ...ok, code: 17 }], "[0].code"],
  [[{ ...ok, type: ["a", null] }], "[0].type[1]"],
  [[{ ...ok, text: "x".repeat(257) }], "[0].text"],
  [[{ ...ok, text: "é".repeat(129) }], "[0].text"],
  [[{ ...ok, text: [] }], "[0].text"],
  [[{ ...ok, name: "" }], "[0].name"],
  [[{ ...ok, name: ["n"] }], "[0].name"],
  [[{ ...ok, scope: "planet" }], "[0].scope"],
  [[{ ...ok, retryable: "yes" }], "[0].retryable"],
  [[{ ...ok, waitMs: -5 }], "[0].waitMs"],
  [[{ ...ok, waitMs: "2000" }], "[0].waitMs"],
  [[{ ...ok, waitMs: 31_622_400_001 }], "[0].waitMs"],
  [[{ ...ok, wait: 5 }], "[0].wait"],
  [Array(257).fill(ok), ""],
];

describe("rules", () => {
  it("that are right are taken by both validators", () => {
    for (const rules of right) {
      assert.deepEqual([byWrapper(rules), byCore(rules)], [undefined, undefined], JSON.stringify(rules).slice(0, 200));
    }
  });

  for (const [rules, path] of wrong) {
    const text = JSON.stringify(rules);
    it(`${text.length > 80 ? `${text.slice(0, 60)} …` : text} are refused by both validators, at ${path || "the whole"}`, () => {
      assert.equal(byWrapper(rules), `providers.acme.rules${path}`);
      const said = byCore(rules);
      assert.ok(said?.startsWith(`${path || "rules"}: expected`), said);
    });
  }

  it("have in both the same classes and scopes", () => {
    const source = readFileSync(new URL("../../src/class.rs", import.meta.url), "utf8");
    const names = new Set(Array.from(source.matchAll(/"([a-z_]+)"/g), (match) => match[1]));
    assert.ok(names.has("rate_limited") && names.has("provider"), String([...names]));
    for (const name of names) {
      const takes = (rule) => [byWrapper([rule]) === undefined, byCore([rule]) === undefined];
      const [wrapper, core] = takes({ status: 500, class: name });
      assert.equal(wrapper, core, name);
      const [scoped, inCore] = takes({ ...ok, scope: name });
      assert.equal(scoped, inCore, name);
    }
  });
});
