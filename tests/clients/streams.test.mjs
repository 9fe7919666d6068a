/**
 * Real SDKs as judges of streams: what an SDK shows its user through `keel.fetch` is the whole answer or an error, never
 * half an answer that looks whole; and the ledger says what happened. The cells are those of `streams.mjs`.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { BARE_FILE, DOC_FILE, fill, readBare, renderMarkdown } from "../../scripts/streams-table.mjs";
import { ANSWER, due, judge, packagesOf, SDKS, TROUBLES } from "./streams.mjs";

for (const sdk of SDKS) {
  describe(`${sdk.title} reads a stream through keel.fetch`, { concurrency: true }, () => {
    for (const trouble of TROUBLES) {
      it(`${trouble.title}: ${due(sdk, trouble)}`, async () => {
        const { ending, text, error, requests, records } = await judge(sdk, trouble, { keel: true });
        assert.equal(ending, due(sdk, trouble), `${error?.constructor?.name}: ${error?.message}, after “${text}”`);
        assert.ok(ANSWER.startsWith(text), `nothing is shown twice: “${text}”`);
        const attempts = records.filter((record) => record.type === "attempt");
        assert.equal(attempts.length, requests, "one record for each request that the upstream saw");
        if (ending === "runs on") return;
        const [call, ...more] = records.filter((record) => record.type === "call");
        assert.equal(more.length, 0);
        assert.deepEqual(
          { status: call.status, attempts: call.attempts, errorClass: call.error_class },
          trouble.ledger,
          `reason ${call.reason}`,
        );
      });
    }
  });
}

describe("the table of docs/streams.md", () => {
  const bare = readBare();

  it("has bare SDKs of the versions that are installed", () => {
    const installed = Object.fromEntries(SDKS.map((sdk) => [sdk.id, packagesOf(sdk)]));
    const measured = Object.fromEntries(SDKS.map((sdk) => [sdk.id, bare.sdks[sdk.id]?.packages]));
    assert.deepEqual(measured, installed, `measure again: node scripts/streams-table.mjs --measure (${BARE_FILE})`);
  });

  it("is as the script writes it", () => {
    const doc = readFileSync(DOC_FILE, "utf8");
    assert.equal(doc, fill(doc, renderMarkdown(bare)), "run node scripts/streams-table.mjs --write");
  });

  it("has no silent half answer in any row of keel's", () => {
    for (const trouble of TROUBLES) {
      for (const sdk of SDKS)
        assert.ok(!["half", "hang"].includes(due(sdk, trouble)), `${sdk.title}, ${trouble.title}`);
    }
  });
});
