/** Play and pause, to the end, speed, seed. */
import type { Mode, Player } from "../engine/player.js";
import { h, setText } from "./dom.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4];
const LABELS: Readonly<Record<Mode, string>> = {
  idle: "Play",
  running: "Pause",
  paused: "Go on",
  done: "Play again",
  failed: "Play",
};

/**
 * Fills `bar`; gives a function that follows the player.
 *
 * @param still - Whether the visitor wants less motion: a play is then shown whole, at once.
 */
export function controls(bar: HTMLElement, player: Player, still: () => boolean): (mode: Mode) => void {
  const main = h("button", { type: "button", class: "play", id: "play" }, LABELS.idle);
  const end = h("button", { type: "button", id: "skip" }, "To the end");
  const speed = h(
    "select",
    { id: "speed" },
    ...SPEEDS.map((n) => h("option", { value: String(n), selected: n === 1 }, `${n}×`)),
  );
  const seed = h("input", {
    id: "seed",
    type: "number",
    min: "0",
    max: "999999",
    step: "1",
    value: String(player.seed),
  });

  main.addEventListener("click", () => {
    if (player.mode === "running") player.pause();
    else if (still()) void player.skip();
    else player.start();
  });
  end.addEventListener("click", () => void player.skip());
  speed.addEventListener("change", () => {
    player.speed = Number(speed.value);
  });
  seed.addEventListener("change", () => {
    const number = Math.trunc(Number(seed.value));
    player.seed = Number.isFinite(number) ? Math.min(999_999, Math.max(0, number)) : 0;
    seed.value = String(player.seed);
    player.choose(player.trouble);
  });

  bar.append(
    h("div", { class: "buttons" }, main, end),
    h("label", { class: "field" }, "Speed", speed),
    h("label", { class: "field" }, "Seed", seed),
    h("p", { class: "still" }, "Your system asks for less motion, so a play is shown whole, at once."),
  );
  return (mode) => {
    setText(main, LABELS[mode]);
    main.dataset["mode"] = mode;
  };
}
