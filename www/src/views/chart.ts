/** The chart: the caller's line, and one row an attempt with its record beside it. */
import type { Moment } from "../engine/player.js";
import type { AttemptState, PlayState } from "../engine/state.js";
import { spanFor, ticks } from "./axis.js";
import { h, setText } from "./dom.js";
import { attemptCard, callCard } from "./record.js";
import { attemptTrack, callerTrack } from "./segments.js";
import { TrackView } from "./track.js";
import { verdict } from "./words.js";

const LEGEND = [
  ["head", "waiting for the head"],
  ["body", "body"],
  ["stream", "stream"],
  ["backoff", "backoff"],
] as const;

/** Makes the chart in `element`; gives a function that shows a moment. */
export function chart(element: HTMLElement): (moment: Moment) => void {
  const axis = h("div", { class: "axis" });
  const legend = h("ul", { class: "legend", "aria-label": "Legend" });
  for (const [kind, text] of LEGEND) {
    legend.append(h("li", {}, h("span", { class: "segment", "data-kind": kind, "aria-hidden": "true" }), text));
  }
  const list = h("ol", { class: "rows" });
  element.append(h("div", { class: "row head" }, axis, legend), list);

  let shown: PlayState | null | undefined;
  let span = 0;
  let caller = new CallerRow();
  let rows: AttemptRow[] = [];

  return ({ state, trouble, mode }) => {
    if (state !== shown || (state === null && span !== trouble.spanMs)) {
      shown = state;
      caller = new CallerRow();
      rows = [];
      list.replaceChildren(caller.element);
      span = 0;
    }
    const wanted = spanFor(trouble.spanMs, state?.now ?? 0);
    if (wanted !== span) {
      span = wanted;
      axis.replaceChildren(ticks(span, true));
    }
    const playhead = state === null || mode === "done" ? null : state.now;
    caller.show(state, span, playhead);
    for (const [at, attempt] of (state?.attempts ?? []).entries()) {
      let row = rows[at];
      if (row === undefined) {
        row = new AttemptRow(attempt.no);
        rows.push(row);
        list.append(row.element);
      }
      row.show(attempt, state?.attempts[at + 1], state?.now ?? 0, span, playhead);
    }
  };
}

class AttemptRow {
  readonly element: HTMLElement;
  readonly #track = new TrackView();
  readonly #verdict = h("span", { class: "verdict" });
  readonly #record = h("div", { class: "record" }, h("p", { class: "none" }, "No record yet."));
  #recorded = false;

  constructor(no: number) {
    const title = h("h3", {}, `Attempt ${no}`, this.#verdict);
    this.element = h(
      "li",
      { class: "row attempt", "data-attempt": String(no) },
      h("div", { class: "lane" }, title, this.#track.element),
      this.#record,
    );
  }

  show(
    attempt: AttemptState,
    next: AttemptState | undefined,
    now: number,
    span: number,
    playhead: number | null,
  ): void {
    this.#track.show(attemptTrack(attempt, next, now), span, playhead);
    setText(this.#verdict, verdict(attempt));
    if (attempt.record === null || this.#recorded) return;
    this.#recorded = true;
    this.element.dataset["status"] = attempt.record.status;
    this.#record.replaceChildren(attemptCard(attempt.record));
  }
}

const CALLER: Readonly<Record<PlayState["caller"]["outcome"], string>> = {
  waiting: "waits",
  reading: "reads",
  answer: "has the answer",
  error: "has an error",
  broken: "has part of an answer, and an error",
};

class CallerRow {
  readonly element: HTMLElement;
  readonly #track = new TrackView();
  readonly #verdict = h("span", { class: "verdict" });
  readonly #text = h("p", { class: "answer" });
  readonly #message = h("p", { class: "message" });
  readonly #record = h("div", { class: "record" }, h("p", { class: "none" }, "No record yet."));
  #recorded = false;

  constructor() {
    this.element = h(
      "li",
      { class: "row caller" },
      h(
        "div",
        { class: "lane" },
        h("h3", {}, "The caller", this.#verdict),
        this.#track.element,
        this.#text,
        this.#message,
      ),
      this.#record,
    );
  }

  show(state: PlayState | null, span: number, playhead: number | null): void {
    if (state === null) {
      this.#track.show({ segments: [], ticks: [], mark: null }, span, null);
      this.#track.element.setAttribute("aria-label", "nothing yet");
      return;
    }
    const { caller, call } = state;
    this.#track.show(callerTrack(state), span, playhead);
    setText(this.#verdict, CALLER[caller.outcome]);
    setText(this.#text, caller.text);
    setText(this.#message, caller.message ?? "");
    this.element.dataset["outcome"] = caller.outcome;
    if (call === null || this.#recorded) return;
    this.#recorded = true;
    this.#record.replaceChildren(callCard(call));
  }
}
