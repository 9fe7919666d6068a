// The options of createKeel: what is taken, and what a typing mistake is answered with.

import { type CallContext, createKeel, type Keel, type KeelOptions, type Rule, type ScopedKeel } from "evenkeel";
import * as inline from "evenkeel/inline";
import * as slim from "evenkeel/slim";

const keel: Keel = createKeel();
createKeel({});

const everything: KeelOptions = {
  preset: "interactive",
  ledger: [(record) => void record.type, { write: async () => {}, flush: async () => {} }],
  timeouts: { totalMs: 30_000, firstByteMs: 5_000 },
  retry: { maxAttempts: 2, jitter: "equal", budget: { ratio: 0.1 }, ambiguous: "never" },
  providers: {
    gw: { match: ["llm.acme.io"], protocol: "openai.chat", rules: [{ status: "5xx", class: "server_error" }] },
  },
  stream: { commitOn: "end" },
  transportFailure: "throw",
  onCoreFailure: "pass-through",
  classify: (signal, builtIn) =>
    signal.status === 418 ? { ...builtIn, class: "overloaded", retryable: true } : undefined,
  fetch: globalThis.fetch,
  clock: { now: () => 0, setTimeout: () => 1, clearTimeout: () => {} },
  seed: 1,
};
createKeel(everything);
createKeel({ retry: { budget: false }, breaker: false, concurrency: false });

const rule: Rule = {
  name: "wrapped",
  status: [400, "500-599"],
  text: "upstream failed",
  class: "server_error",
  waitMs: 10,
};
void rule;

// @ts-expect-error an option that does not exist
createKeel({ retries: 3 });
// @ts-expect-error a member that does not exist
createKeel({ retry: { attempts: 3 } });
// @ts-expect-error a number, not a text
createKeel({ timeouts: { totalMs: "30s" } });
// @ts-expect-error none of the presets
createKeel({ preset: "patient" });
// @ts-expect-error a rule has to say what it means
const noClass: Rule = { status: 400 };
// @ts-expect-error the hook gives a whole verdict or nothing
createKeel({ classify: () => ({ class: "overloaded" }) });
void noClass;

const context: CallContext = { tenant: "acme", operation: "ticket.summary", priority: "batch", deadlineMs: 5_000 };
const scoped: ScopedKeel = keel.with(context);
const response: Promise<Response> = scoped.fetch("https://api.openai.com/v1/models", {
  signal: AbortSignal.timeout(1),
});
const flushed: Promise<void> = keel.flush();
keel.close();
void [response, flushed];

// The other doors lead to the same room.
const other: Keel = inline.createKeel(everything);
const third: Keel = slim.createKeel(everything);
slim.install(new Uint8Array());
void [other, third];
