// How benches print: a heading, a table in Markdown, and each target with what was measured.

export function heading(/** @type {string} */ text) {
  console.log(`\n## ${text}\n`);
}

export function table(/** @type {string[]} */ head, /** @type {string[][]} */ rows) {
  const widths = head.map((cell, at) => Math.max(cell.length, ...rows.map((row) => (row[at] ?? "").length)));
  const line = (/** @type {string[]} */ cells) =>
    `| ${cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join(" | ")} |`;
  console.log(line(head));
  console.log(
    `| ${widths.map((width, at) => (at === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`,
  );
  for (const row of rows) console.log(line(row));
}

/** Whether a target is met, with the figure. A bench never fails a build: machines differ. */
export function target(
  /** @type {string} */ what,
  /** @type {number} */ got,
  /** @type {number} */ wanted,
  /** @type {"at most" | "at least"} */ bound,
) {
  const met = bound === "at most" ? got <= wanted : got >= wanted;
  console.log(`${met ? "met   " : "MISSED"}  ${what}: ${Number(got.toPrecision(3))} (${bound} ${wanted})`);
}
