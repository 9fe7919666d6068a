//! vLLM: OpenAI's shape, nested or (older) flat, with Python's exception names as `type` and the status as `code`.
//!
//! A prompt that is too long shows as a negative `max_tokens`. A dead engine stays dead until the process restarts. Inside
//! a stream an error is followed by `[DONE]`. Source: vllm-project/vllm `entrypoints/openai`.

use super::Provider;
use crate::class::ErrorClass::{AuthError, NotFound, Overloaded, RequestTooLarge, ServerError};
use crate::class::Scope::{self, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("too_long", on(&[400, 500]).text("maximum context length is|max_tokens must be at least 1, got -|longer than the maximum model length|max_completion_tokens must be at least 1, got -|is longer than the model's context"), RequestTooLarge, Request),
    rule("engine_dead", on(&[5]).text("enginecore encountered an issue|enginedeaderror|engine is dead|background loop has errored|engine loop has died"), ServerError, Scope::Provider).advice("restart the server: every call fails until then"),
    rule("sleeping", on(&[503]).text("model is sleeping|server is not ready"), Overloaded, Scope::Provider),
    rule("model", on(&[404]).code("notfounderror"), NotFound, Model),
    rule("unauthorized", on(&[401]).text("^unauthorized"), AuthError, Key),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "vllm",
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "github.com/vllm-project/vllm entrypoints/openai",
    ..Provider::DEFAULT
};
