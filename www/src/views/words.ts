/** Numbers and states in words. Pure. */
import type { AttemptRecord } from "evenkeel";
import type { Moment } from "../engine/player.js";
import type { AttemptState, PlayState } from "../engine/state.js";

/** A duration as a person says it. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${trim((ms / 1000).toFixed(2))} s`;
  return `${trim((ms / 60_000).toFixed(1))} min`;
}

function trim(number: string): string {
  return number.replace(/\.?0+$/, "");
}

/** What is known of an attempt's outcome, in a few words. */
export function verdict({ record, httpStatus, headAt, streamed }: AttemptState): string {
  if (record === null) {
    if (headAt === null) return "waiting for a head";
    return `HTTP ${httpStatus}, reading the ${streamed ? "stream" : "body"}`;
  }
  const http = record.http_status === null ? "no answer" : `HTTP ${record.http_status}`;
  return record.status === "succeeded"
    ? `${http}, succeeded`
    : `${http}, ${spaced(record.error_class ?? record.status)}`;
}

/** A record's word without its underscores. */
export function spaced(word: string): string {
  return word.replaceAll("_", " ");
}

/** What was decided after an attempt. */
export function decision(record: AttemptRecord): string {
  if (record.status === "succeeded") return "give the answer to the caller";
  if (record.decision === "retry") {
    const asked = record.retry_after_ms === null ? "" : `; ${duration(record.retry_after_ms)} were asked for`;
    return `try again in ${duration(record.backoff_ms ?? 0)}${asked}`;
  }
  if (record.decision === "return") return `give the provider's answer back (${spaced(record.reason ?? "")})`;
  return `end the call (${spaced(record.reason ?? "")})`;
}

/** Where a play stands, as one sentence or two: what the live region says. It changes when something has happened only. */
export function narration({ mode, state, failure }: Moment): string {
  if (mode === "failed") return `This page can't play: ${failure}`;
  if (state === null) return "Ready. Nothing has been sent.";
  const pause = mode === "paused" ? "Paused. " : "";
  if (state.done) return outcome(state);
  const last = state.attempts.at(-1);
  if (last === undefined) return `${pause}The call has begun.`;
  if (last.record === null) return `${pause}Attempt ${last.no}: ${verdict(last)}.`;
  return `${pause}Attempt ${last.no}: ${verdict(last)}. Decision: ${decision(last.record)}.`;
}

function outcome({ attempts, caller, now }: PlayState): string {
  const effort = `after ${attempts.length} ${attempts.length === 1 ? "attempt" : "attempts"}, in ${duration(now)}`;
  if (caller.outcome === "answer") return `The caller has its answer, ${effort}.`;
  if (caller.outcome === "broken") return `The caller has part of the answer and an error, ${effort}.`;
  return `The caller has an error, ${effort}.`;
}
