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
use crate::stream::word::{self as w, Word};

pub(super) fn read(c: &mut Cursor<'_>, name: Word, m: &mut Meaning, facts: &mut StreamFacts) {
    let (mut kind, mut shown, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            w::TYPE => kind = c.word(),
            w::DELTA => read_delta(c, m, facts, &mut shown, &mut reason),
            w::ERROR => m.error |= c.truthy(),
            w::OBJECT => m.error |= c.word() == w::ERROR,
            _ => c.skip(),
        }
    }
    match kind {
        w::CONTENT_DELTA => m.content = shown,
        w::TOOL_PLAN_DELTA | w::TOOL_CALL_START | w::TOOL_CALL_DELTA => m.content = true,
        w::MESSAGE_END => {
            m.terminal = true;
            ended(reason, m, facts);
        }
        w::ERROR => m.error = true,
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
            w::MESSAGE => *shown |= read_message(c),
            w::FINISH_REASON => *reason = c.string().unwrap_or_default(),
            w::ERROR => m.error |= c.truthy(),
            w::USAGE => facts.usage.read(c),
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
        if key == w::CONTENT && c.peek() == b'{' {
            c.enter(b'{');
            while let Some(key) = c.key() {
                if matches!(key, w::TEXT | w::THINKING) {
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
