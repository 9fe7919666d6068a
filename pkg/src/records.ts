/**
 * Turns the core's packed records into plain objects. The fields stand in the order of `src/ledger.rs`; a test compares
 * the two lists.
 */
import { FIELD, ITEM, RECORD } from "./packed.js";
import type { AttemptRecord, CallRecord, ErrorClass, LedgerRecord, NoticeRecord, Protocol, TooSlow } from "./types.js";

type Fields = readonly string[];

const text = (f: Fields, at: number): string | null => f[at] || null;
const number = (f: Fields, at: number): number | null => (f[at] ? Number(f[at]) : null);
const count = (f: Fields, at: number): number => Number(f[at]);
const time = (f: Fields, at: number): string => iso(Number(f[at]));

/** The last millisecond that a date can hold; a hostile wait hint lies beyond it. */
const LAST_DATE = 8.64e15;

/** A time that a date can hold. */
export function dateable(ms: number): number {
  return ms <= LAST_DATE ? Math.max(ms, -LAST_DATE) : LAST_DATE;
}

let secondOf = -1;
let second = "";

/** RFC 3339; the text of a second is kept, since the times of one call, and of the calls around it, share it. */
function iso(time: number): string {
  const ms = dateable(time);
  const whole = Math.floor(ms / 1_000);
  if (whole !== secondOf) {
    second = new Date(whole * 1_000).toISOString().slice(0, -4);
    secondOf = whole;
  }
  const rest = Math.floor(ms) - whole * 1_000;
  return `${second}${rest < 10 ? "00" : rest < 100 ? "0" : ""}${rest}Z`;
}

function tooSlow(packed: string, own: string): TooSlow {
  const f = packed.split(ITEM);
  return {
    bucket: f[0] || own,
    reason: "infeasible_before_deadline",
    estimate_ms: count(f, 1),
    remaining_ms: count(f, 2),
    first_token_ms: number(f, 3),
    tokens_per_second: number(f, 4),
  };
}

function attempt(f: Fields): AttemptRecord {
  const slow = f[41] ? tooSlow(f[41], f[10] as string) : null;
  const own = slow?.bucket === f[10];
  return {
    schema: 1,
    type: "attempt",
    logical_request_id: f[1] as string,
    attempt_id: f[2] as string,
    attempt_no: count(f, 3),
    rung: f[4] as string,
    user_or_tenant_id: text(f, 5),
    operation_type: text(f, 6),
    provider: f[7] as string,
    protocol: f[8] as Protocol,
    model: text(f, 9),
    bucket: f[10] as string,
    prompt_hash: text(f, 11),
    input_token_estimate: number(f, 12),
    max_output_tokens: number(f, 13),
    client_timeout_ms: count(f, 14),
    started_at: time(f, 15),
    finished_at: time(f, 16),
    queue_ms: count(f, 17),
    latency_ms: count(f, 18),
    first_byte_ms: number(f, 19),
    first_token_ms: number(f, 20),
    status: f[21] as AttemptRecord["status"],
    delivery: f[22] as AttemptRecord["delivery"],
    http_status: number(f, 23),
    error_class: text(f, 24) as ErrorClass | null,
    reason: text(f, 25),
    rule: text(f, 26),
    decision: f[27] as AttemptRecord["decision"],
    retry_after_ms: number(f, 28),
    backoff_ms: number(f, 29),
    provider_request_id: text(f, 30),
    served_model: text(f, 31),
    input_token_count: number(f, 32),
    output_token_count: number(f, 33),
    cached_token_count: number(f, 34),
    reasoning_token_count: number(f, 35),
    finish_reason: text(f, 36),
    terminal_marker: f[37] ? f[37] === "1" : null,
    longest_gap_ms: number(f, 38),
    bytes: count(f, 39),
    malformed_events: count(f, 40),
    passed_over: own ? null : slow,
    infeasible: own ? slow : null,
    concurrency_limit: number(f, 42),
  };
}

function call(f: Fields): CallRecord {
  return {
    schema: 1,
    type: "call",
    logical_request_id: f[1] as string,
    user_or_tenant_id: text(f, 2),
    operation_type: text(f, 3),
    provider: f[4] as string,
    protocol: f[5] as Protocol,
    model: text(f, 6),
    prompt_hash: text(f, 7),
    input_token_estimate: number(f, 8),
    max_output_tokens: number(f, 9),
    status: f[10] as CallRecord["status"],
    attempts: count(f, 11),
    rung: f[12] as string,
    quality: f[13] as string,
    fallback_used: f[14] === "1",
    error_class: text(f, 15) as ErrorClass | null,
    reason: text(f, 16),
    retry_at: f[17] ? time(f, 17) : null,
    final_result_pointer: text(f, 18),
    started_at: time(f, 19),
    finished_at: time(f, 20),
    latency_ms: count(f, 21),
    queue_ms: count(f, 22),
    backoff_ms: count(f, 23),
    input_token_count: number(f, 24),
    output_token_count: number(f, 25),
    revision: count(f, 26),
  };
}

function notice(f: Fields): NoticeRecord {
  return {
    schema: 1,
    type: "notice",
    kind: f[1] as string,
    at: time(f, 2),
    subject: f[3] as string,
    detail: JSON.parse(f[4] as string) as Record<string, unknown>,
  };
}

/** A notice that the wrapper itself has to give. */
export function makeNotice(kind: string, at: number, subject: string, detail: Record<string, unknown>): NoticeRecord {
  return { schema: 1, type: "notice", kind, at: iso(at), subject, detail };
}

/** Calls `each` with every record of a packed string, in order. */
export function unpack(packed: string, each: (record: LedgerRecord) => void): void {
  let from = 0;
  for (let to = packed.indexOf(RECORD); to >= 0; to = packed.indexOf(RECORD, from)) {
    const fields = packed.slice(from, to).split(FIELD);
    from = to + 1;
    if (fields[0] === "attempt") each(attempt(fields));
    else if (fields[0] === "call") each(call(fields));
    else if (fields[0] === "notice") each(notice(fields));
  }
}
