// docs/ledger.md against the notices of the conformance suite: what it says of a kind's detail is what is there.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
const [, table] = read("../../docs/ledger.md").split("## Notices");
const documented = new Map(
  [...table.matchAll(/^\| `(\w+)` *\|[^|]*\|([^|]*)\|/gm)].map(([, kind, detail]) => [
    kind,
    detail.match(/\w+/g) ?? [],
  ]),
);
const notices = read("../conformance/golden.ndjson")
  .split("\n")
  .filter((line) => line.includes('"type":"notice"'))
  .map((line) => JSON.parse(line));

describe("the document of the notices", () => {
  it("names every member of each notice's detail", () => {
    assert.ok(notices.length > 10);
    for (const { kind, detail } of notices) {
      const members = documented.get(kind);
      assert.ok(members, `${kind} is not documented`);
      for (const member of Object.keys(detail)) assert.ok(members.includes(member), `${kind}: ${member}`);
    }
  });
});
