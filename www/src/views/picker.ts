/** The list of troubles: radio buttons in groups, so that arrow keys and screen readers know what to do. */
import type { Trouble } from "../scenario/trouble.js";
import { h } from "./dom.js";

/** Fills `form`; gives a function that marks a trouble as chosen. */
export function picker(
  form: HTMLElement,
  troubles: readonly Trouble[],
  onChoose: (trouble: Trouble) => void,
): (trouble: Trouble) => void {
  const inputs = new Map<string, HTMLInputElement>();
  for (const group of new Set(troubles.map((trouble) => trouble.group))) {
    const list = h("div", { class: "choices" });
    for (const trouble of troubles.filter((other) => other.group === group)) {
      const input = h("input", { type: "radio", name: "trouble", value: trouble.id });
      input.addEventListener("change", () => onChoose(trouble));
      inputs.set(trouble.id, input);
      list.append(h("label", { class: "choice" }, input, h("span", {}, trouble.title)));
    }
    form.append(h("fieldset", {}, h("legend", {}, group), list));
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  return ({ id }) => {
    const input = inputs.get(id);
    if (input === undefined) return;
    input.checked = true;
    // On a phone the groups scroll sideways.
    input.parentElement?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
}
