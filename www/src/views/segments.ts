/** What happened when, as segments of a track. Pure: a state in, boxes out. */
import type { AttemptState, PlayState } from "../engine/state.js";

export type Kind = "head" | "body" | "stream" | "backoff" | "waiting" | "reading";

/** One box on the time axis, in milliseconds. */
export interface Segment {
  readonly kind: Kind;
  readonly from: number;
  readonly to: number;
}

/** The mark where a track ends. */
export interface Mark {
  readonly at: number;
  readonly good: boolean;
}

/** A line of the chart. */
export interface Track {
  readonly segments: readonly Segment[];
  /** When parts of a body came. */
  readonly ticks: readonly number[];
  readonly mark: Mark | null;
}

/** Wait, head, body or stream, and the backoff that follows, as far as the clock has come. */
export function attemptTrack(attempt: AttemptState, next: AttemptState | undefined, now: number): Track {
  const { sentAt, headAt, endedAt, record, streamed, chunksAt } = attempt;
  const end = endedAt ?? now;
  const segments: Segment[] = [{ kind: "head", from: sentAt, to: headAt ?? end }];
  if (headAt !== null && end > headAt) segments.push({ kind: streamed ? "stream" : "body", from: headAt, to: end });
  if (record?.decision === "retry" && endedAt !== null) {
    const planned = endedAt + (record.backoff_ms ?? 0);
    segments.push({ kind: "backoff", from: endedAt, to: next?.sentAt ?? Math.min(now, planned) });
  }
  const mark = record === null || endedAt === null ? null : { at: endedAt, good: record.status === "succeeded" };
  return { segments, ticks: chunksAt, mark };
}

/** What the caller sees of it all: nothing, then an answer. */
export function callerTrack({ caller, now }: PlayState): Track {
  const end = caller.endedAt ?? now;
  const segments: Segment[] = [{ kind: "waiting", from: 0, to: caller.headAt ?? end }];
  if (caller.headAt !== null && end > caller.headAt) segments.push({ kind: "reading", from: caller.headAt, to: end });
  const mark = caller.endedAt === null ? null : { at: caller.endedAt, good: caller.outcome === "answer" };
  return { segments, ticks: [], mark };
}

/** The same for those who don't see the boxes. */
export function trackWords({ segments }: Track): string {
  const words: Readonly<Record<Kind, string>> = {
    head: "waited for the head",
    body: "read the body",
    stream: "read the stream",
    backoff: "backed off",
    waiting: "waited",
    reading: "read",
  };
  return segments
    .map(({ kind, from, to }) => `${words[kind]} from ${Math.round(from)} to ${Math.round(to)} ms`)
    .join(", ");
}
