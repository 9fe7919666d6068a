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
  TimeoutOptions,
  URLPattern,
  VendorLimitState,
} from "./types.js";
