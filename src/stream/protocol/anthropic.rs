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
use crate::stream::word::{self as w, Word};

pub(super) fn read(c: &mut Cursor<'_>, name: Word, m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    let (mut kind, mut shown, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            w::TYPE => kind = c.word(),
            w::DELTA | w::CONTENT_BLOCK => shown |= read_part(c, &mut reason),
            w::MESSAGE => read_message(c, facts),
            w::USAGE => facts.usage.read(c),
            w::ERROR => m.error |= c.truthy(),
            w::COMPLETION | w::GENERATION | w::OUTPUT_TEXT | w::OUTPUTS => m.content |= c.non_empty(),
            w::CHOICES => openai::read_choices(c, m, facts, choices),
            w::COMPLETION_REASON | w::STOP_REASON | w::STOP_REASON_CAMEL => reason = c.string().unwrap_or(reason),
            w::BLOCK_START | w::BLOCK_DELTA | w::MESSAGE_STOP_CAMEL | w::METADATA => {
                bedrock::read_wrapped(c, key, m, facts);
            }
            w::INVOCATION_METRICS => {
                facts.usage.read(c);
                m.terminal = true;
            }
            _ => c.skip(),
        }
    }
    match kind {
        w::CONTENT_BLOCK_DELTA | w::CONTENT_BLOCK_START => m.content |= shown,
        w::MESSAGE_STOP => m.terminal = true,
        w::ERROR => m.error = true,
        w::PING => m.aside = true,
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
            w::TYPE => {
                let kind = c.string().unwrap_or_default();
                plain = kind.ends_with(b"_delta") || matches!(w::word(kind), w::NONE | w::TEXT | w::THINKING);
            }
            w::TEXT | w::THINKING | w::PARTIAL_JSON | w::CITATION => shown |= c.non_empty(),
            w::STOP_REASON => *reason = c.string().unwrap_or_default(),
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
            w::MODEL => facts.read_model(c),
            w::USAGE => facts.usage.read(c),
            _ => c.skip(),
        }
    }
}
