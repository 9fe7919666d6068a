/** Puts the parts together: scenario, engine, views. */
import { Player } from "./engine/player.js";
import type { Trouble } from "./scenario/trouble.js";
import { FIRST, TROUBLES, troubleOf } from "./scenario/troubles.js";
import { chart } from "./views/chart.js";
import { controls } from "./views/controls.js";
import { byId, setText } from "./views/dom.js";
import { intro } from "./views/intro.js";
import { notices } from "./views/notices.js";
import { picker } from "./views/picker.js";
import { narration } from "./views/words.js";

const fromAddress = (): Trouble => (troubleOf(location.hash.slice(1)) ?? troubleOf(FIRST)) as Trouble;
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

const showChart = chart(byId("chart"));
const showNotices = notices(byId("ledger"));
const now = byId("now");

const player = new Player(fromAddress(), (moment) => {
  showControls(moment.mode);
  showChart(moment);
  showNotices(moment.state);
  setText(now, narration(moment));
  document.documentElement.dataset["mode"] = moment.mode;
});
const showControls = controls(byId("controls"), player, () => stillness.matches);

const choose = (trouble: Trouble): void => {
  mark(trouble);
  intro(byId("intro"), trouble);
  player.choose(trouble);
};
const mark = picker(byId("picker"), TROUBLES, (trouble) => {
  history.replaceState(null, "", `#${trouble.id}`);
  choose(trouble);
});
addEventListener("hashchange", () => {
  if (troubleOf(location.hash.slice(1)) !== undefined) choose(fromAddress());
});
choose(fromAddress());
