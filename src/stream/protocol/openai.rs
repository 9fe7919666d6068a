//! OpenAI chat completions, legacy completions, and everyone compatible: OpenRouter, Groq, DeepSeek, Mistral, vLLM, `SGLang`,
//! llama.cpp, LM Studio, Azure, Workers AI, TGI.
//!
//! | | |
//! | --- | --- |
//! | first content | non-empty `delta.content` (a string, or parts), `reasoning_content`, `reasoning`, `tool_calls`, `refusal`, `audio`, `function_call`, `images`; `choices[].text`; Workers AI `response`; TGI `token` |
//! | not content | the role chunk with `content:""`; Azure's `choices:[]` with `prompt_filter_results`; OpenRouter's `debug` chunk |
//! | normal end | `finish_reason` of every choice, or `[DONE]` |
//! | keep-alive | comments: `: OPENROUTER PROCESSING`, `: keep-alive` (DeepSeek) |
//! | error | a true `error` at the top or in a choice; `object:"error"` (Mistral, older vLLM); `x_groq.error`; `finish_reason` `error`, `insufficient_system_resource` (DeepSeek) |
//! | usage | `usage` (last chunk), `x_groq.usage` |
//!
//! Sources: openai-node `src/core/streaming.ts`; openai-openapi; OpenRouterTeam/docs `api_reference/streaming.mdx`;
//! groq-typescript `src/core/streaming.ts`; DeepSeek API reference; vLLM `create_streaming_error_response`;
//! ggml-org/llama.cpp#16104.

use super::{Choices, Finish, Meaning, finish};
use crate::stream::facts::StreamFacts;
use crate::stream::member::Cursor;
use crate::stream::word::Word;

pub(super) fn read(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    while let Some(key) = c.key() {
        match key {
            Word::Choices => read_choices(c, m, facts, choices),
            Word::Error => m.error |= c.truthy(),
            Word::Object | Word::Type => m.error |= c.word() == Word::Error,
            Word::Model => facts.read_model(c),
            Word::Usage => facts.usage.read(c),
            Word::XGroq => read_groq(c, m, facts),
            Word::Response | Word::Token => m.content |= c.non_empty(),
            Word::GeneratedText => {
                if c.truthy() {
                    m.finish = m.finish.max(Finish::Good);
                }
            }
            _ => c.skip(),
        }
    }
}

pub(super) fn read_choices(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    if !c.enter(b'[') {
        return;
    }
    while c.item() {
        if !c.enter(b'{') {
            continue;
        }
        let (mut index, mut finished) = (0, false);
        while let Some(key) = c.key() {
            match key {
                Word::Delta | Word::Message => read_delta(c, m),
                Word::Text => m.content |= c.non_empty(),
                Word::Index => index = c.uint().unwrap_or_default(),
                Word::FinishReason => {
                    if let Some(reason) = c.string().filter(|reason| !reason.is_empty()) {
                        finished = true;
                        finish(reason, m, facts);
                    }
                }
                Word::Error => m.error |= c.truthy(),
                _ => c.skip(),
            }
        }
        choices.note(index, finished);
    }
}

fn read_delta(c: &mut Cursor<'_>, m: &mut Meaning) {
    if !c.enter(b'{') {
        return;
    }
    while let Some(key) = c.key() {
        match key {
            Word::Content
            | Word::ReasoningContent
            | Word::Reasoning
            | Word::ReasoningDetails
            | Word::ToolCalls
            | Word::Refusal
            | Word::Audio
            | Word::FunctionCall
            | Word::Images => m.content |= c.non_empty(),
            _ => c.skip(),
        }
    }
}

fn read_groq(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts) {
    if !c.enter(b'{') {
        return;
    }
    while let Some(key) = c.key() {
        match key {
            Word::Usage => facts.usage.read(c),
            Word::Error => m.error |= c.truthy(),
            _ => c.skip(),
        }
    }
}
