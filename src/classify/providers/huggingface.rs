//! Hugging Face: serverless inference, the router, and Text Generation Inference (TGI) anywhere.
//!
//! `error` is mostly a string. A model that loads answers 503 with `estimated_time` in seconds. Rates are of the token,
//! in IETF `ratelimit` headers. TGI adds `error_type`: overloaded (429), validation (422), generation (424).
//! Sources: hub-docs `docs/hub/rate-limits.md`, TGI `router/src/server.rs`.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, NotFound, Overloaded, QuotaExhausted, RateLimited, RequestTooLarge, ServerError,
};
use crate::class::Scope::{Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("tgi_overloaded", on(&[429, 503]).code("overloaded"), Overloaded, Model),
    rule("tgi_too_long", on(&[400, 422]).text("tokens + `max_new_tokens` must be|must have less than|`inputs` must have"), RequestTooLarge, Request),
    rule("tgi_validation", on(&[422]).code("validation"), BadRequest, Request),
    rule("tgi_generation", on(&[424, 500]).code("generation|incomplete_generation|request failed during generation"), ServerError, Model),
    rule("loading", on(&[503]).text("currently loading|is loading"), Overloaded, Model),
    rule("monthly_credits", on(&[402, 403, 429]).text("monthly included credits|pre-paid credits|exceeded your monthly|monthly usage"), QuotaExhausted, Key),
    rule("payment", on(&[402]), QuotaExhausted, Key),
    rule("rate", on(&[429]), RateLimited, Key), // counted by token, not by model
    rule("bad_token", on(&[401]), AuthError, Key),
    rule("model", on(&[400, 404]).code("model_not_supported|model_not_found"), NotFound, Model),
    rule("model_text", on(&[400]).text("not supported by any provider|model not supported|is not supported for task"), NotFound, Model),
    rule("unavailable_model", on(&[503]).text("overloaded|no endpoints"), Overloaded, Model),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "huggingface",
    hosts: &["router.huggingface.co", "api-inference.huggingface.co", "*.endpoints.huggingface.cloud"],
    rules: RULES,
    request_id: &["x-request-id", "x-amz-cf-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "huggingface.co/docs/hub/rate-limits; github.com/huggingface/text-generation-inference",
    ..Provider::DEFAULT
};
