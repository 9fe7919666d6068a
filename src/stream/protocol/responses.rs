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

pub(super) fn read(c: &mut Cursor<'_>, name: &[u8], m: &mut Meaning, facts: &mut StreamFacts) {
    let (mut kind, mut delta, mut reason) = (name, false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            b"type" => kind = c.string().unwrap_or(kind),
            b"delta" | b"partial_image_b64" => delta |= c.non_empty(),
            b"error" => m.error |= c.truthy(),
            b"response" => reason = read_response(c, m, facts),
            b"usage" => facts.usage.read(c),
            _ => c.skip(),
        }
    }
    let last = kind.rsplit(|b| *b == b'.').next().unwrap_or_default();
    match last {
        b"delta" => m.content = delta,
        b"partial_image" => m.content = true,
        b"error" => m.error = true,
        b"failed" if kind == b"response.failed" => m.error = true,
        b"completed"
            if matches!(kind, b"response.completed" | b"image_generation.completed" | b"image_edit.completed") =>
        {
            m.terminal = true;
            m.content |= !kind.starts_with(b"response");
            finish(b"completed", m, facts);
        }
        b"incomplete" if kind == b"response.incomplete" => {
            m.terminal = true;
            finish(if reason.is_empty() { b"incomplete" } else { reason }, m, facts);
        }
        b"cancelled" if kind == b"response.cancelled" => {
            m.terminal = true;
            finish(b"cancelled", m, facts);
        }
        _ => {}
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
            b"model" => facts.read_model(c),
            b"usage" => facts.usage.read(c),
            b"error" => m.error |= c.truthy(),
            b"incomplete_details" => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if key == b"reason" {
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
