/**
 * One play of one trouble: a fresh keel (the real core, in WebAssembly), the scripted upstream of `evenkeel/testing`,
 * a caller, and a clock that stands still until it is told to move. Nothing here touches the page.
 */
import { createKeel, type LedgerRecord } from "evenkeel";
import { fakeClock, scriptedUpstream } from "evenkeel/testing";
import { requestOf } from "../scenario/request.js";
import type { Trouble } from "../scenario/trouble.js";
import { read } from "./caller.js";
import { observed } from "./observe.js";
import { newState, type PlayState } from "./state.js";

/** A play under way. */
export interface Play {
  readonly state: PlayState;
  /** Moves the clock on, and lets what falls due happen. Milliseconds of the play, whole. */
  advance(ms: number): Promise<void>;
  /** Jumps from timer to timer until the caller has its answer. */
  finish(): Promise<void>;
}

/** Begins a play; the call is made at once, at time 0. The same trouble and seed give the same play. */
export function play(trouble: Trouble, seed: number): Play {
  const clock = fakeClock();
  const start = clock.now();
  const now = (): number => clock.now() - start;
  const state = newState();
  const upstream = scriptedUpstream(trouble.script(), { clock });

  const note = (record: LedgerRecord): void => {
    if (record.type === "attempt") {
      const attempt = state.attempts[record.attempt_no - 1];
      if (attempt === undefined) return;
      attempt.record = record;
      attempt.endedAt ??= now();
    } else if (record.type === "call") {
      state.call = record;
    } else {
      state.notices.push({ at: now(), record });
    }
  };

  const keel = createKeel({
    ...trouble.options,
    fetch: observed(upstream.fetch, state.attempts, now),
    clock,
    seed,
    hashKey: "www",
    ledger: note,
  });
  const { url, init } = requestOf(trouble);
  const context = trouble.deadlineMs === undefined ? {} : { deadlineMs: trouble.deadlineMs };
  const over = read(keel.with(context).fetch(url, init), state.caller, now).then(() => {
    state.now = Math.max(state.caller.endedAt ?? 0, ...state.attempts.map(({ endedAt }) => endedAt ?? 0));
    state.done = true;
    keel.close();
  });

  return {
    state,
    async advance(ms) {
      await clock.advance(ms);
      if (!state.done) state.now = now();
    },
    finish: () => clock.run(() => over),
  };
}
