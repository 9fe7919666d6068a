//! Groq: OpenAI's shape, with statuses of its own.
//!
//! `x-ratelimit-*-requests` counts the day and `*-tokens` the minute; `retry-after` comes only with a 429. 413 with code
//! `rate_limit_exceeded` is a request larger than the minute's tokens; older models answer it with 429 and a wait that
//! never comes true (`Used 0, Requested > Limit`). 498 is the flex tier's capacity. Source: console.groq.com/docs/errors.

use super::Provider;
use crate::class::ErrorClass::{
    BadRequest, Cancelled, NotFound, Overloaded, PermissionError, QuotaExhausted, RateLimited, RequestTooLarge,
    ServerError,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Cond, Rule, on, rule};
use crate::limits::Window;

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("request_never_fits", on(&[413, 429]).when(Cond::NeverFits), RequestTooLarge, Request).from("continuedev/continue#11472").advice("shorten the prompt (or lower max_tokens, if the text says OTPM)"),
    rule("request_too_large", on(&[413]), RequestTooLarge, Request),
    rule("spend_limit", on(&[400, 403, 429]).text("spend limit|blocked_api_access"), QuotaExhausted, Key),
    rule("blocked", on(&[400, 403]).code("organization_restricted"), PermissionError, Key),
    rule("capacity_exceeded", on(&[429, 498, 503]).code("capacity_exceeded|over_capacity"), Overloaded, Model),
    rule("flex_capacity", on(&[498]), Overloaded, Model),
    rule("over_capacity", on(&[503]).text("over capacity|at capacity"), Overloaded, Model),
    rule("rate_limit", on(&[429]).code("rate_limit_exceeded|tokens|requests"), RateLimited, Bucket),
    rule("tool_use_failed", on(&[400]).code("tool_use_failed|json_validate_failed"), BadRequest, Request).retry(true).advice("the sampled output was at fault: another sample often passes"),
    rule("model_gone", on(&[400, 404]).code("model_decommissioned|model_not_found|model_terms_required"), NotFound, Model),
    rule("cancelled", on(&[499]), Cancelled, Request), // Groq reports the caller's own abort
    rule("dependency", on(&[424]), ServerError, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "groq",
    hosts: &["api.groq.com"],
    rules: RULES,
    windows: (Window::Day, Window::Minute),
    #[cfg(not(target_arch = "wasm32"))]
    source: "console.groq.com/docs/errors",
    ..Provider::DEFAULT
};
