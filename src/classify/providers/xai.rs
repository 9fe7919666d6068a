//! xAI: `{"code":"<a sentence>","error":"<text>"}`, or OpenAI's nested shape.
//!
//! The code sentence is only the status in words: one 403 sentence stands for money, rights and safety, one 429 sentence
//! for rates and money. The `error` text decides. A bad key is 400. No hints. Sources: docs.x.ai, issues of clients.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, ContentFiltered, NotFound, PermissionError, QuotaExhausted, RateLimited, RequestTooLarge,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("bad_key", on(&[400, 401, 403]).text("incorrect api key|api key is invalid|invalid api key|no api key"), AuthError, Key),
    rule("credits", on(&[402, 403, 429]).text("any credits yet|used all available credits|spending limit|purchase more credits|purchase credits|no credits|raise your spending limit"), QuotaExhausted, Key).advice("buy credits or raise the monthly spending limit"),
    rule("safety", on(&[400, 403]).text("usage guidelines|safety_check|content violates|rejected by content moderation"), ContentFiltered, Request),
    rule("region", on(&[403]).text("region|country|ip address"), PermissionError, Scope::Provider),
    rule("too_long", on(&[400, 413]).text("maximum prompt length"), RequestTooLarge, Request),
    rule("model_not_found", on(&[400, 404]).text("^the model|model * does not exist|model not found"), NotFound, Model),
    rule("rate", on(&[429]), RateLimited, Bucket),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "xai",
    hosts: &["api.x.ai", "*.api.x.ai"],
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "docs.x.ai/docs/key-information/debugging",
    ..Provider::DEFAULT
};
