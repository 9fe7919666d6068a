//! Cohere: `{"message":…}`, sometimes with an `id`; nothing else tells.
//!
//! A trial key's limit per minute and per month differ by one word. "too many tokens" is the prompt in one sentence and
//! the output cap in the other. 498 is named `InvalidToken` and means a deny-listed word, not a key. No hint headers.
//! Source: cohere-developer-experience `fern/pages/.../errors.mdx`.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, Cancelled, ContentFiltered, NotFound, Overloaded, QuotaExhausted, RateLimited,
    RequestTooLarge, ServerError,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("output_cap", on(&[400, 422]).text("max tokens must be less|maximum output for this model"), BadRequest, Request).advice("lower max_tokens"),
    rule("prompt_too_long", on(&[400, 413, 422]).text("tokens in the prompt cannot exceed|too many tokens|prompt is too long"), RequestTooLarge, Request),
    rule("invalid_key", on(&[400, 401]).text("invalid api token|api key has expired|no api key supplied"), AuthError, Key),
    rule("billing", on(&[402]), QuotaExhausted, Key),
    rule("trial_month", on(&[429]).text("/ month|per month|calls / month|monthly"), QuotaExhausted, Key).advice("the trial key's month is used up: make a production key"),
    rule("trial_minute", on(&[429]).text("trial key|trial token"), RateLimited, Key),
    rule("rate_limit", on(&[429]), RateLimited, Bucket),
    rule("model_not_found", on(&[400, 404]).text("model * not found"), NotFound, Model),
    rule("blocked_word", on(&[498]), ContentFiltered, Request),
    rule("cancelled", on(&[499]), Cancelled, Request).retry(true), // the docs say to try again
    rule("not_implemented", on(&[501]), BadRequest, Request),
    rule("internal", on(&[500]), ServerError, Scope::Provider),
    rule("unavailable", on(&[503]), Overloaded, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "cohere",
    hosts: &["api.cohere.com", "api.cohere.ai"],
    base: "",
    rules: RULES,
    request_id: &["x-request-id", "x-debug-trace-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "docs.cohere.com/reference/errors",
    ..Provider::DEFAULT
};
