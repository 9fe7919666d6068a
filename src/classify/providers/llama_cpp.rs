//! llama.cpp's server: OpenAI's shape, the status as `code`, types of its own.
//!
//! `exceed_context_size_error` carries `n_prompt_tokens` and `n_ctx`. The same overflow has been seen with 400, 500 and
//! 200, and in a stream under the SSE field `error:`, which parsers drop (ggml-org/llama.cpp#16104). "Loading model" is a
//! start that ends. Source: ggml-org/llama.cpp `tools/server`.

use super::Provider;
use crate::class::ErrorClass::{BadRequest, NotFound, Overloaded, PermissionError, RequestTooLarge};
use crate::class::Scope::{self, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("too_long", on(&[]).code("exceed_context_size_error"), RequestTooLarge, Request).advice("shorten the prompt, or start the server with a larger --ctx-size"),
    rule("too_long_text", on(&[400, 500]).text("context size has been exceeded|exceeds the available context size|input is too large to process|the request exceeds the available context"), RequestTooLarge, Request),
    rule("loading", on(&[503]).text("loading model"), Overloaded, Model),
    rule("no_slot", on(&[503]).text("no slot available"), Overloaded, Model),
    rule("unavailable", on(&[503]).code("unavailable_error"), Overloaded, Model),
    rule("not_supported", on(&[501]).code("not_supported_error"), BadRequest, Scope::Provider),
    rule("permission", on(&[403]).code("permission_error"), PermissionError, Key),
    rule("file_not_found", on(&[404]).text("file not found"), NotFound, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "llama.cpp",
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "github.com/ggml-org/llama.cpp tools/server",
    ..Provider::DEFAULT
};
