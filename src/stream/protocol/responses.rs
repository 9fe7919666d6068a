//! OpenAI Responses, and the image streams that are written the same way.
//!
//! | | |
//! | --- | --- |
//! | first content | `*.delta` with something in it, `*.partial_image` |
//! | not content | `response.created`, `.queued`, `.in_progress`, `*.added`, `*.done` |
//! | normal end | `response.completed`, `response.incomplete` (a length stop, unless `content_filter`); no `[DONE]` |
//! | error | `error` (nested or flat), `response.error` (OpenRouter), `response.failed`; `response.cancelled` breaks off |
//! | usage | `response.usage` of the closing event |
//!
//! Sources: openai-openapi `ResponseStreamEvent`; vercel/ai `openai-error.1.chunks.txt`; OpenRouterTeam/docs
//! `errors-and-debugging.mdx`.

use super::{Finish, Meaning, finish};
use crate::stream::facts::StreamFacts;
use crate::stream::member::Cursor;
use crate::stream::word as w;

pub(super) fn read(c: &mut Cursor<'_>, name: &[u8], m: &mut Meaning, facts: &mut StreamFacts) {
    let (mut kind, mut delta, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            w::TYPE => kind = c.string().unwrap_or(kind),
            w::DELTA | w::PARTIAL_IMAGE_B64 => delta |= c.non_empty(),
            w::ERROR => m.error |= c.truthy(),
            w::RESPONSE => reason = read_response(c, m, facts),
            w::USAGE => facts.usage.read(c),
            _ => c.skip(),
        }
    }
    match w::word(kind) {
        w::ERROR | w::RESPONSE_ERROR | w::RESPONSE_FAILED => m.error = true,
        w::RESPONSE_COMPLETED => {
            m.terminal = true;
            finish(b"completed", m, facts);
        }
        w::IMAGE_GENERATION_COMPLETED | w::IMAGE_EDIT_COMPLETED => {
            (m.terminal, m.content) = (true, true);
            finish(b"completed", m, facts);
        }
        w::RESPONSE_INCOMPLETE => {
            m.terminal = true;
            finish(if reason.is_empty() { b"incomplete" } else { reason }, m, facts);
        }
        w::RESPONSE_CANCELLED => {
            m.terminal = true;
            finish(b"cancelled", m, facts);
        }
        _ => m.content = delta && (kind.ends_with(b".delta") || kind.ends_with(b".partial_image")),
    }
    if m.error {
        m.finish = Finish::None;
    }
}

/// The `response` member; returns why it is incomplete.
fn read_response<'a>(c: &mut Cursor<'a>, m: &mut Meaning, facts: &mut StreamFacts) -> &'a [u8] {
    let mut reason = &[][..];
    if !c.enter(b'{') {
        return reason;
    }
    while let Some(key) = c.key() {
        match key {
            w::MODEL => facts.read_model(c),
            w::USAGE => facts.usage.read(c),
            w::ERROR => m.error |= c.truthy(),
            w::INCOMPLETE_DETAILS => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if key == w::REASON {
                            reason = c.string().unwrap_or_default();
                        } else {
                            c.skip();
                        }
                    }
                }
            }
            _ => c.skip(),
        }
    }
    reason
}
