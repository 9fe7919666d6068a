//! Together AI: OpenAI's shape with meanings of its own.
//!
//! 403 is context overflow. `type: "credit_limit"` is money with 402 but a limit per minute with 429. 422 comes from TGI's
//! validation. Older answers have `error` as a string. Source: docs.together.ai/docs/error-codes.

use super::Provider;
use crate::class::ErrorClass::{NotFound, Overloaded, QuotaExhausted, RateLimited, RequestTooLarge};
use crate::class::Scope::{Bucket, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("credit_limit", on(&[402]), QuotaExhausted, Key),
    rule("too_long_403", on(&[403]).text("context length|token count|max_tokens"), RequestTooLarge, Request),
    rule("too_long", on(&[400, 413, 422]).text("context length|tokens + `max_new_tokens` must be"), RequestTooLarge, Request),
    rule("model_rate", on(&[429]).code("model_rate_limit"), RateLimited, Bucket),
    rule("model_rate_text", on(&[429]).text("specific to this model"), RateLimited, Bucket),
    rule("overloaded_429", on(&[429]).text("overloaded|dynamic rate limit|too much traffic"), Overloaded, Model),
    rule("rate", on(&[429]), RateLimited, Key),
    rule("model", on(&[400, 404]).code("model_not_available|model_not_found"), NotFound, Model),
    rule("model_text", on(&[400]).text("unable to access model|is not a chat model"), NotFound, Model),
    rule("overloaded", on(&[503, 529]), Overloaded, Model),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "together",
    hosts: &["api.together.xyz", "api.together.ai"],
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "docs.together.ai/docs/error-codes",
    ..Provider::DEFAULT
};
