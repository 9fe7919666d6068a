//! Cerebras: flat bodies `{message,type,param,code}`.
//!
//! `request_quota_exceeded` and `token_quota_exceeded` are limits of a minute or of a day: only the text tells.
//! `queue_exceeded` is capacity. Admission reserves `max_completion_tokens` (16,384 if unset), so lowering it cures many
//! 429s (dcdpr/jp#1085). Overflow may be a 400 or 413 with an empty body (pi-mono). Source:
//! inference-docs.cerebras.ai rate limits.

use super::Provider;
use crate::class::ErrorClass::{NotFound, Overloaded, QuotaExhausted, RateLimited, RequestTooLarge};
use crate::class::Scope::{self, Bucket, Model, Request};
use crate::classify::rule::{Rule, on, rule};

const QUOTAS: &str = "request_quota_exceeded|token_quota_exceeded|too_many_tokens_error|too_many_requests_error";

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("queue", on(&[429, 503]).code("queue_exceeded"), Overloaded, Model),
    rule("queue_text", on(&[429]).text("high traffic|queue"), Overloaded, Model),
    rule("per_day", on(&[429]).text("per day|daily|per month"), QuotaExhausted, Bucket),
    rule("per_minute", on(&[429]).code(QUOTAS), RateLimited, Bucket).advice("set max_completion_tokens: an unset one reserves 16,384 tokens of the minute"),
    rule("too_long", on(&[400, 413]).code("context_length_exceeded"), RequestTooLarge, Request),
    rule("model", on(&[404]).code("model_not_found"), NotFound, Model),
    rule("unavailable", on(&[503]), Overloaded, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "cerebras",
    hosts: &["api.cerebras.ai"],
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "inference-docs.cerebras.ai/support/rate-limits",
    ..Provider::DEFAULT
};
