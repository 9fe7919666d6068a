//! Pages from what stands between: Cloudflare's edge, nginx, load balancers, bot checks.
//!
//! They are HTML or bare text with the vendor's status, speak of the whole provider and not of a key, and are tried
//! before a provider's own rules when the body is no JSON. Sources: developers.cloudflare.com/support
//! (5xx and 1xxx errors), nginx and Envoy defaults.

use super::rule::{Cond, Rule, on, rule};
use crate::class::ErrorClass::{
    ConnectionError, Overloaded, PermissionError, QuotaExhausted, RateLimited, RequestTooLarge, ServerError, Timeout,
    Unknown,
};
use crate::class::Scope::{Provider, Request};

/// Where the edge rules come from.
#[cfg(not(target_arch = "wasm32"))]
pub const SOURCE: &str = "developers.cloudflare.com/support/troubleshooting/http-status-codes";

/// Tried when the body is a page or a bare text.
#[rustfmt::skip] // one rule a line
pub const RULES: &[Rule] = &[
    rule("challenge", on(&[403, 429, 503]).when(Cond::BotCheck), PermissionError, Provider).advice("a bot check stands before the API: call from another address, or ask the provider to let you through"),
    rule("challenge_page", on(&[403, 503]).text("just a moment|enable javascript and cookies|attention required"), PermissionError, Provider),
    rule("cloudflare_1015", on(&[]).text("error code: 1015|error 1015|<span>1015</span>|you are being rate limited"), RateLimited, Provider),
    rule("cloudflare_1027", on(&[]).text("error code: 1027|error 1027"), QuotaExhausted, Provider),
    rule("cloudflare_blocked", on(&[]).text("error code: 1020|error 1020|error code: 1006|error code: 1007|error code: 1008|error code: 1009|error 1009|error code: 1010|error code: 1012|error code: 1106"), PermissionError, Provider),
    rule("cloudflare_worker", on(&[]).text("error code: 1101|error code: 1102|error 1101|error 1102"), ServerError, Provider),
    rule("cloudflare_tunnel", on(&[530]).text("error code: 1033|error code: 1016|error 1033|error 1016"), ConnectionError, Provider),
    rule("cloudflare_520", on(&[520]), ServerError, Provider),
    rule("cloudflare_521", on(&[521]), ConnectionError, Provider), // refused: never sent
    rule("cloudflare_522", on(&[522]), ConnectionError, Provider), // no TCP connection: never sent
    rule("cloudflare_523", on(&[523]), ConnectionError, Provider), // no route: never sent
    rule("cloudflare_524", on(&[524]), Timeout, Provider), // the origin may still be working, and billing
    rule("cloudflare_525", on(&[525]), ConnectionError, Provider),
    rule("cloudflare_526", on(&[526]), ConnectionError, Provider).retry(false).advice("the origin's certificate is wrong: use another endpoint until it is repaired"),
    rule("cloudflare_530", on(&[530]), ConnectionError, Provider),
    rule("no_healthy_upstream", on(&[502, 503]).text("no healthy upstream|no server is available"), Overloaded, Provider).from("envoyproxy.io, haproxy.org"),
    rule("upstream_connect_error", on(&[502, 503]).text("upstream connect error"), ConnectionError, Provider).from("envoyproxy.io response flags UF, UC"),
    rule("upstream_timeout", on(&[408, 503, 504]).text("upstream request timeout|stream timeout"), Timeout, Provider).from("envoyproxy.io"),
    rule("page_413", on(&[413, 414, 431]).when(Cond::NotJson), RequestTooLarge, Request),
    rule("page_429", on(&[429]).when(Cond::NotJson), RateLimited, Provider),
    rule("page_403", on(&[403]).when(Cond::NotJson), PermissionError, Provider),
    rule("page_502", on(&[502]).when(Cond::NotJson), ServerError, Provider),
    rule("page_503", on(&[503]).when(Cond::NotJson), Overloaded, Provider),
    rule("page_504", on(&[504]).when(Cond::NotJson), Timeout, Provider),
    rule("page_500", on(&[500]).when(Cond::NotJson), ServerError, Provider),
    rule("page_3xx", on(&[3]), Unknown, Provider).retry(false),
];
