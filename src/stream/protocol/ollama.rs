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
use crate::stream::word as w;

pub(super) fn read(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts) {
    let mut reason = &[][..];
    while let Some(key) = c.key() {
        match key {
            w::MESSAGE => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if matches!(key, w::CONTENT | w::THINKING | w::TOOL_CALLS | w::IMAGES) {
                            m.content |= c.non_empty();
                        } else {
                            c.skip();
                        }
                    }
                }
            }
            w::RESPONSE | w::THINKING => m.content |= c.non_empty(),
            w::DONE => m.terminal = c.truthy(),
            w::DONE_REASON => reason = c.string().unwrap_or_default(),
            w::ERROR => m.error |= c.truthy(),
            w::MODEL => facts.read_model(c),
            w::PROMPT_EVAL_COUNT => set(&mut facts.usage.input, c.uint()),
            w::EVAL_COUNT => set(&mut facts.usage.output, c.uint()),
            _ => c.skip(),
        }
    }
    if m.terminal {
        ended(reason, m, facts);
    }
}
