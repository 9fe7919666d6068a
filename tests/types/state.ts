// keel.state(): every member has a type, and what is not there is not to be had.

import { type BucketState, type ControlState, createKeel, type ErrorClass } from "evenkeel";

const state: ControlState = createKeel().state();

const waiting: number = state.waiting;
const held: number = state.permits.held;
const budget: number | undefined = state.retry_budget.providers["openai"];
const opened: readonly string[] = state.breakers.filter((one) => one.state === "open").map((one) => one.subject);
const disabled: readonly (ErrorClass | null)[] = state.keys.map((key) => key.disabled);
const noisy: readonly string[] = state.tenants.filter((one) => one.active > 10).map((one) => one.tenant);

const headroom = (bucket: BucketState): number | undefined =>
  bucket.limits.find((limit) => limit.kind === "tokens" && limit.window === "minute")?.remaining;
const cooling: number | null = state.vendor.map((bucket) => bucket.cooling_until)[0] ?? null;
void [waiting, held, budget, opened, disabled, noisy, headroom, cooling];

// @ts-expect-error there is no such member
void state.buckets;
// @ts-expect-error a state is looked at, not written to
state.waiting = 0;
// @ts-expect-error none of its states
void state.breakers.filter((one) => one.state === "ajar");
