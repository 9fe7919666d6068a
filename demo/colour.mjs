/** Colour for a terminal, and plain text for everything else. `NO_COLOR` (https://no-color.org) is obeyed. */

/** @typedef {Record<"good" | "bad" | "dim" | "bold" | "warn", (text: string) => string>} Paint */

/** Whether a stream shows colours. */
export function showsColour(
  /** @type {{ isTTY?: boolean }} */ stream,
  /** @type {Record<string, string | undefined>} */ env,
) {
  return stream.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

/** @returns {Paint} */
export function paintWith(/** @type {boolean} */ colour) {
  const code = (/** @type {number} */ start, /** @type {number} */ end) => (/** @type {string} */ text) =>
    colour ? `\u001b[${start}m${text}\u001b[${end}m` : text;
  return { good: code(32, 39), bad: code(31, 39), warn: code(33, 39), dim: code(2, 22), bold: code(1, 22) };
}
