//! Mistral: three shapes from three layers.
//!
//! The gateway says `{"message":"Requests rate limit exceeded"}`, the API a flat `{"object":"error",message,type,code}`,
//! the validator `FastAPI`'s `detail`. "Service tier capacity exceeded" is the backend's capacity and not the caller's
//! limit, whatever its type says (a Mistral engineer in BerriAI/litellm#25078). Unknown models are 400. No hints.
//! Sources: mistralai/client-ts, platform-docs-public.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, NotFound, Overloaded, QuotaExhausted, RateLimited, RequestTooLarge, ServerError,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("unauthorized", on(&[401]), AuthError, Key),
    rule("payment", on(&[402]), QuotaExhausted, Key),
    rule("tier_capacity", on(&[429, 503]).code("3505|service_tier_capacity_exceeded"), Overloaded, Model),
    rule("tier_capacity_text", on(&[429, 503]).text("service tier capacity exceeded|capacity exceeded"), Overloaded, Model).from("BerriAI/litellm#25078"),
    rule("monthly", on(&[429]).text("monthly|per month"), QuotaExhausted, Key),
    rule("rate_limited", on(&[429]).code("1300|rate_limited"), RateLimited, Bucket),
    rule("gateway_rate", on(&[429]).text("requests rate limit exceeded"), RateLimited, Key), // before the model is known
    rule("too_long", on(&[400, 422]).code("3051"), RequestTooLarge, Request),
    rule("too_long_text", on(&[400, 422]).text("too large for model with|maximum context length"), RequestTooLarge, Request),
    rule("invalid_model", on(&[400]).code("1500|invalid_model"), NotFound, Model),
    rule("internal", on(&[500]).code("1000|internal_server_error"), ServerError, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "mistral",
    hosts: &["api.mistral.ai", "codestral.mistral.ai"],
    rules: RULES,
    request_id: &["x-request-id", "mistral-correlation-id", "x-kong-request-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "github.com/mistralai/platform-docs-public",
    ..Provider::DEFAULT
};
