//! Google Vertex AI: Gemini's protocol with OAuth tokens and a shared capacity.
//!
//! A 429 without details is not the caller's limit: under dynamic shared quota it means that the region has no
//! capacity for the model now (googleapis/js-genai#1364: quota pages show less than 100 %). Everything else is as in
//! `gemini.rs`; Claude on Vertex speaks Anthropic's protocol. Source: cloud.google.com/vertex-ai error codes.

use super::Provider;
use crate::class::ErrorClass::{AuthError, NotFound, Overloaded, PermissionError};
use crate::class::Scope::{Key, Model};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("token_expired", on(&[401]).code("access_token_expired"), AuthError, Key).advice("refresh the OAuth token"),
    rule("unauthenticated", on(&[401]).code("unauthenticated|credentials_missing"), AuthError, Key).advice("send a valid OAuth token"),
    rule("iam", on(&[403]).code("iam_permission_denied"), PermissionError, Key).advice("grant the role aiplatform.user to the caller"),
    rule("publisher_model", on(&[404]).text("publisher model"), NotFound, Model),
    rule("shared_capacity", on(&[429]).text("out of capacity|^resource exhausted|^resource has been exhausted").unless("perday|per day|perminute"), Overloaded, Model).from("googleapis/js-genai#1364").advice("use another region or the global endpoint, or buy provisioned throughput"),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "vertex",
    hosts: &["aiplatform.googleapis.com", "*-aiplatform.googleapis.com", "aiplatform.*.rep.googleapis.com"],
    base: "gemini",
    rules: RULES,
    request_id: &["request-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors",
    ..Provider::DEFAULT
};
