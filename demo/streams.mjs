/**
 * The table SDK × trouble of `docs/streams.md` in short form: how many of the SDKs' users see what. The column of
 * `keel.fetch` is run now; that of the SDKs alone is what was measured, since each stall takes them seconds.
 */
import { readBare } from "../scripts/streams-table.mjs";
import { due, judge, SDKS, TROUBLES } from "../tests/clients/streams.mjs";

/** SDKs at a time: more of them would be late for reasons of their own. */
const AT_ONCE = 3;

/** @typedef {{ trouble: import("../tests/clients/streams.mjs").Trouble, alone: string[], keel: string[], wrong: string[] }} StreamRow */

/**
 * Runs the cells with a keel.
 *
 * @returns {Promise<StreamRow[]>}
 */
export async function runStreams() {
  const bare = readBare();
  /** @type {Map<string, string[]>} */
  const endings = new Map();
  const queue = [...SDKS];
  const worker = async () => {
    for (let sdk = queue.shift(); sdk !== undefined; sdk = queue.shift()) {
      const one = sdk;
      const cells = TROUBLES.map(async (trouble) => (await judge(one, trouble, { keel: true })).ending);
      endings.set(one.id, await Promise.all(cells));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return TROUBLES.map((trouble, n) => {
    const keel = SDKS.map((sdk) => endings.get(sdk.id)?.[n] ?? "?");
    return {
      trouble,
      alone: SDKS.map((sdk) => bare.sdks[sdk.id]?.endings[trouble.id] ?? "?"),
      keel,
      wrong: SDKS.filter((sdk, at) => keel[at] !== due(sdk, trouble)).map(
        (sdk) => `${sdk.title}: ${keel[SDKS.indexOf(sdk)]}, expected ${due(sdk, trouble)}`,
      ),
    };
  });
}

/** What nobody should see: half an answer that looks whole, a reader that hangs, an upstream that nobody listens to. */
const BAD = ["half", "hang", "runs on"];

/**
 * @param {StreamRow[]} rows
 * @param {import("./colour.mjs").Paint} paint
 */
export function renderStreams(rows, paint) {
  const width = Math.max(...rows.map(({ alone }) => counted(alone).length));
  const cell = (/** @type {string[]} */ endings) => {
    const text = counted(endings).padEnd(width);
    return endings.some((ending) => BAD.includes(ending)) ? paint.bad(text) : paint.good(text);
  };
  const lines = [
    paint.bold(`${"what happens to the stream".padEnd(26)}  ${"SDKs alone".padEnd(width)}  SDKs with keel.fetch`),
  ];
  for (const { trouble, alone, keel, wrong } of rows) {
    lines.push(`${trouble.title.padEnd(26)}  ${cell(alone)}  ${cell(keel)}`.trimEnd());
    for (const mistake of wrong) lines.push(paint.bad(`    ✗ ${mistake}`));
  }
  lines.push(
    paint.dim(
      "whole: the whole answer. part, error: part of it, then an error. half: part of it, and nothing says so.",
    ),
    paint.dim(
      "runs on: the SDK doesn't cancel its stream when its user leaves the loop; an abort stops it. docs/streams.md",
    ),
  );
  return lines.join("\n");
}

/** `9 half, 1 whole`, the most frequent first. */
function counted(/** @type {string[]} */ endings) {
  const counts = new Map();
  for (const ending of endings) counts.set(ending, (counts.get(ending) ?? 0) + 1);
  return [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([ending, count]) => `${count} × ${ending}`)
    .join("; ");
}
