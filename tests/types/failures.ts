// Errors and records narrow to what they hold.

import {
  type AttemptRecord,
  type CallRecord,
  type ErrorClass,
  KeelConfigError,
  KeelError,
  type LedgerRecord,
  type LedgerSink,
  type NoticeRecord,
} from "evenkeel";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>) => {};

export function told(error: unknown): string {
  if (error instanceof KeelError) {
    same<typeof error.class, ErrorClass>(true);
    same<typeof error.retryAfterMs, number | null>(true);
    same<typeof error.retryAt, Date | null>(true);
    same<typeof error.attempts, readonly AttemptRecord[]>(true);
    same<typeof error.name, "KeelError">(true);
    // @ts-expect-error a verdict is not written to
    error.class = "unknown";
    return `${error.class}: ${error.reason}, ${error.logicalRequestId}`;
  }
  if (error instanceof KeelConfigError) return `${error.path}: ${error.got}, ${error.expected}`;
  return String(error);
}

export function line(record: LedgerRecord): string {
  // @ts-expect-error only attempts and calls have it
  void record.logical_request_id;
  switch (record.type) {
    case "attempt":
      same<typeof record, AttemptRecord>(true);
      same<typeof record.http_status, number | null>(true);
      same<typeof record.decision, "retry" | "fallback" | "return" | "fail">(true);
      return record.attempt_id;
    case "call":
      same<typeof record, CallRecord>(true);
      same<typeof record.attempts, number>(true);
      return record.logical_request_id;
    case "notice":
      same<typeof record, NoticeRecord>(true);
      return `${record.kind} ${record.subject}`;
    default: {
      // Nothing is left: a new kind of record shows up here.
      const none: never = record;
      return none;
    }
  }
}

export const sinks: LedgerSink[] = [line as (record: LedgerRecord) => void, async () => {}, { write() {} }];

// Every class is handled, or this no longer compiles.
export const advice: Record<ErrorClass, boolean> = {
  bad_request: false,
  auth_error: false,
  permission_error: false,
  not_found: false,
  request_too_large: false,
  content_filtered: false,
  rate_limited: true,
  quota_exhausted: false,
  overloaded: true,
  server_error: true,
  timeout: true,
  connection_error: true,
  stream_interrupted: true,
  cancelled: false,
  unknown: false,
};
