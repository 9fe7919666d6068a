//! Ollama: `{"error":"text"}`, or the skins of OpenAI and Anthropic over the same texts.
//!
//! One machine: "server busy" is the whole server, "requires more system memory" is permanent though it is a 500. Long
//! prompts are cut in silence; only embeddings refuse them. After output has begun an error is a line of the NDJSON
//! stream. Source: ollama/ollama `server/routes.go`, `server/sched.go` at fb30760.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, Cancelled, NotFound, Overloaded, PermissionError, RequestTooLarge, ServerError,
};
use crate::class::Scope::{self, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("busy", on(&[429, 503, 529]).text("server busy|maximum pending requests"), Overloaded, Scope::Provider),
    rule("not_pulled", on(&[404]).text("try pulling it first|model * not found"), NotFound, Model).advice("ollama pull the model"),
    rule("memory", on(&[500]).text("requires more system memory|cuda out of memory|not enough memory|unable to allocate"), ServerError, Model).retry(false).advice("the model doesn't fit this machine: use a smaller one"),
    rule("runner", on(&[500]).text("error was encountered while running the model|llama runner process|model runner has unexpectedly stopped|llama-server"), ServerError, Model),
    rule("input_length", on(&[400, 500]).text("input length exceeds the context length|exceeds maximum context length"), RequestTooLarge, Request),
    rule("capability", on(&[400]).text("does not support"), BadRequest, Request),
    rule("sign_in", on(&[401]).code("signin_url"), AuthError, Key).advice("ollama signin"),
    rule("subscription", on(&[403]).text("subscription|upgrade"), PermissionError, Key),
    rule("cancelled", on(&[499]), Cancelled, Request), // the caller's own abort
];

pub(super) const PROVIDER: Provider = Provider {
    name: "ollama",
    hosts: &["ollama.com"],
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "github.com/ollama/ollama server/routes.go",
    ..Provider::DEFAULT
};
