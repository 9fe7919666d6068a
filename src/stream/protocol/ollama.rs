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
use crate::stream::word::Word;

pub(super) fn read(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts) {
    let mut reason = &[][..];
    while let Some(key) = c.key() {
        match key {
            Word::Message => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if matches!(key, Word::Content | Word::Thinking | Word::ToolCalls | Word::Images) {
                            m.content |= c.non_empty();
                        } else {
                            c.skip();
                        }
                    }
                }
            }
            Word::Response | Word::Thinking => m.content |= c.non_empty(),
            Word::Done => m.terminal = c.truthy(),
            Word::DoneReason => reason = c.string().unwrap_or_default(),
            Word::Error => m.error |= c.truthy(),
            Word::Model => facts.read_model(c),
            Word::PromptEvalCount => set(&mut facts.usage.input, c.uint()),
            Word::EvalCount => set(&mut facts.usage.output, c.uint()),
            _ => c.skip(),
        }
    }
    if m.terminal {
        ended(reason, m, facts);
    }
}
