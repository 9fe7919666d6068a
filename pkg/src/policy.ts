/**
 * What a policy means: the worst case of one call, its waits, and what is wrong with it. Arithmetic on the limits in
 * force; nothing is measured or sent.
 */
import { POLICY_FIELDS } from "./config.js";
import type { KeelOptions, PolicyExplanation, PolicyFinding, PolicyWait } from "./types.js";

type Limits = Readonly<Record<(typeof POLICY_FIELDS)[number], number>>;

const JITTER = ["full", "equal", "decorrelated", "none"];

/** Names the core's limits; see `limits` in `src/host/mod.rs`. */
function named(limits: Float64Array): Limits {
  return Object.fromEntries(POLICY_FIELDS.map((name, at) => [name, limits[at] ?? Number.NaN])) as Limits;
}

/** The wait before a retry by formula: its shortest and its longest. */
function wait(limits: Limits, retry: number): PolicyWait {
  // Decorrelated waits grow with the wait before and not with the number of the retry.
  const longer = JITTER[limits["retry.jitter"]] === "decorrelated" ? retry : retry + 1;
  return { retry, ...range(limits, retry), overloadedMaxMs: range(limits, longer).maxMs };
}

function range(limits: Limits, retry: number): { minMs: number; maxMs: number } {
  const base = limits["retry.baseMs"];
  const cap = Math.max(limits["retry.capMs"], base);
  const whole = Math.min(base * 2 ** (retry - 1), cap);
  switch (JITTER[limits["retry.jitter"]]) {
    case "none":
      return { minMs: whole, maxMs: whole };
    case "equal":
      return { minMs: Math.ceil(whole / 2), maxMs: whole };
    case "decorrelated":
      return { minMs: base, maxMs: Math.min(base * 3 ** retry, cap) };
    default:
      return { minMs: 0, maxMs: whole };
  }
}

function findings(limits: Limits, options: KeelOptions): PolicyFinding[] {
  const found: PolicyFinding[] = [];
  const say = (severity: PolicyFinding["severity"], path: string, message: string): void => {
    found.push({ severity, path, message });
  };
  const total = limits["timeouts.totalMs"];
  const attempts = limits["retry.maxAttempts"];
  const attempt = limits["timeouts.attemptMs"];
  for (const name of ["firstByteMs", "firstTokenMs", "chunkGapMs", "contentGapMs"] as const) {
    const own = options.timeouts?.[name];
    if (own !== undefined && own >= total) {
      say(
        "problem",
        `timeouts.${name}`,
        `${own} ms is not below timeouts.totalMs (${total} ms): it never fires before the call ends.`,
      );
    } else if (own !== undefined && own >= attempt) {
      say(
        "problem",
        `timeouts.${name}`,
        `${own} ms is not below timeouts.attemptMs (${attempt} ms): it never fires before the attempt ends.`,
      );
    }
  }
  if (limits["retry.capMs"] >= total) {
    say(
      "problem",
      "retry.capMs",
      `a wait of ${limits["retry.capMs"]} ms does not fit into timeouts.totalMs (${total} ms).`,
    );
  }
  if (options.retry?.maxWaitMs !== undefined && options.retry.maxWaitMs >= total) {
    say(
      "problem",
      "retry.maxWaitMs",
      `a hint of ${options.retry.maxWaitMs} ms can't be waited out within timeouts.totalMs (${total} ms); the call ends at once instead.`,
    );
  }
  if (limits["timeouts.minAttemptMs"] >= total) {
    say("problem", "timeouts.minAttemptMs", `it leaves no time for any retry within timeouts.totalMs (${total} ms).`);
  }
  if (attempts > 1 && attempt >= total) {
    say(
      "note",
      "timeouts.attemptMs",
      "one attempt may use the whole total: a request that hangs is not retried. Set attemptMs below totalMs to leave room for a retry.",
    );
  }
  if (attempts > 1 && JITTER[limits["retry.jitter"]] === "none") {
    say("problem", "retry.jitter", "without jitter all clients that failed together come back together.");
  }
  if (attempts > 1 && options.retry?.budget === false) {
    say("problem", "retry.budget", `without a budget an outage makes ${attempts} requests of each call.`);
  }
  if (attempts > 5) {
    say(
      "note",
      "retry.maxAttempts",
      `with an SDK, a queue or a proxy that retries too, layers multiply: ${attempts} here times theirs, where evenkeel can't see them.`,
    );
  }
  if (limits["stream.commitOn"] === 0) {
    say(
      "note",
      "stream.commitOn",
      'with "head" an error that comes inside an HTTP 200 reaches the caller and is never retried.',
    );
  }
  return found;
}

/** Explains the limits in force. */
export function explain(packed: Float64Array, options: KeelOptions): PolicyExplanation {
  const limits = named(packed);
  const attempts = limits["retry.maxAttempts"];
  const total = limits["timeouts.totalMs"];
  const waits = Array.from({ length: attempts - 1 }, (_, at) => wait(limits, at + 1));
  const waited = waits.reduce((sum, one) => sum + one.overloadedMaxMs, 0);
  const budget = options.retry?.budget;
  return {
    worstCaseMs: Math.min(
      total,
      attempts * limits["timeouts.attemptMs"] + Math.max(waited, (attempts - 1) * limits["retry.maxWaitMs"]),
    ),
    maxAttempts: attempts,
    requestsPerCallInOutage: budget === false ? attempts : Math.min(attempts, 1 + (budget?.ratio ?? 0.2)),
    waits,
    // As they act: none outlives the total.
    limits: {
      totalMs: total,
      attemptMs: Math.min(total, limits["timeouts.attemptMs"]),
      firstByteMs: Math.min(total, limits["timeouts.firstByteMs"]),
      firstTokenMs: Math.min(total, limits["timeouts.firstTokenMs"]),
      chunkGapMs: Math.min(total, limits["timeouts.chunkGapMs"]),
      contentGapMs: Math.min(total, limits["timeouts.contentGapMs"]),
      minAttemptMs: limits["timeouts.minAttemptMs"],
      maxWaitMs: limits["retry.maxWaitMs"],
    },
    findings: findings(limits, options),
  };
}

const WIDTH = 48;

function seconds(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${Number((ms / 1_000).toFixed(1))} s`;
}

/** The explanation as a person reads it, with the waits drawn on a time axis. */
export function render(policy: PolicyExplanation): string {
  const { worstCaseMs, maxAttempts, requestsPerCallInOutage, waits, limits } = policy;
  const lines = [
    `One call takes at most ${seconds(worstCaseMs)} and at most ${maxAttempts} ${maxAttempts === 1 ? "request" : "requests"}; each may be billed.`,
    `In a long outage the provider sees about ${Number(requestsPerCallInOutage.toFixed(2))} requests a call.`,
    "",
  ];
  const longest = waits.reduce((sum, one) => sum + one.maxMs, 0);
  if (waits.length > 0) {
    lines.push(
      `Waits by formula, shortest to longest, over ${seconds(longest)} (a provider's hint of up to ${seconds(limits.maxWaitMs)} wins):`,
    );
    let from = 0;
    for (const { retry, minMs, maxMs, overloadedMaxMs } of waits) {
      const at = (ms: number): number => (longest === 0 ? 0 : Math.round((ms / longest) * WIDTH));
      const bar =
        " ".repeat(at(from)) +
        "─".repeat(at(from + minMs) - at(from)) +
        "░".repeat(Math.max(1, at(from + maxMs) - at(from + minMs)));
      const longer = overloadedMaxMs > maxMs ? `, after an overload ${seconds(overloadedMaxMs)}` : "";
      lines.push(
        `  before attempt ${retry + 1}  ${bar.padEnd(WIDTH + 1)}  ${seconds(minMs)} to ${seconds(maxMs)}${longer}`,
      );
      from += maxMs;
    }
    lines.push("");
  }
  lines.push("Limits in time:");
  for (const [name, ms] of Object.entries(limits)) lines.push(`  ${name.padEnd(13)} ${seconds(ms)}`);
  lines.push("");
  if (policy.findings.length === 0) lines.push("Nothing is wrong with it.");
  for (const { severity, path, message } of policy.findings) lines.push(`${severity}: ${path}: ${message}`);
  return `${lines.join("\n")}\n`;
}
