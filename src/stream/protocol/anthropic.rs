//! Anthropic messages, and what Bedrock's invoke stream wraps of other models.
//!
//! | | |
//! | --- | --- |
//! | first content | `content_block_delta` with something in it; `content_block_start` of anything but an empty text or thinking block |
//! | not content | `message_start`, `ping`, `content_block_stop`, `signature_delta` |
//! | normal end | `message_delta` with a `stop_reason`, then `message_stop` |
//! | keep-alive | `event: ping` |
//! | error | `event: error`, `type:"error"`, a true `error` member |
//! | usage | input in `message_start.message.usage`, output (cumulative) in `message_delta.usage` |
//!
//! Sources: docs.claude.com streaming page; anthropic-sdk-typescript `src/core/streaming.ts`, `StopReason`. Other models on
//! Bedrock: Titan `outputText`/`completionReason`, Llama `generation`/`stop_reason`, Mistral `outputs`, Nova's Converse
//! events, OpenAI `choices`; `amazon-bedrock-invocationMetrics` closes all of them.

use super::{Choices, Finish, Meaning, bedrock, finish, openai};
use crate::stream::facts::StreamFacts;
use crate::stream::member::Cursor;

pub(super) fn read(c: &mut Cursor<'_>, name: &[u8], m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    let (mut kind, mut shown, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            b"type" => kind = c.string().unwrap_or(kind),
            b"delta" | b"content_block" => shown |= read_part(c, &mut reason),
            b"message" => read_message(c, facts),
            b"usage" => facts.usage.read(c),
            b"error" => m.error |= c.truthy(),
            b"completion" | b"generation" | b"outputText" | b"outputs" => m.content |= c.non_empty(),
            b"choices" => openai::read_choices(c, m, facts, choices),
            b"completionReason" | b"stop_reason" | b"stopReason" => reason = c.string().unwrap_or(reason),
            b"contentBlockStart" | b"contentBlockDelta" | b"messageStop" | b"metadata" => {
                bedrock::read_wrapped(c, key, m, facts);
            }
            b"amazon-bedrock-invocationMetrics" => {
                facts.usage.read(c);
                m.terminal = true;
            }
            _ => c.skip(),
        }
    }
    match kind {
        b"content_block_delta" | b"content_block_start" => m.content |= shown,
        b"message_stop" => m.terminal = true,
        b"error" => m.error = true,
        b"ping" => m.aside = true,
        _ => {}
    }
    finish(reason, m, facts);
    if m.error {
        m.finish = Finish::None;
    }
}

/// A delta or a content block; whether it shows something.
fn read_part<'a>(c: &mut Cursor<'a>, reason: &mut &'a [u8]) -> bool {
    let (mut shown, mut plain) = (false, true);
    if !c.enter(b'{') {
        return false;
    }
    while let Some(key) = c.key() {
        match key {
            b"type" => {
                let kind = c.string().unwrap_or_default();
                plain = kind.ends_with(b"_delta") || matches!(kind, b"" | b"text" | b"thinking");
            }
            b"text" | b"thinking" | b"partial_json" | b"citation" => shown |= c.non_empty(),
            b"stop_reason" => *reason = c.string().unwrap_or_default(),
            _ => c.skip(),
        }
    }
    shown || !plain
}

fn read_message(c: &mut Cursor<'_>, facts: &mut StreamFacts) {
    if !c.enter(b'{') {
        return;
    }
    while let Some(key) = c.key() {
        match key {
            b"model" => facts.read_model(c),
            b"usage" => facts.usage.read(c),
            _ => c.skip(),
        }
    }
}
