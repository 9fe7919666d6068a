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
use crate::stream::word::{Word, word};

pub(super) fn read(c: &mut Cursor<'_>, name: &[u8], m: &mut Meaning, facts: &mut StreamFacts) {
    let (mut kind, mut delta, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            Word::Type => kind = c.string().unwrap_or(kind),
            Word::Delta | Word::PartialImageB64 => delta |= c.non_empty(),
            Word::Error => m.error |= c.truthy(),
            Word::Response => reason = read_response(c, m, facts),
            Word::Usage => facts.usage.read(c),
            _ => c.skip(),
        }
    }
    match word(kind) {
        Word::Error | Word::ResponseError | Word::ResponseFailed => m.error = true,
        Word::ResponseCompleted => {
            m.terminal = true;
            finish(b"completed", m, facts);
        }
        Word::ImageGenerationCompleted | Word::ImageEditCompleted => {
            (m.terminal, m.content) = (true, true);
            finish(b"completed", m, facts);
        }
        Word::ResponseIncomplete => {
            m.terminal = true;
            finish(if reason.is_empty() { b"incomplete" } else { reason }, m, facts);
        }
        Word::ResponseCancelled => {
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
            Word::Model => facts.read_model(c),
            Word::Usage => facts.usage.read(c),
            Word::Error => m.error |= c.truthy(),
            Word::IncompleteDetails => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if key == Word::Reason {
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
