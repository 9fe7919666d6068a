// The table SDK × trouble of docs/streams.md: what each real SDK shows its user of a troubled stream, through `keel.fetch`
// and bare.
//
//   node scripts/streams-table.mjs            checks that the document has the table as it is now
//   node scripts/streams-table.mjs --write    writes it into the document
//   node scripts/streams-table.mjs --measure  measures the bare SDKs first (40 s), into tests/data/bare-sdk-streams.json
//
// The rows with keel are what tests/clients/streams.test.mjs asserts; the bare rows are what was measured.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { due, judge, packagesOf, SDKS, TIMES, TROUBLES } from "../tests/clients/streams.mjs";
import { options, ROOT, runMain, Stop, say } from "./lib/run.mjs";

export const DOC_FILE = join(ROOT, "docs", "streams.md");
export const BARE_FILE = join(ROOT, "tests", "data", "bare-sdk-streams.json");

const BEGIN = "<!-- table: node scripts/streams-table.mjs --write -->";
const END = "<!-- end of table -->";

/** @typedef {{ node: string, times: object, sdks: Record<string, { packages: string, endings: Record<string, string> }> }} Bare */

/** @returns {Bare} */
export function readBare() {
  return JSON.parse(readFileSync(BARE_FILE, "utf8"));
}

/** The table in Markdown: two rows an SDK, in columns as the formatter wants them. */
export function renderMarkdown(/** @type {Bare} */ bare) {
  const marked = (/** @type {string} */ ending) =>
    ["half", "hang", "runs on"].includes(ending) ? `**${ending}**` : ending;
  const rows = SDKS.flatMap((sdk) => {
    const packages = sdk.packages.length === 1 ? packagesOf(sdk).split(" ").at(-1) : packagesOf(sdk);
    return [
      [`${sdk.title} (${packages})`, "keel", ...TROUBLES.map((trouble) => marked(due(sdk, trouble)))],
      ["", "bare", ...TROUBLES.map((trouble) => marked(bare.sdks[sdk.id]?.endings[trouble.id] ?? "?"))],
    ];
  });
  const head = ["SDK", "", ...TROUBLES.map((trouble) => trouble.title)];
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (/** @type {string[]} */ cells) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const rule = line(widths.map((width) => "-".repeat(width)));
  return [line(head), rule, ...rows.map(line), "", `The bare rows were measured with Node ${bare.node}.`].join("\n");
}

/** The document with the table in its place. */
export function fill(/** @type {string} */ doc, /** @type {string} */ table) {
  const from = doc.indexOf(BEGIN);
  const to = doc.indexOf(END);
  if (from < 0 || to < from) throw new Stop(`${DOC_FILE} has no place for the table`);
  return `${doc.slice(0, from + BEGIN.length)}\n\n${table}\n\n${doc.slice(to)}`;
}

/** @returns {Promise<Bare>} */
async function measure() {
  /** @type {Bare} */
  const bare = { node: process.versions.node, times: TIMES, sdks: {} };
  for (const sdk of SDKS) {
    const cells = await Promise.all(
      TROUBLES.map(async (trouble) => [trouble.id, (await judge(sdk, trouble, { keel: false })).ending]),
    );
    bare.sdks[sdk.id] = { packages: packagesOf(sdk), endings: Object.fromEntries(cells) };
    say(`${sdk.title}: ${cells.map(([, ending]) => ending).join(" · ")}`);
  }
  return bare;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await runMain(async () => {
    const flags = options(
      { write: false, measure: false },
      "usage: node scripts/streams-table.mjs [--measure] [--write]",
    );
    if (flags.measure) writeFileSync(BARE_FILE, `${JSON.stringify(await measure(), null, 2)}\n`);
    const doc = readFileSync(DOC_FILE, "utf8");
    const fresh = fill(doc, renderMarkdown(readBare()));
    if (flags.write) writeFileSync(DOC_FILE, fresh);
    else if (doc !== fresh) throw new Stop("the table of docs/streams.md is stale; run this with --write");
  });
}
