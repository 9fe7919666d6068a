/**
 * What is known of a call should its core die: a trap takes the records along that it had not given out yet. Each attempt
 * that was sent has its record all the same, and so has the call; both say `lost`.
 */

import { FIELD, RECORD } from "./packed.js";
import { unpack } from "./records.js";
import type { Outgoing } from "./request.js";
import { strip } from "./transport.js";
import type { CallContext, LedgerRecord } from "./types.js";

const BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** The rung of a call that has no ladder, and the quality of its answer. */
const PRIMARY = "primary";
/** What both records say of the failure. */
const LOST = ["unknown", "core_failed"];

/** A call under way. */
export class Flight {
  readonly #request: Outgoing;
  readonly #context: CallContext;
  #beganAt = 0;
  /** As `Call::flight` packs it: facts of the call, then those of its attempt. */
  #packed = "";
  /** Whether an attempt is under way that has no record yet. */
  #open = false;

  constructor(request: Outgoing, context: CallContext) {
    this.#request = request;
    this.#context = context;
  }

  /** The call begins; gives the time back. */
  began(now: number): number {
    this.#beganAt = now;
    return now;
  }

  /** An attempt is sent. */
  sent(packed: string): void {
    this.#packed = packed;
    this.#open = true;
  }

  /** The call waits, and has no attempt under way. */
  waits(packed: string): void {
    this.#packed = packed;
  }

  /** The record of the attempt has been given out. */
  landed(): void {
    this.#open = false;
  }

  /** Its id, or the one that it gets since the core had not given it one. */
  get logicalRequestId(): string {
    return this.#fields()[0] as string;
  }

  /** When the caller must have its answer, in milliseconds since the Unix epoch. */
  get deadline(): number {
    return Number(this.#fields()[10]);
  }

  /** The records that the core owes; `answered` is the answer of the attempt under way, if its head had come. */
  lost(now: number, answered: Response | undefined): LedgerRecord[] {
    const fields = this.#fields();
    const [id, tenant, operation, provider, protocol, model, hash, estimate, mostOutput, began] = fields;
    const [attempts, queue, backoff, revision, attemptId, no, bucket, timeout, sentAt, sentQueue] = fields.slice(11);
    const since = (start: string | undefined): number => Math.max(0, now - Number(start));
    const owed: unknown[][] = [];
    if (this.#open && attemptId !== undefined) {
      owed.push(
        ["attempt", id, attemptId, no, PRIMARY, tenant, operation, provider, protocol, model, bucket, hash, estimate],
        [mostOutput, timeout, sentAt, now, sentQueue, since(sentAt), "", "", "lost"],
        [answered ? "answered" : "maybe_sent", answered?.status, ...LOST, "", "fail", ...Array(11), 0, `0${RECORD}`],
      );
    }
    owed.push(
      ["call", id, tenant, operation, provider, protocol, model, hash, estimate, mostOutput, "lost", attempts, PRIMARY],
      [PRIMARY, 0, ...LOST, "", "", began, now, since(began), queue, backoff, "", "", `${revision}${RECORD}`],
    );
    const records: LedgerRecord[] = [];
    // What ends a record is a field's end too.
    unpack(
      owed
        .flat()
        .join(FIELD)
        .replaceAll(RECORD + FIELD, RECORD),
      (record) => records.push(record),
    );
    return records;
  }

  #fields(): readonly string[] {
    this.#packed ||= this.#unbegun();
    return this.#packed.split(FIELD);
  }

  /** The same for a call that the core died of before it had an id. */
  #unbegun(): string {
    const { tenant, operation, logicalRequestId } = this.#context;
    const id = strip(logicalRequestId) || ulid(this.#beganAt);
    const host = /^[a-z][a-z\d+.-]*:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(this.#request.url)?.[1] ?? "";
    const facts = [id, strip(tenant), strip(operation), strip(host), "unknown", "", "", "", ""];
    return [...facts, `${this.#beganAt}`, "", "0", "0", "0", "1"].join(FIELD);
  }
}

/** An id of the same kind as the core's. */
function ulid(now: number): string {
  const random = crypto.getRandomValues(new Uint8Array(26));
  // The time is in the first ten characters, five bits each.
  return Array.from(random, (byte, at) => BASE32.charAt((at < 10 ? now / 32 ** (9 - at) : byte) % 32)).join("");
}
