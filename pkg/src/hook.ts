/** Asks the user's `classify` hook what it makes of a failure. It must not be able to lose a call, whatever it does. */

import type { Core } from "./core.js";
import { FIELD } from "./packed.js";
import { strip } from "./transport.js";
import type { Classification, ErrorClass, KeelOptions, Scope } from "./types.js";

/** What the hook is shown of a failed attempt besides its verdict. */
export interface Failure {
  readonly response: Response | undefined;
  /** The beginning of what came. */
  readonly body: string;
  readonly error: unknown;
}

/** Has the user judge, and tells the core; gives the core's answer. */
export function judge(core: Core, id: number, now: () => number, options: KeelOptions, failure: Failure): number {
  const [errorClass, retryable, scope, hint, reason, rule, provider, model] = core.verdict(id).split(FIELD);
  const builtIn: Classification = {
    class: errorClass as ErrorClass,
    retryable: retryable === "1",
    scope: scope as Scope,
    waitHintMs: hint ? Number(hint) : null,
    reason: reason ?? "",
    rule: rule ?? "",
  };
  const verdict = ask(options, failure, builtIn, provider ?? "", model || null);
  if (verdict === undefined) return core.judged(id, now(), "", false, -1);
  const packed = `${verdict.class}${FIELD}${verdict.scope}${FIELD}${strip(verdict.reason)}`;
  return core.judged(id, now(), packed, verdict.retryable === true, verdict.waitHintMs ?? -1);
}

/** The user's verdict; `undefined` for none, and for one that is none. */
function ask(
  options: KeelOptions,
  { response, body, error }: Failure,
  builtIn: Classification,
  provider: string,
  model: string | null,
): Classification | undefined {
  try {
    const status = response?.status ?? null;
    const headers = new Headers(response?.headers);
    const verdict = options.classify?.({ provider, model, status, headers, body, error }, { ...builtIn });
    if (verdict === undefined || verdict === null) return undefined;
    const { class: errorClass, retryable, scope, waitHintMs, reason } = verdict;
    const hint = typeof waitHintMs === "number" && waitHintMs >= 0 ? waitHintMs : null;
    return {
      class: `${errorClass}` as ErrorClass,
      retryable: retryable === true,
      scope: `${scope}` as Scope,
      waitHintMs: hint,
      reason: `${reason ?? builtIn.reason}`,
      rule: builtIn.rule,
    };
  } catch {
    return undefined;
  }
}
