/**
 * evenkeel keeps LLM API calls on an even keel: every call classified, bounded in time, safe to retry and on the record.
 *
 * @module
 */
export { KeelConfigError, KeelError } from "./errors.js";
export { createKeel } from "./keel.js";
export type {
  AttemptRecord,
  CallContext,
  CallRecord,
  Classification,
  Clock,
  ErrorClass,
  FailureFacts,
  FailureSignal,
  Keel,
  KeelOptions,
  LedgerRecord,
  LedgerSink,
  NoticeRecord,
  Protocol,
  ProviderOptions,
  RetryBudgetOptions,
  RetryOptions,
  Rule,
  ScopedKeel,
  Scope,
  StreamOptions,
  TimeoutOptions,
  URLPattern,
} from "./types.js";
