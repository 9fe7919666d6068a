//! LM Studio: OpenAI's shape; errors are often `{"error":"text"}`.
//!
//! A prompt that doesn't fit is a 400 with a sentence, or a stream that is well formed, ends with `stop` and says
//! nothing (lmstudio-bug-tracker#2339): see `finish` and `silent_answer`. Source: lmstudio.ai/docs, its bug tracker.

use super::Provider;
use crate::class::ErrorClass::{NotFound, RequestTooLarge, ServerError};
use crate::class::Scope::{Model, Request};
use crate::classify::rule::{Rule, on, rule};

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("too_long", on(&[400, 500]).text("trying to keep the first|context length of only|context the overflows|initial prompt is greater than the context length"), RequestTooLarge, Request).advice("load the model with a larger context"),
    rule("no_model", on(&[400, 404]).text("no models loaded|model_not_found|no model loaded"), NotFound, Model).advice("load the model first"),
    rule("unloaded", on(&[400]).text("model unloaded|model has unloaded"), NotFound, Model),
    rule("crashed", on(&[400, 500]).text("the model has crashed"), ServerError, Model).retry(true),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "lmstudio",
    rules: RULES,
    #[cfg(not(target_arch = "wasm32"))]
    source: "github.com/lmstudio-ai/lmstudio-bug-tracker",
    ..Provider::DEFAULT
};
