/** Moves a play at a pace that a person can follow: play, pause, skip. One at a time. */
import type { Trouble } from "../scenario/trouble.js";
import { type Play, play } from "./play.js";
import type { PlayState } from "./state.js";

export type Mode = "idle" | "running" | "paused" | "done" | "failed";

/** What the views are told, at most once a frame. */
export interface Moment {
  readonly mode: Mode;
  readonly trouble: Trouble;
  readonly state: PlayState | null;
  /** Why the page itself can't play, such as a browser without WebAssembly. */
  readonly failure: string | null;
}

/** Longest step of a frame in real milliseconds: a tab that comes back doesn't jump. */
const LONGEST_FRAME = 120;

export class Player {
  /** Milliseconds of the play for each real one. */
  speed = 1;
  seed = 2;
  readonly #show: (moment: Moment) => void;
  #trouble: Trouble;
  #mode: Mode = "idle";
  #play: Play | null = null;
  #failure: string | null = null;
  /** Whichever loop isn't of this turn ends. */
  #turn = 0;

  constructor(trouble: Trouble, show: (moment: Moment) => void) {
    this.#trouble = trouble;
    this.#show = show;
  }

  get mode(): Mode {
    return this.#mode;
  }

  get trouble(): Trouble {
    return this.#trouble;
  }

  /** Chooses another trouble; whatever was under way is dropped. */
  choose(trouble: Trouble): void {
    this.#turn += 1;
    this.#trouble = trouble;
    this.#play = null;
    this.#failure = null;
    this.#set("idle");
  }

  /** Starts, or goes on after a pause. */
  start(): void {
    if (this.#mode === "running") return;
    if (this.#mode !== "paused" && !this.#begin()) return;
    this.#set("running");
    this.#turn += 1;
    void this.#run(this.#turn);
  }

  pause(): void {
    if (this.#mode !== "running") return;
    this.#turn += 1;
    this.#set("paused");
  }

  /** To the end, without waiting. */
  async skip(): Promise<void> {
    if (this.#mode !== "running" && this.#mode !== "paused" && !this.#begin()) return;
    this.#turn += 1;
    const turn = this.#turn;
    const current = this.#play;
    await current?.finish();
    if (turn === this.#turn) this.#end();
  }

  #begin(): boolean {
    try {
      this.#play = play(this.#trouble, this.seed);
      return true;
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  /** A call that ends without any record was never begun: there is no core, and its error says why. */
  #end(): void {
    const state = this.#play?.state;
    if (state?.call === null && state.attempts.length === 0) this.#fail(state.caller.message ?? "no call was made");
    else this.#set("done");
  }

  #fail(why: string): void {
    this.#failure = why;
    this.#play = null;
    this.#set("failed");
  }

  async #run(turn: number): Promise<void> {
    const current = this.#play;
    if (current === null) return;
    let last = performance.now();
    let owed = 0;
    while (turn === this.#turn) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      if (turn !== this.#turn) return;
      const real = performance.now();
      owed += Math.min(LONGEST_FRAME, real - last) * this.speed;
      last = real;
      const step = Math.floor(owed);
      owed -= step;
      await current.advance(step);
      if (turn !== this.#turn) return;
      if (current.state.done) {
        this.#end();
        return;
      }
      this.#set("running");
    }
  }

  #set(mode: Mode): void {
    this.#mode = mode;
    this.#show({ mode, trouble: this.#trouble, state: this.#play?.state ?? null, failure: this.#failure });
  }
}
