//! OpenAI: chat completions, responses, embeddings, images.
//!
//! Errors are `{"error":{message,type,param,code}}`; read `code` first, then `type`. Money, rate and "this request can
//! never fit" all come as 429. Inside a Responses stream they come after an HTTP 200, in `error` and `response.failed`
//! events. `x-should-retry` is obeyed before anything. Sources: developers.openai.com error codes, openai-openapi
//! f85dbe2, help.openai.com 5955604 and 6614457.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, ContentFiltered, NotFound, Overloaded, PermissionError, QuotaExhausted, RateLimited,
    RequestTooLarge, ServerError,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Cond, Rule, on, rule};
use crate::classify::table::table;

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("ip_not_authorized", on(&[401]).code("ip_not_authorized"), PermissionError, Scope::Provider).advice("add this machine's address to the project's IP allowlist"),
    rule("ip_not_authorized_text", on(&[401]).text("ip allowlist|ip not authorized|your request ip"), PermissionError, Scope::Provider).advice("add this machine's address to the project's IP allowlist"),
    rule("invalid_api_key", on(&[401]).code("invalid_api_key|invalid_request_error|authentication_error"), AuthError, Key),
    rule("unsupported_region", on(&[403]).code("unsupported_country_region_territory|request_forbidden"), PermissionError, Scope::Provider).advice("call from a supported country: no other key helps"),
    rule("data_residency", on(&[400, 403]).code("data_residency_mismatch"), PermissionError, Key).advice("use the project's own regional host"),
    rule("no_model_access", on(&[403]).code("model_not_found"), PermissionError, Model),
    rule("no_model_access_text", on(&[403]).text("does not have access to model"), PermissionError, Model),
    rule("model_not_found", on(&[400, 404]).code("model_not_found"), NotFound, Model),
    rule("context_length_exceeded", on(&[400, 413]).code("context_length_exceeded"), RequestTooLarge, Request),
    rule("string_too_long", on(&[400]).code("string_above_max_length|array_above_max_length"), BadRequest, Request), // one field's length, not the context
    rule("content_policy", on(&[400, 403]).code("content_policy_violation|moderation_blocked|content_filter|bio_policy|cyber_policy|image_content_policy_violation"), ContentFiltered, Request),
    rule("invalid_prompt", on(&[400]).code("invalid_prompt").text("usage policy|usage policies|safety|flagged"), ContentFiltered, Request),
    rule("quota_of_400", on(&[400]).code("billing_hard_limit_reached"), QuotaExhausted, Key),
    // 429: money first, then what never fits, then the rates.
    rule("insufficient_quota", on(&[402, 403, 429]).code("insufficient_quota|credit_balance_exhausted|organization_spend_limit_exceeded|project_spend_limit_exceeded|organization_usage_limit_exceeded|billing_hard_limit_reached|billing_not_active|access_terminated|usage_limit_reached|usage_not_included"), QuotaExhausted, Key),
    rule("insufficient_quota_text", on(&[429]).text("check your plan and billing details"), QuotaExhausted, Key), // its text alone, as logs keep it
    rule("request_never_fits", on(&[429]).when(Cond::NeverFits), RequestTooLarge, Request).from("community.openai.com: Limit 30000, Requested 31538").advice("shorten the prompt, lower max_tokens, or ask for a higher limit: it can't fit in a minute's tokens"),
    rule("request_too_large_for_limit", on(&[429]).text("^request too large for"), RequestTooLarge, Request),
    rule("slow_down", on(&[429]).code("slow_down"), RateLimited, Model), // too steep a ramp; since 2026 a 429
    rule("slow_down_503", on(&[503]).code("slow_down"), Overloaded, Model), // before 2026
    rule("rate_limit_exceeded", on(&[429]).code("rate_limit_exceeded|tokens|requests|rate_limit_error"), RateLimited, Bucket),
    rule("server_is_overloaded", on(&[5]).code("server_is_overloaded|engine_overloaded"), Overloaded, Model),
    rule("engine_overloaded", on(&[429, 500, 503]).text("engine is currently overloaded|model is currently overloaded|servers are currently overloaded|server is currently overloaded|model is at capacity|that model is currently overloaded"), Overloaded, Model),
    rule("vector_store_timeout", on(&[5]).code("vector_store_timeout"), ServerError, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "openai",
    hosts: &["api.openai.com", "*.api.openai.com"],
    base: "",
    rules: table!(RULES),
    request_id: &["x-request-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "developers.openai.com/api/docs/guides/error-codes",
    ..Provider::DEFAULT
};
