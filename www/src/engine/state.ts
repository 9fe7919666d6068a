/** What is known of a play at one moment. The engine writes it, the views read it; all times count from the call's start. */
import type { AttemptRecord, CallRecord, NoticeRecord } from "evenkeel";

/** One request as the network saw it, and the ledger's record of it once there is one. */
export interface AttemptState {
  /** From 1. */
  readonly no: number;
  readonly sentAt: number;
  headAt: number | null;
  httpStatus: number | null;
  /** Whether the head announces a stream. */
  streamed: boolean;
  /** When parts of the body came. */
  readonly chunksAt: number[];
  /** When the last of it was heard, in whatever way it ended. */
  endedAt: number | null;
  record: AttemptRecord | null;
}

/** What the caller has had so far. */
export interface CallerState {
  headAt: number | null;
  httpStatus: number | null;
  endedAt: number | null;
  /** The answer's text, as far as it has come. */
  text: string;
  outcome: "waiting" | "reading" | "answer" | "error" | "broken";
  /** What the caller is told when it went wrong. */
  message: string | null;
}

/** One play. */
export interface PlayState {
  /** How far the clock has come. */
  now: number;
  readonly attempts: AttemptState[];
  readonly caller: CallerState;
  call: CallRecord | null;
  readonly notices: { readonly at: number; readonly record: NoticeRecord }[];
  done: boolean;
}

export function newState(): PlayState {
  return {
    now: 0,
    attempts: [],
    caller: { headAt: null, httpStatus: null, endedAt: null, text: "", outcome: "waiting", message: null },
    call: null,
    notices: [],
    done: false,
  };
}
