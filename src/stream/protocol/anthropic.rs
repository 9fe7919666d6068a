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
use crate::stream::word::{Word, word};

pub(super) fn read(c: &mut Cursor<'_>, name: Word, m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    let (mut kind, mut shown, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            Word::Type => kind = c.word(),
            Word::Delta | Word::ContentBlock => shown |= read_part(c, &mut reason),
            Word::Message => read_message(c, facts),
            Word::Usage => facts.usage.read(c),
            Word::Error => m.error |= c.truthy(),
            Word::Completion | Word::Generation | Word::OutputText | Word::Outputs => m.content |= c.non_empty(),
            Word::Choices => openai::read_choices(c, m, facts, choices),
            Word::CompletionReason | Word::StopReason | Word::StopReasonCamel => reason = c.string().unwrap_or(reason),
            Word::BlockStart | Word::BlockDelta | Word::MessageStopCamel | Word::Metadata => {
                bedrock::read_wrapped(c, key, m, facts);
            }
            Word::InvocationMetrics => {
                facts.usage.read(c);
                m.terminal = true;
            }
            _ => c.skip(),
        }
    }
    match kind {
        Word::ContentBlockDelta | Word::ContentBlockStart => m.content |= shown,
        Word::MessageStop => m.terminal = true,
        Word::Error => m.error = true,
        Word::Ping => m.aside = true,
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
            Word::Type => {
                let kind = c.string().unwrap_or_default();
                plain = kind.ends_with(b"_delta") || matches!(word(kind), Word::None | Word::Text | Word::Thinking);
            }
            Word::Text | Word::Thinking | Word::PartialJson | Word::Citation => shown |= c.non_empty(),
            Word::StopReason => *reason = c.string().unwrap_or_default(),
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
            Word::Model => facts.read_model(c),
            Word::Usage => facts.usage.read(c),
            _ => c.skip(),
        }
    }
}
