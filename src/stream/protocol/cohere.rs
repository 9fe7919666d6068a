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

pub(super) fn read(c: &mut Cursor<'_>, name: &[u8], m: &mut Meaning, facts: &mut StreamFacts) {
    let (mut kind, mut shown, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            b"type" => kind = c.string().unwrap_or(kind),
            b"delta" => read_delta(c, m, facts, &mut shown, &mut reason),
            b"error" => m.error |= c.truthy(),
            b"object" => m.error |= c.string() == Some(b"error"),
            _ => c.skip(),
        }
    }
    match kind {
        b"content-delta" => m.content = shown,
        b"tool-plan-delta" | b"tool-call-start" | b"tool-call-delta" => m.content = true,
        b"message-end" => {
            m.terminal = true;
            ended(reason, m, facts);
        }
        b"error" => m.error = true,
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
            b"message" => *shown |= read_message(c),
            b"finish_reason" => *reason = c.string().unwrap_or_default(),
            b"error" => m.error |= c.truthy(),
            b"usage" => facts.usage.read(c),
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
        if key == b"content" && c.peek() == b'{' {
            c.enter(b'{');
            while let Some(key) = c.key() {
                if matches!(key, b"text" | b"thinking") {
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
