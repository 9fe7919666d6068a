/** Draws a track, and keeps the elements from frame to frame. */
import { ticks } from "./axis.js";
import { h, place } from "./dom.js";
import { type Track, trackWords } from "./segments.js";

/** One line of the chart. */
export class TrackView {
  readonly element = h("div", { class: "track", role: "img" });
  readonly #boxes: HTMLElement[] = [];
  readonly #dots: HTMLElement[] = [];
  readonly #head = h("div", { class: "playhead", "aria-hidden": "true" });
  #mark: HTMLElement | null = null;
  #grid: HTMLElement | null = null;
  #span = 0;

  /** @param playhead - Where the clock stands; `null` where there is nothing to follow. */
  show(track: Track, span: number, playhead: number | null): void {
    if (span !== this.#span) {
      const grid = ticks(span, false);
      if (this.#grid === null) this.element.prepend(grid);
      else this.#grid.replaceWith(grid);
      this.#grid = grid;
      this.#span = span;
    }
    track.segments.forEach((segment, at) => {
      const box = this.#boxAt(at);
      box.dataset["kind"] = segment.kind;
      place(box, segment.from / span, segment.to / span);
    });
    track.ticks.forEach((at, index) => {
      place(this.#dotAt(index), at / span, at / span);
      this.#dotAt(index).style.width = "";
    });
    this.#showMark(track, span);
    this.element.setAttribute("aria-label", trackWords(track));
    if (playhead === null) this.#head.remove();
    else {
      if (!this.#head.isConnected) this.element.append(this.#head);
      this.#head.style.left = `${(Math.min(1, playhead / span) * 100).toFixed(3)}%`;
    }
  }

  #showMark({ mark }: Track, span: number): void {
    if (mark === null) return;
    if (this.#mark === null) {
      this.#mark = h("div", { class: "mark-end", "aria-hidden": "true" });
      this.element.append(this.#mark);
    }
    this.#mark.dataset["good"] = String(mark.good);
    this.#mark.style.left = `${(Math.min(1, mark.at / span) * 100).toFixed(3)}%`;
  }

  #boxAt(at: number): HTMLElement {
    let box = this.#boxes[at];
    if (box === undefined) {
      box = h("div", { class: "segment" });
      this.#boxes.push(box);
      this.element.append(box);
    }
    return box;
  }

  #dotAt(at: number): HTMLElement {
    let dot = this.#dots[at];
    if (dot === undefined) {
      dot = h("div", { class: "chunk" });
      this.#dots.push(dot);
      this.element.append(dot);
    }
    return dot;
  }
}
