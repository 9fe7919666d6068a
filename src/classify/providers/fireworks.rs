//! Fireworks: OpenAI's shape behind Apigee.
//!
//! 412 is a suspended account (money) or a `LoRA` that doesn't load, told apart by the text; 404 is one of not found, not
//! deployed, no access. Keys fail in Apigee's `fault` envelope. A 429 may be a bare `{"error":"Too Many Requests"}`.
//! Source: docs.fireworks.ai/guides/inference-error-codes.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, NotFound, Overloaded, QuotaExhausted, RateLimited, RequestTooLarge, Timeout,
};
use crate::class::Scope::{self, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("invalid_key", on(&[401, 403]).code("oauth.v2.invalidapikey|oauth.v2.failedtoresolveapikey|unauthorized"), AuthError, Key),
    rule("payment", on(&[402]), QuotaExhausted, Key),
    rule("suspended", on(&[412, 403]).text("is suspended|spending limit|billing"), QuotaExhausted, Key).advice("pay the open bill or raise the spending limit"),
    rule("lora", on(&[412]), NotFound, Model).advice("the adapter or deployment can't be loaded: check it"),
    rule("too_long", on(&[400, 413]).text("prompt is too long|maximum context length|context length"), RequestTooLarge, Request),
    rule("not_deployed", on(&[404]), NotFound, Model),
    rule("spike", on(&[429]).code("policies.ratelimit.spikearrestviolation|policies.ratelimit.quotaviolation"), RateLimited, Key),
    rule("rate", on(&[429]), RateLimited, Key),
    rule("timeout", on(&[408]), Timeout, Scope::Provider),
    rule("overloaded", on(&[503]), Overloaded, Model),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "fireworks",
    hosts: &["api.fireworks.ai"],
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "docs.fireworks.ai/guides/inference-error-codes",
    ..Provider::DEFAULT
};
