/** The time of one business request, split over its stages: absolute, so that what one stage leaves over the next one has. */
import type { BudgetParts, BudgetStage, Clock } from "./types.js";

/**
 * Made by {@link Keel.budget} when a business request begins. With 10 s in all, of which 2 s are for the input and 1 s for
 * postprocessing, the model call may run until 9 s: it has 8.5 s if the input took half a second, and never takes what
 * postprocessing needs.
 */
export class Budget {
  readonly #parts: BudgetParts;
  readonly #clock: Clock;
  /** When it began, in milliseconds since the Unix epoch. */
  readonly startedAt: number;

  /** Made by evenkeel only. */
  constructor(parts: BudgetParts, clock: Clock) {
    this.#parts = parts;
    this.#clock = clock;
    this.startedAt = clock.now();
  }

  /** When a stage must be done, in milliseconds since the Unix epoch. */
  deadlineOf(stage: BudgetStage): number {
    const { totalMs, inputBuildMs, modelCallMs, postprocessMs = 0 } = this.#parts;
    const end = this.startedAt + totalMs;
    const before = end - postprocessMs;
    if (stage === "postprocess") return end;
    if (stage === "modelCall") return before;
    if (inputBuildMs !== undefined) return Math.min(this.startedAt + inputBuildMs, before);
    return modelCallMs === undefined ? before : Math.max(before - modelCallMs, this.startedAt);
  }

  /** What a stage has left if it starts or goes on now; 0 if nothing. */
  leftMs(stage: BudgetStage): number {
    const now = Math.max(this.#clock.now(), this.startedAt);
    return Math.max(0, this.deadlineOf(stage) - now);
  }
}
