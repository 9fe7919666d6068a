/** Renders the results of the demo as one table of text. Pure: results in, string out. */
import { mistakes, wasted } from "./scenarios.mjs";

/** @typedef {{ scenario: import("./scenarios.mjs").Scenario, alone: import("./run.mjs").Result, keel: import("./run.mjs").Result }} Row */

/** @type {[title: string, width: number, right?: boolean][]} */
const COLUMNS = [
  ["what the upstream does", 32],
  ["client", 16],
  ["outcome", 16],
  ["sent", 4, true],
  ["wasted", 6, true],
  ["time", 6, true],
  ["outcome", 16],
  ["sent", 4, true],
  ["wasted", 6, true],
  ["time", 6, true],
];
const GAP = "  ";

/**
 * @param {Row[]} rows
 * @param {import("./colour.mjs").Paint} paint
 */
export function renderTable(rows, paint) {
  const widthOf = (/** @type {number} */ from, /** @type {number} */ to) =>
    COLUMNS.slice(from, to).reduce((sum, [, width]) => sum + width + GAP.length, -GAP.length);
  const lines = [
    paint.bold([" ".repeat(widthOf(0, 2)), "SDK alone".padEnd(widthOf(2, 6)), "SDK with keel.fetch"].join(GAP)),
    paint.dim(
      COLUMNS.map(([title, width, right]) => cell(title, width, right))
        .join(GAP)
        .trimEnd(),
    ),
  ];
  for (const { scenario, alone, keel } of rows) {
    const wrong = mistakes(scenario.keel, keel);
    const cells = [
      cell(scenario.trouble, 32),
      paint.dim(cell(`${scenario.sdk}${scenario.stream ? " stream" : ""}`, 16)),
      ...resultCells(scenario, alone, paint),
      ...resultCells(scenario, keel, paint),
    ];
    lines.push(cells.join(GAP) + (wrong.length > 0 ? `${GAP}${paint.bad("✗ not as it should be")}` : ""));
    for (const mistake of wrong) lines.push(paint.bad(`    ${mistake}`));
  }
  const sums = rows.reduce(
    (sum, { scenario, alone, keel }) => ({
      alone: sum.alone + wasted(scenario, alone),
      keel: sum.keel + wasted(scenario, keel),
      lost: sum.lost + Number(alone.outcome !== scenario.keel.outcome),
      missed: sum.missed + Number(keel.outcome !== scenario.keel.outcome),
    }),
    { alone: 0, keel: 0, lost: 0, missed: 0 },
  );
  lines.push(
    "",
    `Best possible outcome missed: ${sums.lost} of ${rows.length} by the SDK alone, ${sums.missed} with keel.fetch. Wasted requests: ${sums.alone} and ${sums.keel}.`,
    paint.dim(
      "sent: requests that reached the upstream. wasted: those that a perfect client would not have sent, or all if the best outcome was missed.",
    ),
  );
  return lines.join("\n");
}

/**
 * @param {import("./scenarios.mjs").Scenario} scenario
 * @param {import("./run.mjs").Result} result
 * @param {import("./colour.mjs").Paint} paint
 */
function resultCells(scenario, result, paint) {
  const best = result.outcome === scenario.keel.outcome;
  const lost = wasted(scenario, result);
  return [
    (best ? paint.good : paint.bad)(cell(describe(result), 16)),
    cell(String(result.requests), 4, true),
    (lost > 0 ? paint.warn : paint.dim)(cell(String(lost), 6, true)),
    cell(duration(result.ms), 6, true),
  ];
}

/** An outcome in a few words. */
export function describe(/** @type {import("./run.mjs").Result} */ result) {
  switch (result.outcome) {
    case "answer":
      return "answer";
    case "cut":
      return "cut, unnoticed";
    case "partial":
      return "part, then error";
    case "hang":
      return "still hanging";
    case "error":
      if (result.status !== undefined) return `error ${result.status}`;
      return result.detail.startsWith("APIError:") ? "error in stream" : "connection error";
  }
}

/** `40 ms`, `1.2 s`. */
export function duration(/** @type {number} */ ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function cell(/** @type {string} */ text, /** @type {number} */ width, right = false) {
  return right ? text.padStart(width) : text.padEnd(width);
}
