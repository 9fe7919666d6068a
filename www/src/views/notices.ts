/** The notices of a play: what changed for later calls too. */
import type { PlayState } from "../engine/state.js";
import { h } from "./dom.js";
import { duration, spaced } from "./words.js";

/** Gives a function that shows what a state has. */
export function notices(element: HTMLElement): (state: PlayState | null) => void {
  let shown = -1;
  return (state) => {
    const all = state?.notices ?? [];
    if (all.length === shown) return;
    shown = all.length;
    if (all.length === 0) {
      element.replaceChildren();
      return;
    }
    element.replaceChildren(
      h("h3", {}, "Notices in the ledger"),
      h(
        "ul",
        {},
        ...all.map(({ at, record }) =>
          h(
            "li",
            {},
            h("span", { class: "at" }, duration(at)),
            h("b", {}, spaced(record.kind)),
            h("code", {}, record.subject),
          ),
        ),
      ),
    );
  };
}
