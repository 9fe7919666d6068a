//! Cohere v2 chat.
//!
//! | | |
//! | --- | --- |
//! | first content | `content-delta`, `tool-plan-delta`, `tool-call-start`, `tool-call-delta` |
//! | not content | `message-start`, `content-start`, `content-end` |
//! | normal end | `message-end` |
//! | error | `message-end` with `finish_reason` `ERROR` or `TIMEOUT`, or with `delta.error` |
//! | usage | `message-end.delta.usage.tokens`, else `billed_units` |
//!
//! Source: cohere-developer-experience `cohere-openapi.yaml`, `ChatMessageEndEvent`.

use super::{Finish, Meaning, ended};
use crate::stream::facts::StreamFacts;
use crate::stream::member::Cursor;
use crate::stream::word::Word;

pub(super) fn read(c: &mut Cursor<'_>, name: Word, m: &mut Meaning, facts: &mut StreamFacts) {
    let (mut kind, mut shown, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            Word::Type => kind = c.word(),
            Word::Delta => read_delta(c, m, facts, &mut shown, &mut reason),
            Word::Error => m.error |= c.truthy(),
            Word::Object => m.error |= c.word() == Word::Error,
            _ => c.skip(),
        }
    }
    match kind {
        Word::ContentDelta => m.content = shown,
        Word::ToolPlanDelta | Word::ToolCallStart | Word::ToolCallDelta => m.content = true,
        Word::MessageEnd => {
            m.terminal = true;
            ended(reason, m, facts);
        }
        Word::Error => m.error = true,
        _ => {}
    }
    m.error |= m.finish == Finish::Broken;
}

fn read_delta<'a>(
    c: &mut Cursor<'a>,
    m: &mut Meaning,
    facts: &mut StreamFacts,
    shown: &mut bool,
    reason: &mut &'a [u8],
) {
    if !c.enter(b'{') {
        return;
    }
    while let Some(key) = c.key() {
        match key {
            Word::Message => *shown |= read_message(c),
            Word::FinishReason => *reason = c.string().unwrap_or_default(),
            Word::Error => m.error |= c.truthy(),
            Word::Usage => facts.usage.read(c),
            _ => c.skip(),
        }
    }
}

/// `{"content":{"text":"…"}}` or `{"content":{"thinking":"…"}}`.
fn read_message(c: &mut Cursor<'_>) -> bool {
    let mut shown = false;
    if !c.enter(b'{') {
        return false;
    }
    while let Some(key) = c.key() {
        if key == Word::Content && c.peek() == b'{' {
            c.enter(b'{');
            while let Some(key) = c.key() {
                if matches!(key, Word::Text | Word::Thinking) {
                    shown |= c.non_empty();
                } else {
                    c.skip();
                }
            }
        } else {
            c.skip();
        }
    }
    shown
}
