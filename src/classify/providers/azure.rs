//! Azure OpenAI and Azure AI Foundry: OpenAI's API behind Azure's gateway.
//!
//! `error.code` is often only the HTTP number as a string, so the text has to tell. The same sentence stands for a
//! limit of a minute and of a day: only the wait does. `x-ratelimit-reset-*` holds bare seconds here, `-1` and `0`
//! meaning no data. Filters answer 400 with "modify your prompt and retry". Sources: learn.microsoft.com Azure OpenAI
//! quotas, openai-node#1108, openai-dotnet#838.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, ContentFiltered, NotFound, Overloaded, PermissionError, QuotaExhausted, RateLimited, ServerError,
    Timeout,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Cond, Rule, on, rule};
use crate::limits::Window;

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("rbac", on(&[401, 403]).code("permissiondenied|authorizationfailed"), PermissionError, Key).advice("assign the role Cognitive Services OpenAI User to this identity"),
    rule("rbac_text", on(&[401, 403]).text("lacks the required data action|does not have authorization"), PermissionError, Key).advice("assign the role Cognitive Services OpenAI User to this identity"),
    rule("network", on(&[403]).text("virtual network|firewall rules|public access is disabled|private endpoint"), PermissionError, Scope::Provider).advice("call from an allowed network"),
    rule("invalid_key", on(&[401]), AuthError, Key),
    rule("content_filter", on(&[400]).code("content_filter|responsibleaipolicyviolation"), ContentFiltered, Request),
    rule("content_filter_text", on(&[400]).text("content management policy"), ContentFiltered, Request),
    rule("deployment_not_found", on(&[404]).code("deploymentnotfound"), NotFound, Model).advice("check the deployment's name; a new one needs some minutes"),
    rule("model_not_found", on(&[400, 404]).code("model_not_found|unknown_model|unavailable_model"), NotFound, Model),
    rule("resource_not_found", on(&[404]).text("resource not found"), NotFound, Scope::Provider).advice("check the endpoint and the api-version: every model fails there"),
    rule("high_demand", on(&[429, 503]).text("high demand|currently overloaded|at capacity|temporarily unable to process"), Overloaded, Model),
    rule("insufficient_quota", on(&[429]).code("insufficient_quota|quotaexceeded"), QuotaExhausted, Key),
    rule("long_wait", on(&[429]).when(Cond::WaitHours(6)), QuotaExhausted, Bucket).from("dbchatprov2#2: retry after 86400 seconds").advice("the day's quota is used up: ask for more, or use another deployment"),
    rule("rate_limit", on(&[429]), RateLimited, Bucket),
    rule("timeout", on(&[408]).code("timeout|requesttimeout"), Timeout, Request),
    rule("unavailable", on(&[503]), Overloaded, Model),
    rule("internal", on(&[500]).code("internalservererror"), ServerError, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "azure",
    hosts: &[
        "*.openai.azure.com",
        "*.cognitiveservices.azure.com",
        "*.services.ai.azure.com",
        "*.models.ai.azure.com",
        "*.openai.azure.us",
    ],
    rules: RULES,
    request_id: &["apim-request-id", "x-request-id"],
    windows: (Window::Minute, Window::Minute),
    #[cfg(not(target_arch = "wasm32"))]
    source: "learn.microsoft.com/azure/ai-services/openai/quotas-limits",
    ..Provider::DEFAULT
};
