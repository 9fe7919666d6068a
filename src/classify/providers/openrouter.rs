//! OpenRouter: a router, so a failure is its own, or one of the providers behind it.
//!
//! `error.code` is the status; `error.metadata.error_type` (top-level `error_type` on the Responses skin) is the stable
//! word, and the truth where the native code is lossy. `metadata.raw` holds the upstream's own error, JSON or text.
//! `availability.retryable` is trusted. One of its 402s is transient. Its own limits are the key's, an upstream limit is
//! the model's. Source: OpenRouterTeam/docs `errors-and-debugging.mdx`, `limits.mdx`.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, ContentFiltered, NotFound, Overloaded, PermissionError, QuotaExhausted, RateLimited,
    RequestTooLarge, ServerError, Timeout,
};
use crate::class::Scope::{self, Key, Model, Request};
use crate::classify::rule::{Cond, Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    // The stable words.
    rule("too_long", on(&[]).code("context_length_exceeded|max_tokens_exceeded|token_limit_exceeded|string_too_long|payload_too_large"), RequestTooLarge, Request),
    rule("content", on(&[4]).code("content_policy_violation|refusal|moderation|guardrail_patterns"), ContentFiltered, Request),
    rule("authentication", on(&[]).code("authentication"), AuthError, Key),
    rule("model_not_found", on(&[4]).code("model_not_found|model_deprecated|free_variant_ended"), NotFound, Model),
    rule("privacy_filter", on(&[4]).code("privacy_restricted"), PermissionError, Model).advice("your privacy settings exclude every endpoint of the model"),
    rule("privacy_text", on(&[404]).text("data policy|privacy"), PermissionError, Model).advice("your privacy settings exclude every endpoint of the model: openrouter.ai/settings/privacy"),
    rule("routing_filter", on(&[4]).code("constraint_filtered"), NotFound, Model).advice("your routing settings exclude every endpoint of the model"),
    rule("region", on(&[4]).code("region_restricted"), PermissionError, Scope::Provider),
    rule("capacity", on(&[429, 503]).code("capacity_exhausted|temporarily_unavailable|provider_overloaded"), Overloaded, Model),
    // 402 and 403: money.
    rule("in_flight_budget", on(&[402]).code("openrouter_in_flight_budget|in_flight_budget_exhausted"), RateLimited, Key), // the one 402 that passes by waiting
    rule("in_flight_hint", on(&[402]).text("in-flight|in flight").when(Cond::Hinted), RateLimited, Key),
    rule("weight_exceeds_budget", on(&[402]).code("weight_exceeds_budget"), RequestTooLarge, Request).retry(false).advice("the request costs more than the whole budget: lower max_tokens"),
    rule("can_only_afford", on(&[402]).text("can only afford|fewer max_tokens"), QuotaExhausted, Key).advice("lower max_tokens, or buy credits"),
    rule("credits", on(&[402]), QuotaExhausted, Key).advice("buy credits"),
    rule("key_budget", on(&[403]).code("key_budget|workspace_budget|guardrail_budget|openrouter_key_budget|openrouter_workspace_budget|openrouter_guardrail_budget|key_limit|key|workspace|guardrail|payment_required"), QuotaExhausted, Key),
    rule("budget_that_resets", on(&[403]).when(Cond::Hinted), QuotaExhausted, Key), // resets_at
    rule("key_limit_text", on(&[403]).text("limit exceeded|budget"), QuotaExhausted, Key).advice("raise the key's limit"),
    rule("moderation_text", on(&[403]).text("flagged|moderation|prompt injection"), ContentFiltered, Request),
    // 429: whose limit?
    rule("free_models_per_day", on(&[429]).text("free-models-per-day"), QuotaExhausted, Key).advice("all free models together are used up for today: add credits"),
    rule("free_models_per_min", on(&[429]).text("free-models-per-min"), RateLimited, Key),
    rule("upstream_quota", on(&[402, 403, 429]).code("insufficient_quota|billing_hard_limit_reached"), QuotaExhausted, Model).advice("the upstream account (your own key there?) has no money"),
    rule("upstream_billing", on(&[429]).text("credit balance is too low"), QuotaExhausted, Model),
    rule("rate", on(&[429]), RateLimited, Model),
    // 404 and 400.
    rule("no_endpoints", on(&[404]).text("no endpoints found|no allowed providers"), NotFound, Model).advice("check the model's name and your privacy and routing settings"),
    rule("not_a_model", on(&[400, 404]).text("is not a valid model id|model * not found"), NotFound, Model),
    rule("too_long_text", on(&[400, 413]).text("maximum context length"), RequestTooLarge, Request),
    // 5xx.
    rule("timeout", on(&[408, 504, 524]), Timeout, Scope::Provider),
    rule("overloaded", on(&[503, 529]), Overloaded, Model),
    rule("provider_unavailable", on(&[]).code("provider_unavailable"), ServerError, Model),
    rule("bad_gateway", on(&[502]), ServerError, Model),
    rule("provider_disconnected", on(&[500]).text("provider disconnected|provider returned error"), ServerError, Model),
    rule("precondition", on(&[412]), BadRequest, Request),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "openrouter",
    hosts: &["openrouter.ai"],
    rules: RULES,
    request_id: &["x-generation-id", "x-request-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "openrouter.ai/docs/api-reference/errors-and-debugging",
    ..Provider::DEFAULT
};
