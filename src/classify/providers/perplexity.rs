//! Perplexity: OpenAI's shape with a numeric `code`; the `type` tells.
//!
//! A missing key is answered by the gateway as an HTML page with 401. A 401 may also be money (inferred from reports).
//! Source: docs.perplexity.ai/guides.

use super::Provider;
use crate::class::ErrorClass::{AuthError, NotFound, QuotaExhausted, RateLimited};
use crate::class::Scope::{Key, Model};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("quota_401", on(&[401, 402, 403]).text("quota|credit|insufficient|billing"), QuotaExhausted, Key).advice("top up the API balance"),
    rule("quota_code", on(&[401, 402]).code("insufficient_quota"), QuotaExhausted, Key),
    rule("unauthorized", on(&[401]), AuthError, Key),
    rule("invalid_model", on(&[400, 404]).code("invalid_model"), NotFound, Model),
    rule("rate", on(&[429]), RateLimited, Key),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "perplexity",
    hosts: &["api.perplexity.ai"],
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "docs.perplexity.ai/guides/rate-limits-usage-tiers",
    ..Provider::DEFAULT
};
