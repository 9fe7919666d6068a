/** The time axis: how much of it is shown, and where its ticks are. Pure but for `ticks`. */
import { h, place } from "./dom.js";
import { duration } from "./words.js";

const STEPS = [100, 200, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];
/** Ticks at most; five labels have room on a phone. */
const MOST = 5;

/** Milliseconds between two ticks. */
export function tickStep(span: number): number {
  return STEPS.find((step) => span / step <= MOST) ?? span / MOST;
}

/** The span to show when the play has come to `now`: the one it began with, or as many ticks more as it needs. */
export function spanFor(first: number, now: number): number {
  if (now <= first) return first;
  const step = tickStep(now);
  return Math.ceil(now / step) * step;
}

/** A row of ticks, with labels or as the lines behind a track. */
export function ticks(span: number, labelled: boolean): HTMLElement {
  const row = h("div", { class: labelled ? "ticks labelled" : "ticks", "aria-hidden": "true" });
  for (let at = 0; at <= span; at += tickStep(span)) {
    const tick = h("span", {}, labelled ? duration(at) : "");
    place(tick, at / span, at / span);
    tick.style.width = "";
    if (at === span) tick.classList.add("last");
    row.append(tick);
  }
  return row;
}
