/** Renders the ledger of one logical request as a timeline that a person can read. Pure: records in, string out. */
import { duration } from "./table.mjs";

/**
 * @param {any[]} records Attempt and call records of one logical request, in the order they were emitted.
 * @param {import("./colour.mjs").Paint} paint
 * @param {number} [width] Characters for the time axis.
 */
export function renderTimeline(records, paint, width = 48) {
  const call = records.find((record) => record.type === "call");
  const attempts = records.filter((record) => record.type === "attempt").sort((a, b) => a.attempt_no - b.attempt_no);
  const first = attempts[0];
  if (!call || !first) return "The ledger has no record of this request.";

  const start = Date.parse(first.started_at);
  const end = Math.max(start + 1, ...attempts.map((attempt) => endOf(attempt)), start + (call.latency_ms ?? 0));
  const column = (/** @type {number} */ at) => Math.min(width, Math.round(((at - start) / (end - start)) * width));

  const lines = [
    `${paint.bold(`Logical request ${call.logical_request_id}`)}: ${first.provider}, ${first.model ?? "unknown model"}`,
    "",
    `  ${paint.dim(`0${duration(end - start).padStart(width - 1)}`)}`,
  ];
  attempts.forEach((attempt, index) => {
    const from = column(Date.parse(attempt.started_at));
    const to = Math.max(from + 1, column(endOf(attempt)));
    const next = attempts[index + 1];
    const waited = next ? Math.max(0, column(Date.parse(next.started_at)) - to) : 0;
    const bar = " ".repeat(from) + "█".repeat(to - from);
    const colour = attempt.status === "succeeded" ? paint.good : paint.bad;
    lines.push(
      `  ${colour(bar)}${paint.dim("·".repeat(waited))}${" ".repeat(Math.max(0, width - to - waited))}  ${attempt.attempt_no}. ${what(attempt)}`,
    );
    const indent = " ".repeat(width + 7);
    for (const note of notes(attempt)) lines.push(indent + paint.dim(note));
  });
  const outcome = call.status === "succeeded" ? paint.good(call.status) : paint.bad(call.status);
  lines.push("", `  ${outcome} after ${call.attempts} attempts in ${duration(call.latency_ms)}`);
  lines.push(paint.dim("  █ the request is out   · waiting, because it must"));
  return lines.join("\n");
}

function endOf(/** @type {any} */ attempt) {
  return attempt.finished_at
    ? Date.parse(attempt.finished_at)
    : Date.parse(attempt.started_at) + (attempt.latency_ms ?? 0);
}

function what(/** @type {any} */ attempt) {
  const answer = attempt.http_status ? `HTTP ${attempt.http_status}` : "no answer";
  const verdict = attempt.status === "succeeded" ? "succeeded" : (attempt.error_class ?? attempt.status);
  return `${answer}, ${verdict} (${duration(attempt.latency_ms ?? 0)})`;
}

/** Why it was decided so, and what was decided. */
function notes(/** @type {any} */ attempt) {
  const notes = [];
  if (attempt.status !== "succeeded" && attempt.rule) notes.push(`rule ${attempt.rule}`);
  if (attempt.status !== "succeeded" && attempt.delivery) notes.push(`delivery ${attempt.delivery.replace("_", " ")}`);
  if (attempt.decision === "retry") {
    const asked = attempt.retry_after_ms == null ? "" : `, asked for ${duration(attempt.retry_after_ms)}`;
    notes.push(`retry after ${duration(attempt.backoff_ms ?? 0)}${asked}`);
  } else if (attempt.decision === "fallback" || attempt.decision === "fail") {
    notes.push(`${attempt.decision}: ${attempt.reason}`);
  }
  return notes;
}
