/**
 * evenkeel keeps LLM API calls on an even keel: every call classified, bounded in time, safe to retry and on the record.
 *
 * @module
 */
export type { Budget } from "./budget.js";
export { KeelConfigError, KeelError } from "./errors.js";
export { createKeel } from "./keel.js";
export type {
  AttemptRecord,
  BreakerOptions,
  BreakerState,
  BucketState,
  BudgetParts,
  BudgetStage,
  CallContext,
  CallRecord,
  Classification,
  Clock,
  ConcurrencyOptions,
  ControlState,
  ErrorClass,
  FailureFacts,
  FailureSignal,
  Keel,
  KeelOptions,
  KeyState,
  LedgerRecord,
  LedgerSink,
  NoticeRecord,
  PolicyExplanation,
  PolicyFinding,
  PolicyWait,
  Pool,
  PoolKey,
  Protocol,
  ProviderOptions,
  RetryBudgetOptions,
  RetryOptions,
  Rule,
  Scope,
  ScopedKeel,
  StreamOptions,
  TenantLimits,
  TenantState,
  TimeoutOptions,
  TooSlow,
  URLPattern,
  VendorLimitState,
} from "./types.js";
