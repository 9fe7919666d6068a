/** What a trouble is made of. The troubles themselves are data, in `troubles.ts`. */
import type { KeelOptions } from "evenkeel";
import type { Script } from "evenkeel/testing";

/** Where a trouble comes from; the picker shows one group for each. */
export type Group = "Answers" | "Connections" | "Streams";

/** What goes wrong, and under which settings. */
export interface Trouble {
  /** Short and stable: it is the page's `#fragment`. */
  readonly id: string;
  readonly group: Group;
  /** A few words, for the picker. */
  readonly title: string;
  /** One or two sentences: what happens, and what to look for. */
  readonly about: string;
  /** What the upstream does, a line a request. */
  readonly upstream: readonly string[];
  readonly api: "openai" | "anthropic";
  readonly stream: boolean;
  /** Made anew for every play. */
  script(): Script;
  /** Beyond the defaults; shown on the page as they are. */
  readonly options?: Pick<KeelOptions, "timeouts" | "retry">;
  /** Time from the call until its caller must have an answer. */
  readonly deadlineMs?: number;
  /** How much time the axis shows at first, in milliseconds; it grows if a play takes longer. */
  readonly spanMs: number;
}
