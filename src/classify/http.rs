//! What holds at every provider: codes that mean the same everywhere, texts that refine a status, and the statuses.
//!
//! A provider's own table comes first; what it doesn't say falls to these. Statuses as in RFC 9110 and the IANA
//! registry, with the habits of LLM APIs (408 and 409 are worth a try, 424 is a failure behind the API, 529 is
//! overload). An unknown 4xx is the caller's fault, an unknown 5xx the provider's.

use super::facts::is_listed;
use super::rule::{Cond, Rule, on, rule};
use super::table::{Table, table};
use crate::class::ErrorClass::{
    AuthError, BadRequest, Cancelled, ConnectionError, ContentFiltered, NotFound, Overloaded, PermissionError,
    QuotaExhausted, RateLimited, RequestTooLarge, ServerError, Timeout, Unknown,
};
use crate::class::Scope::{Bucket, Key, Model, Provider, Request};
use crate::text;

/// Where the generic rules come from.
#[cfg(not(target_arch = "wasm32"))]
pub const SOURCE: &str = "RFC 9110; openai-node src/client.ts; vercel/ai APICallError";

/// Rules that look at nothing but the status: a body that falls to one of them is one that nobody has described.
const BARE: &str = "|bad_request|unauthorized|payment_required|forbidden|not_found|conflict|client_error|\
                    internal_error|bad_gateway|unavailable|server_error|too_many_requests|";

/// Whether a verdict's rule looked at nothing but the status.
#[must_use]
pub fn is_bare(rule: &str) -> bool {
    rule.strip_prefix("generic.")
        .is_some_and(|name| text::pieces(BARE, "|").any(|bare| bare == name && !name.is_empty()))
}

/// Texts that say that the prompt is longer than the model's context, at servers of every kind.
pub(crate) const TOO_LONG: &str = "\
    maximum context length|\
    context length exceeded|\
    context_length_exceeded|\
    context length of only|\
    exceeds the context window|\
    exceed context limit|\
    exceeds the model's context|\
    exceeds context length|\
    exceeds the context length|\
    exceeds the available context size|\
    exceeds model's maximum context|\
    context size has been exceeded|\
    context window exceeded|\
    exceeds the maximum number of tokens allowed|\
    maximum prompt length|\
    prompt is too long|\
    input is too long|\
    input length * exceed|\
    is longer than the model's context length|\
    longer than the maximum model length|\
    must be less than the context length|\
    too large for model with|\
    reduce the length of the messages|\
    reduce the length of the prompt|\
    tokens + `max_new_tokens` must be|\
    max_tokens must be at least 1, got -|\
    total number of tokens in the prompt cannot exceed|\
    prompt too long|\
    please reduce your prompt|\
    token limit exceeded for this model";

/// Tried in order after the provider's own table.
#[rustfmt::skip] // one rule a line
pub const RULES: &[Rule] = &[
    // A request that can never fit is not a rate limit, however it is coded.
    rule("never_fits", on(&[413, 429]).when(Cond::NeverFits), RequestTooLarge, Request).from("continuedev/continue#11472"),
    rule("request_too_large_for_limit", on(&[429]).text("^request too large|request too large for"), RequestTooLarge, Request).from("platform.openai.com/docs/guides/rate-limits"),
    // Money. Waiting doesn't help.
    rule("insufficient_quota", on(&[402, 403, 429]).code("insufficient_quota|billing_hard_limit_reached|billing_not_active|credit_balance_exhausted|quota_exceeded|insufficient_credits|insufficient_balance|billing_error|account_deactivated"), QuotaExhausted, Key),
    rule("billing_text", on(&[400, 403, 429]).text("credit balance is too low|insufficient credits|insufficient balance|no prepaid credits|spending limit|spend limit|purchase more credits|out of credits"), QuotaExhausted, Key),
    // Limits.
    rule("daily_limit", on(&[429]).text("tokens per day limit|requests per day limit|daily limit|daily quota|daily free allocation").unless("try again in"), QuotaExhausted, Bucket),
    rule("rate_limit_code", on(&[429]).code("rate_limit_exceeded|rate_limit_error|rate_limited|too_many_requests|requests|tokens"), RateLimited, Bucket),
    rule("capacity", on(&[429]).code("overloaded|overloaded_error|capacity_exceeded|server_is_overloaded|engine_overloaded"), Overloaded, Model),
    rule("capacity_text", on(&[429]).text("overloaded|out of capacity|at capacity|high demand|capacity exceeded"), Overloaded, Model),
    // The prompt is too long: 400 at most, 413 and 422 at some, 500 at llama.cpp, 403 at Together.
    rule("context_length_code", on(&[400, 413, 422, 500]).code("context_length_exceeded|exceed_context_size_error|request_too_large|payload_too_large|token_limit_exceeded|string_too_long|max_tokens_exceeded"), RequestTooLarge, Request),
    rule("context_length", on(&[400, 413, 422, 500]).text(TOO_LONG), RequestTooLarge, Request),
    // Safety systems.
    rule("content_policy", on(&[400, 403, 422]).code("content_policy_violation|content_filter|content_filtered|responsibleaipolicyviolation|moderation_blocked|moderation|invalid_prompt_policy"), ContentFiltered, Request),
    rule("content_policy_text", on(&[400, 403]).text("content management policy|content filtering policy|violating our usage policy|violates our usage polic|safety system|usage guidelines"), ContentFiltered, Request),
    // Models that aren't there, told with another status than 404.
    rule("model_not_found_code", on(&[400, 422]).code("model_not_found|invalid_model|model_not_supported|model_deprecated"), NotFound, Model),
    rule("model_access", on(&[403]).code("model_not_found"), PermissionError, Model),
    rule("model_not_found_text", on(&[400]).text("is not a valid model id|no such model|model * does not exist|^invalid model|^unknown model|model not found"), NotFound, Model),
    // Keys, told with another status than 401.
    rule("invalid_key_code", on(&[400, 403]).code("invalid_api_key|api_key_invalid|authentication_error|invalid_authentication"), AuthError, Key),
    rule("invalid_key_text", on(&[400]).text("^incorrect api key|api key not valid|api key expired|^invalid api key"), AuthError, Key),
    rule("ip_not_allowed", on(&[401, 403]).code("ip_not_authorized|unsupported_country_region_territory"), PermissionError, Provider),
    rule("region", on(&[400, 403]).text("country, region, or territory not supported|user location is not supported|not available in your country|not available in your region"), PermissionError, Provider),
    // The output was at fault, not the request.
    rule("tool_use_failed", on(&[400]).code("tool_use_failed"), BadRequest, Request).retry(true).from("console.groq.com/docs/errors"),
    // Permanent failures that wear a 5xx.
    rule("not_supported", on(&[500, 503]).code("not_supported_error"), BadRequest, Provider).retry(false),
    // Overload told with another status than 503.
    rule("overloaded_code", on(&[5]).code("overloaded_error|server_is_overloaded|slow_down|engine_overloaded|provider_overloaded|overloaded"), Overloaded, Model),
    rule("overloaded_text", on(&[500, 502, 503]).text("overloaded|at capacity|high demand"), Overloaded, Model),
    rule("upstream_unreachable", on(&[503]).text("upstream connect error"), ConnectionError, Provider).from("envoyproxy.io response flags UF, UC"),
    // Statuses.
    rule("wrong_path", on(&[404]).text("^invalid url|^resource not found|^not found|404 page not found|^cannot post|^no route|^unknown request url|unrecognized request url|^unexpected endpoint"), NotFound, Provider).advice("check the base URL and the API version: every model fails there"),
    rule("wrong_path_page", on(&[404]).when(Cond::NotJson), NotFound, Provider).advice("check the base URL: this page isn't from the API"),
    rule("invalid_request", on(&[400, 422]).code("invalid_request_error|invalid_request|invalid_argument|validationexception|bad_request|badrequesterror|validation_error|value_error"), BadRequest, Request),
    rule("bad_request", on(&[400, 405, 406, 411, 412, 415, 416, 417, 418, 422, 426, 428]), BadRequest, Request),
    rule("unauthorized", on(&[401]), AuthError, Key),
    rule("proxy_auth", on(&[407]), AuthError, Provider).advice("give the proxy on the way its credentials"),
    rule("payment_required", on(&[402]), QuotaExhausted, Key),
    rule("forbidden", on(&[403]), PermissionError, Key),
    rule("not_found", on(&[404, 410]), NotFound, Model),
    rule("request_timeout", on(&[408]), Timeout, Provider),
    rule("conflict", on(&[409, 423, 425]), Unknown, Request).retry(true).from("openai-node src/client.ts: 409 is a lock timeout"),
    rule("too_large", on(&[413, 414, 431]), RequestTooLarge, Request),
    rule("failed_dependency", on(&[424]), ServerError, Model),
    rule("too_many_requests", on(&[429]), RateLimited, Bucket),
    rule("legal_reasons", on(&[451]), PermissionError, Provider),
    rule("client_closed", on(&[499]), Cancelled, Request),
    rule("client_error", on(&[4]), BadRequest, Request),
    rule("internal_error", on(&[500]), ServerError, Provider),
    rule("not_implemented", on(&[501, 505]), BadRequest, Provider),
    rule("bad_gateway", on(&[502, 520]), ServerError, Provider),
    rule("unavailable", on(&[503]), Overloaded, Provider),
    rule("gateway_timeout", on(&[504, 524]), Timeout, Provider),
    rule("origin_unreachable", on(&[521, 522, 523, 525, 527, 530]), ConnectionError, Provider),
    rule("origin_certificate", on(&[526]), ConnectionError, Provider).retry(false),
    rule("overloaded", on(&[529]), Overloaded, Model),
    rule("network_login", on(&[511]), PermissionError, Provider).advice("log in to the network you are on: it answers in the provider's place"),
    rule("server_error", on(&[5]), ServerError, Provider),
    rule("redirect", on(&[3]), Unknown, Provider).retry(false).advice("use the URL that the redirect names"),
];

/// The same, packed.
pub const TABLE: Table = table!(RULES);

/// The HTTP status whose meaning a code has: an error inside an HTTP 200 is what it would be with that status.
#[rustfmt::skip] // one rule a line
const TWINS: &[(u16, &str)] = &[
    (400, "invalid_request_error|invalid_request|invalid_prompt|bad_request|badrequesterror|validationexception|invalid_argument|failed_precondition|context_length_exceeded|exceed_context_size_error|content_policy_violation|content_filter|invalid_image|refusal|out_of_range|constraint_filtered"),
    (401, "authentication_error|authentication|unauthenticated|invalid_api_key|unauthorized|expiredtokenexception|unrecognizedclientexception"),
    (402, "billing_error|payment_required"),
    (403, "permission_error|permission_denied|forbidden|accessdeniedexception|data_residency_mismatch"),
    (404, "not_found_error|not_found|model_not_found|notfounderror|resourcenotfoundexception"),
    (408, "modeltimeoutexception|request_timeout"),
    (409, "conflict_error|aborted"),
    (413, "request_too_large|payload_too_large|token_limit_exceeded|string_too_long|max_tokens_exceeded"),
    (422, "unprocessable|unprocessable_entity"),
    (424, "modelerrorexception|modelstreamerrorexception|generation"),
    (429, "rate_limit_exceeded|rate_limit_error|rate_limited|too_many_requests|requests|tokens|insufficient_quota|quota_exceeded|resource_exhausted|throttlingexception|throttling|toomanyrequestsexception|credit_balance_exhausted|organization_spend_limit_exceeded|project_spend_limit_exceeded|organization_usage_limit_exceeded|billing_hard_limit_reached|billing_not_active|usage_limit_reached"),
    (499, "cancelled|canceled"),
    (500, "server_error|api_error|internal_server_error|internalservererror|internal_error|internalerror|internal|internalserverexception|internal_failure|internalfailure|server|vector_store_timeout|unmapped|data_loss"),
    (501, "not_supported_error|not_implemented|unimplemented"),
    (502, "provider_unavailable|bad_gateway"),
    (503, "service_unavailable|service_unavailable_error|serviceunavailableexception|unavailable|unavailable_error|server_is_overloaded|slow_down|modelnotreadyexception"),
    (504, "timeout_error|timeout|deadline_exceeded|gateway_timeout"),
    (529, "overloaded_error|overloaded|provider_overloaded|engine_overloaded"),
];

/// The beginnings of texts that stand for a status where an error inside an HTTP 200 has no code at all.
#[rustfmt::skip] // one rule a line
const TEXT_TWINS: &[(u16, &str)] = &[
    (429, "^rate limit|^too many requests|^you exceeded your current quota"),
    (529, "overloaded|server busy"),
    (401, "^unauthorized|^incorrect api key|^invalid api key|^invalid credentials"),
    (400, TOO_LONG),
    (504, "timed out|^timeout"),
];

/// The status of the twin of an error that came without one; 0 if it has none.
pub(crate) fn twin_status(facts: &super::facts::Facts) -> u16 {
    let of = |code: &str| TWINS.iter().find_map(|(status, codes)| is_listed(code, codes).then_some(*status));
    // OpenRouter's error types are the truth where its native code is lossy (`server_error` for a bad key).
    let lossy = |status: &u16| *status != 500;
    let exact = facts.codes().filter_map(of).find(lossy);
    if let Some(status) = exact.or(facts.status).or_else(|| facts.codes().find_map(of)) {
        return status;
    }
    let by_text = TEXT_TWINS.iter().find_map(|(status, texts)| facts.says_any(texts).then_some(*status));
    match by_text {
        Some(status) => status,
        // No word names it: a server that fails after its head has been sent.
        None if facts.codes().all(|c| c.starts_with("response.") || c == "failed") => 500,
        None => 0,
    }
}
