//! Anthropic: the Messages API, and its OpenAI-compatible endpoint.
//!
//! Errors are `{"type":"error","error":{type,message,details?},"request_id"}`. Money comes in four shapes, three of them
//! under types that say something else. New types may appear: the status decides then. In a stream an `error` event
//! may come first, with an HTTP 200. Sources: docs.anthropic.com errors and rate limits, anthropic-sdk-typescript
//! `src/resources/shared.ts`.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, ContentFiltered, NotFound, Overloaded, PermissionError, QuotaExhausted, RateLimited,
    RequestTooLarge, ServerError, Timeout, Unknown,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Cond, Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    // 400: money, length and the output filter are all typed invalid_request_error.
    rule("credit_balance", on(&[400, 402, 403, 429]).text("credit balance is too low"), QuotaExhausted, Key).advice("buy credits under Plans & Billing"),
    rule("spend_limit", on(&[400, 403, 429]).text("you have reached your specified api usage limits|you have reached your specified workspace api usage limits|regain access on"), QuotaExhausted, Key).advice("raise the spend limit, or wait for the month's end"),
    rule("prompt_too_long", on(&[400, 413]).text("prompt is too long|exceed context limit|input is too long|maximum context length"), RequestTooLarge, Request),
    rule("output_blocked", on(&[400]).text("^output blocked by content filtering policy|content filtering policy"), ContentFiltered, Request),
    rule("organization_disabled", on(&[400, 403]).text("organization has been disabled"), PermissionError, Key),
    // 429: a limit, unless it is a budget or a plan's window.
    rule("enforced_spend_limit", on(&[429]).code("enforced_spend_limit_reached"), QuotaExhausted, Key).advice("raise the spend limit, or wait for the first of the month"),
    rule("spend_limit_429", on(&[429]).text("monthly spend limit|spend limit"), QuotaExhausted, Key),
    rule("plan_window", on(&[429]).when(Cond::PlanRejected), QuotaExhausted, Key).from("cljdoc svar: unified limits").advice("the plan's window is used up: wait for its reset, or use an API key"),
    rule("rate_limit", on(&[429]).code("rate_limit_error"), RateLimited, Bucket),
    // Types that mean what they say, whatever the status.
    rule("authentication", on(&[401, 403]).code("authentication_error"), AuthError, Key),
    rule("billing", on(&[4]).code("billing_error"), QuotaExhausted, Key),
    rule("permission", on(&[403]).code("permission_error"), PermissionError, Key),
    rule("not_found", on(&[404]).code("not_found_error"), NotFound, Model),
    rule("request_too_large", on(&[400, 413]).code("request_too_large"), RequestTooLarge, Request).advice("at most 32 MB a request: upload files instead of inlining them"),
    rule("overloaded", on(&[5]).code("overloaded_error"), Overloaded, Model),
    rule("timeout", on(&[408, 504]).code("timeout_error"), Timeout, Request).advice("stream the answer: the same long request will likely time out again"),
    rule("conflict", on(&[409]).code("conflict_error"), Unknown, Request).retry(true),
    rule("api_error", on(&[500]).code("api_error"), ServerError, Scope::Provider),
    rule("invalid_request", on(&[400]).code("invalid_request_error"), BadRequest, Request),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "anthropic",
    hosts: &["api.anthropic.com"],
    base: "openai",
    rules: RULES,
    request_id: &["request-id", "x-request-id"],
    windows: (crate::limits::Window::Minute, crate::limits::Window::Minute),
    #[cfg(not(target_arch = "wasm32"))]
    source: "docs.anthropic.com/en/api/errors",
    ..Provider::DEFAULT
};
