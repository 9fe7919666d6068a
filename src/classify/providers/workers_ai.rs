//! Cloudflare Workers AI: `{"success":false,"errors":[{code,message}]}`; the number tells.
//!
//! 429 is capacity (3040) or the day's free neurons (3036). 3023 says "Service unavailable" and means a blocked account.
//! Source: developers.cloudflare.com/workers-ai/platform/errors.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, Cancelled, NotFound, Overloaded, PermissionError, QuotaExhausted, RequestTooLarge,
    ServerError, Timeout,
};
use crate::class::Scope::{self, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("capacity", on(&[]).code("3040"), Overloaded, Model),
    rule("daily_neurons", on(&[]).code("3036"), QuotaExhausted, Key).advice("the day's free neurons are used up: use the paid plan"),
    rule("no_such_model", on(&[]).code("5007|3042"), NotFound, Model),
    rule("bad_input", on(&[]).code("5004|3039|3003|5006"), BadRequest, Request),
    rule("account", on(&[]).code("5018|3041|3023"), PermissionError, Key),
    rule("model_access", on(&[]).code("5016"), PermissionError, Model).advice("accept the model's license first"),
    rule("outdated", on(&[]).code("5019|5005"), BadRequest, Request),
    rule("too_large", on(&[]).code("3006"), RequestTooLarge, Request),
    rule("timeout", on(&[]).code("3007"), Timeout, Scope::Provider),
    rule("aborted", on(&[]).code("3008"), Cancelled, Request),
    rule("auth", on(&[]).code("10000|10001|9109|9106|6003"), AuthError, Key),
    rule("route", on(&[]).code("7000|7003"), NotFound, Scope::Provider),
    rule("internal", on(&[]).code("3043|3002"), ServerError, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "workers-ai",
    hosts: &["api.cloudflare.com"],
    base: "",
    rules: RULES,
    request_id: &["cf-ai-req-id", "cf-ray"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "developers.cloudflare.com/workers-ai/platform/errors",
    ..Provider::DEFAULT
};
