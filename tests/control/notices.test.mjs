// docs/ledger.md names every notice there is, and its sink does what it says.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";

const at = (path) => new URL(`../../${path}`, import.meta.url);
const read = (path) => readFileSync(at(path), "utf8");
const page = read("docs/ledger.md");
const notices = page.slice(page.indexOf("## Notices"));

describe("docs/ledger.md", () => {
  it("lists the notices of the core and of the wrapper, and no others", () => {
    const listed = [...notices.matchAll(/^\| `(\w+)`/gm)].map(([, kind]) => kind);
    const told = [...read("src/control/notice.rs").matchAll(/Self::\w+ => "(\w+)"/g)];
    for (const file of readdirSync(at("src"), { recursive: true }).filter((name) => name.endsWith(".rs")))
      told.push(...read(`src/${file}`).matchAll(/pack_notice\(\s*"(\w+)"/g));
    for (const file of readdirSync(at("pkg/src")).filter((name) => name.endsWith(".ts")))
      told.push(...read(`pkg/src/${file}`).matchAll(/notice\("(\w+)"/g));
    assert.ok(told.length >= 15, String(told));
    assert.deepEqual(listed.sort(), [...new Set(told.map(([, kind]) => kind))].sort());
  });

  it("names every member of the detail of the notices in the conformance suite", () => {
    const rows = [...notices.matchAll(/^\| `(\w+)`[^|]*\|[^|]*\|[^|]*\|([^|]*)\|$/gm)];
    const members = new Map(rows.map(([, kind, detail]) => [kind, detail]));
    const golden = read("tests/conformance/golden.ndjson").match(/^.*"type":"notice".*$/gm);
    assert.ok(golden.length > 10);
    for (const { kind, detail } of golden.map((line) => JSON.parse(line)))
      for (const member of Object.keys(detail))
        assert.ok(members.get(kind)?.includes(`\`${member}\``), `${kind}: ${member}`);
  });

  it("has a sink that is whole once flushed", () => {
    const folder = mkdtempSync(join(tmpdir(), "evenkeel-ledger-"));
    try {
      const [, code] = /```js\n([\s\S]*?)```/.exec(page);
      // From a folder of its own no package is found by its name.
      const entry = at("pkg/dist/entry.inline.js").href;
      const main = code
        .replace('"evenkeel"', JSON.stringify(entry))
        .replace("createKeel({", "createKeel({ fetch: async () => Response.json({}),");
      const use = 'await keel.fetch("https://api.openai.com/v1/models"); await keel.flush(); process.exit();';
      writeFileSync(join(folder, "main.mjs"), main + use);
      execFileSync(process.execPath, ["main.mjs"], { cwd: folder });
      const lines = readFileSync(join(folder, "ledger.ndjson"), "utf8").trim().split("\n");
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).type),
        ["attempt", "call"],
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
