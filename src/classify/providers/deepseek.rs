//! DeepSeek: OpenAI's shape with vague codes; the status tells.
//!
//! The limit is a dynamic concurrency per account, without hints. Under load an answer starts with HTTP 200 and blank
//! lines or `: keep-alive` comments, and may end so; `finish_reason: insufficient_system_resource` is overload.
//! Source: api-docs.deepseek.com/quick_start/error_codes.

use super::Provider;
use crate::class::ErrorClass::{AuthError, Overloaded, QuotaExhausted, RateLimited};
use crate::class::Scope::{self, Key};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("invalid_key", on(&[401]), AuthError, Key),
    rule("insufficient_balance", on(&[402]), QuotaExhausted, Key).advice("top up the account"),
    rule("rate_limit", on(&[429]), RateLimited, Key),
    rule("too_busy", on(&[503]), Overloaded, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "deepseek",
    hosts: &["api.deepseek.com"],
    rules: RULES,
    request_id: &["x-ds-trace-id", "x-request-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "api-docs.deepseek.com/quick_start/error_codes",
    ..Provider::DEFAULT
};
