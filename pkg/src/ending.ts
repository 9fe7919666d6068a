/** How a call ended without a good answer, as the core tells it. */
import { FIELD, RECORD } from "./packed.js";
import { dateable, unpack } from "./records.js";
import type { AttemptRecord, ErrorClass, FailureFacts, Protocol } from "./types.js";

/** The facts of the error, and what an answer made of it needs. */
export interface Ending extends FailureFacts {
  readonly attemptCount: number;
  readonly protocol: Protocol;
}

/** Reads what the core packs: its own fields, then the records of the failed attempts. */
export function unpackEnding(packed: string, cause: unknown): Ending {
  const end = packed.indexOf(RECORD);
  const fields = packed.slice(0, end).split(FIELD);
  const attempts: AttemptRecord[] = [];
  unpack(packed.slice(end + 1), (record) => {
    if (record.type === "attempt") attempts.push(record);
  });
  return {
    class: fields[0] as ErrorClass,
    reason: fields[1] ?? "",
    retryable: fields[2] === "1",
    retryAfterMs: fields[3] ? Number(fields[3]) : null,
    retryAt: fields[4] ? new Date(dateable(Number(fields[4]))) : null,
    attemptCount: Number(fields[5]),
    logicalRequestId: fields[6] ?? "",
    provider: fields[7] ?? "",
    protocol: fields[8] as Protocol,
    model: fields[9] ?? "",
    attempts,
    cause,
  };
}
