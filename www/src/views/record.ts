/** A record as a card: what matters as a list, the rest as JSON behind a disclosure. */
import type { AttemptRecord, CallRecord } from "evenkeel";
import { h } from "./dom.js";
import { decision, duration, spaced } from "./words.js";

type Fact = readonly [name: string, value: string | null];

const ms = (value: number | null): string | null => (value === null ? null : duration(value));

/** What one would look at first. The names are the record's own. */
function factsOf(record: AttemptRecord): Fact[] {
  return [
    ["error_class", record.error_class],
    ["reason", record.reason],
    ["rule", record.rule],
    ["delivery", spaced(record.delivery)],
    ["retry_after_ms", ms(record.retry_after_ms)],
    ["backoff_ms", ms(record.backoff_ms)],
    ["first_byte_ms", ms(record.first_byte_ms)],
    ["first_token_ms", ms(record.first_token_ms)],
    ["latency_ms", ms(record.latency_ms)],
    ["bytes", String(record.bytes)],
  ];
}

function factsOfCall(record: CallRecord): Fact[] {
  return [
    ["status", record.status],
    ["attempts", String(record.attempts)],
    ["error_class", record.error_class],
    ["reason", record.reason],
    ["retry_at", record.retry_at],
    ["backoff_ms", ms(record.backoff_ms)],
    ["latency_ms", ms(record.latency_ms)],
  ];
}

/** The record of one attempt. */
export function attemptCard(record: AttemptRecord): HTMLElement {
  return h(
    "div",
    { class: "card", "data-status": record.status },
    h("p", { class: "decision" }, h("span", {}, "Decision: "), decision(record)),
    list(factsOf(record)),
    whole(record, `Whole record of attempt ${record.attempt_no}`),
  );
}

/** The record of the call. */
export function callCard(record: CallRecord): HTMLElement {
  return h(
    "div",
    { class: "card", "data-status": record.status },
    list(factsOfCall(record)),
    whole(record, "Whole record of the call"),
  );
}

function list(facts: readonly Fact[]): HTMLElement {
  const known = facts.filter(([, value]) => value !== null);
  return h(
    "dl",
    {},
    ...known.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, ...breakable(value ?? "")))),
  );
}

/** A long word may break behind its dots and underscores, and copies as it is. */
function breakable(word: string): (Node | string)[] {
  return word.split(/(?<=[._])/).flatMap((part) => [part, h("wbr")]);
}

function whole(record: object, title: string): HTMLElement {
  return h(
    "details",
    {},
    h("summary", {}, title),
    h("pre", { tabindex: "0" }, h("code", {}, JSON.stringify(record, null, 2))),
  );
}
