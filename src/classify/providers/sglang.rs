//! `SGLang`: vLLM's manners with words of its own.
//!
//! Overflow is told in sentences that no other server uses (BerriAI/litellm#10793). Source: sgl-project/sglang
//! `srt/managers/tokenizer_manager.py`, `srt/entrypoints`.

use super::Provider;
use crate::class::ErrorClass::{Overloaded, RequestTooLarge, ServerError};
use crate::class::Scope::{self, Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("too_long", on(&[400, 500]).text("is longer than the model's context length|requested token count exceeds the model's maximum context length|input token * exceeds|exceeds the maximum allowed length"), RequestTooLarge, Request).from("BerriAI/litellm#10793"),
    rule("queue_full", on(&[429, 503]).text("request queue is full|max_queued_requests|no available workers|pending requests"), Overloaded, Model),
    rule("scheduler", on(&[500, 503]).text("scheduler hit an exception|detokenizer|health check failed"), ServerError, Scope::Provider),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "sglang",
    base: "vllm",
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "github.com/sgl-project/sglang srt/entrypoints",
    ..Provider::DEFAULT
};
