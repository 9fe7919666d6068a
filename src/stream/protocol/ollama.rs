//! Ollama `/api/chat` and `/api/generate`: NDJSON.
//!
//! | | |
//! | --- | --- |
//! | first content | non-empty `message.content`, `message.thinking` or `message.tool_calls`; `response`, `thinking` (generate) |
//! | normal end | a line with `done:true` |
//! | error | a line with `error` |
//! | usage | `prompt_eval_count`, `eval_count` of the last line |
//!
//! Source: ollama `server/routes.go`, `streamResponse`.

use super::{Meaning, ended};
use crate::stream::facts::{StreamFacts, set};
use crate::stream::member::Cursor;

pub(super) fn read(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts) {
    let mut reason = &[][..];
    while let Some(key) = c.key() {
        match key {
            b"message" => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if matches!(key, b"content" | b"thinking" | b"tool_calls" | b"images") {
                            m.content |= c.non_empty();
                        } else {
                            c.skip();
                        }
                    }
                }
            }
            b"response" | b"thinking" => m.content |= c.non_empty(),
            b"done" => m.terminal = c.truthy(),
            b"done_reason" => reason = c.string().unwrap_or_default(),
            b"error" => m.error |= c.truthy(),
            b"model" => facts.read_model(c),
            b"prompt_eval_count" => set(&mut facts.usage.input, c.uint()),
            b"eval_count" => set(&mut facts.usage.output, c.uint()),
            _ => c.skip(),
        }
    }
    if m.terminal {
        ended(reason, m, facts);
    }
}
