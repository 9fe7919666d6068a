//! Google Gemini (generativelanguage.googleapis.com): generateContent and Interactions.
//!
//! Errors are `{"error":{code,message,status,details[]}}` with google.rpc details, sometimes in an array; Interactions
//! has a word for `code`. Every 429 says "You exceeded your current quota"; only the details tell a minute from a day,
//! and a day's 429 still carries a `retryDelay` of seconds that never comes true. Keys are wrong with status 400.
//! Sources: gemini-cli `googleErrors.ts`, `googleQuotaErrors.ts` and their tests, ai.google.dev troubleshooting.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, Cancelled, NotFound, Overloaded, PermissionError, QuotaExhausted, RateLimited,
    RequestTooLarge, ServerError, Timeout, Unknown,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("api_key_invalid", on(&[400, 401, 403]).code("api_key_invalid"), AuthError, Key),
    rule("api_key_text", on(&[400]).text("api key not valid|api key not found|api key expired"), AuthError, Key),
    rule("location", on(&[400, 403]).text("user location is not supported"), PermissionError, Scope::Provider).advice("call from a supported country: no other key helps"),
    rule("billing_needed", on(&[400]).text("enable billing|billing is disabled|requires billing"), QuotaExhausted, Key).advice("enable billing on the project"),
    rule("too_long", on(&[400, 413]).text("input token count * exceeds the maximum|exceeds the maximum number of tokens|payload size exceeds"), RequestTooLarge, Request),
    rule("too_long_500", on(&[500]).text("input context is too long|context is too long"), RequestTooLarge, Request).from("ai.google.dev/gemini-api/docs/troubleshooting: 500 INTERNAL"),
    rule("unregistered", on(&[403]).text("unregistered callers|without established identity|api key is missing"), AuthError, Key),
    rule("leaked_key", on(&[403]).text("reported as leaked"), AuthError, Key).advice("the key was published: make a new one"),
    rule("referrer_blocked", on(&[403]).code("api_key_http_referrer_blocked|api_key_ip_address_blocked|api_key_service_blocked"), PermissionError, Key).advice("lift the key's restrictions for this caller"),
    rule("service_disabled", on(&[403]).code("service_disabled|consumer_suspended|billing_disabled"), PermissionError, Key).advice("enable the API on the project"),
    rule("model_not_found", on(&[404]).code("not_found"), NotFound, Model),
    // 429 in the order in which gemini-cli decides: day, zero, capacity, minute.
    rule("per_day", on(&[429]).text("perday|per day|daily"), QuotaExhausted, Bucket).from("googleapis/python-genai#2044").advice("the day's quota is used up until midnight Pacific: ask for more, or use another project"),
    rule("limit_zero", on(&[429]).text("limit: 0"), QuotaExhausted, Bucket).advice("this tier has no access to the model: enable billing"),
    rule("capacity", on(&[429, 503]).code("model_capacity_exhausted|model_capacity_exceeded"), Overloaded, Model),
    rule("capacity_text", on(&[429]).text("out of capacity|no capacity available|high demand|overloaded"), Overloaded, Model),
    rule("credits", on(&[402, 403, 429]).code("quota_exhausted|insufficient_g1_credits_balance|payment_required"), QuotaExhausted, Key),
    rule("quota_exceeded", on(&[429]).code("quota_exceeded"), QuotaExhausted, Bucket), // Interactions: the day
    rule("prepay_empty", on(&[402]), QuotaExhausted, Key),
    rule("prepay_text", on(&[429]).text("prepayment credits|prepay credit|prepaid credit|monthly spending cap"), QuotaExhausted, Key),
    rule("rate_limit", on(&[429]).code("resource_exhausted|rate_limit_exceeded|too_many_requests"), RateLimited, Bucket),
    rule("overloaded", on(&[503]).code("unavailable|service_unavailable"), Overloaded, Model),
    rule("overloaded_text", on(&[500, 503]).text("overloaded|high demand"), Overloaded, Model),
    rule("deadline", on(&[504]).code("deadline_exceeded"), Timeout, Request).advice("shorten the prompt or raise the deadline"),
    rule("cancelled", on(&[499]), Cancelled, Request).retry(true), // not by us: a proxy or a server's deadline
    rule("aborted", on(&[409]).code("aborted"), Unknown, Request).retry(true),
    rule("internal", on(&[500]).code("internal|unknown"), ServerError, Scope::Provider),
    rule("failed_precondition", on(&[400]).code("failed_precondition"), PermissionError, Key),
    rule("invalid_argument", on(&[400]).code("invalid_argument|out_of_range"), BadRequest, Request),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "gemini",
    hosts: &["generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"],
    rules: RULES,
    request_id: &["x-cloudaicompanion-trace-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "gemini-cli packages/core/src/utils/googleQuotaErrors.ts",
    ..Provider::DEFAULT
};
