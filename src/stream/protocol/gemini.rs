//! Gemini `streamGenerateContent` (SSE and JSON array), and the Interactions API.
//!
//! | | |
//! | --- | --- |
//! | first content | a part with non-empty `text`, or a `functionCall`, `inlineData`, `executableCode`, `codeExecutionResult` |
//! | not content | a chunk with only `usageMetadata`; parts with `thought:true` (they count as the first token, not as content) |
//! | normal end | `finishReason` of every candidate; there is no terminal event |
//! | error | bare `{"error":…}` without `data:`, `data: {"error":…}`, `[{"error":…}]`; `promptFeedback.blockReason` is filtered |
//! | usage | `usageMetadata`, cumulative |
//!
//! Interactions: events by `event_type`; `*.delta` is content, `interaction.complete` ends, `error` fails.
//!
//! Sources: js-genai `src/_api_client.ts`, `FinishReason`; ai.google.dev Interactions pages.

use super::{Choices, Finish, Meaning, ended, finish};
use crate::stream::facts::StreamFacts;
use crate::stream::member::Cursor;
use crate::stream::word as w;

pub(super) fn read(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    while let Some(key) = c.key() {
        match key {
            w::CANDIDATES => read_candidates(c, m, facts, choices),
            w::USAGE_METADATA => facts.usage.read(c),
            w::MODEL_VERSION => facts.read_model(c),
            w::ERROR => m.error |= c.truthy(),
            w::PROMPT_FEEDBACK => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if key == w::BLOCK_REASON {
                            if let Some(reason) = c.string().filter(|r| w::word(r) != w::BLOCK_REASON_UNSPECIFIED) {
                                finish(reason, m, facts);
                                m.finish = Finish::Filtered;
                            }
                        } else {
                            c.skip();
                        }
                    }
                }
            }
            _ => c.skip(),
        }
    }
}

fn read_candidates(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    if !c.enter(b'[') {
        return;
    }
    while c.item() {
        if !c.enter(b'{') {
            continue;
        }
        let (mut index, mut finished) = (0, false);
        while let Some(key) = c.key() {
            match key {
                w::CONTENT => read_content(c, m),
                w::INDEX => index = c.uint().unwrap_or_default(),
                w::FINISH_REASON_CAMEL => {
                    if let Some(reason) =
                        c.string().filter(|r| !matches!(w::word(r), w::NONE | w::FINISH_REASON_UNSPECIFIED))
                    {
                        finished = true;
                        finish(reason, m, facts);
                    }
                }
                _ => c.skip(),
            }
        }
        choices.note(index, finished);
        m.terminal |= finished && choices.all_finished();
    }
}

fn read_content(c: &mut Cursor<'_>, m: &mut Meaning) {
    if !c.enter(b'{') {
        return;
    }
    while let Some(key) = c.key() {
        if key != w::PARTS || !c.enter(b'[') {
            if key != w::PARTS {
                c.skip();
            }
            continue;
        }
        while c.item() {
            read_part(c, m);
        }
    }
}

fn read_part(c: &mut Cursor<'_>, m: &mut Meaning) {
    if !c.enter(b'{') {
        return;
    }
    let (mut shown, mut thought) = (false, false);
    while let Some(key) = c.key() {
        match key {
            w::THOUGHT => thought = c.truthy(),
            w::TEXT | w::FUNCTION_CALL_CAMEL | w::INLINE_DATA | w::FILE_DATA | w::EXECUTABLE_CODE | w::CODE_RESULT => {
                shown |= c.truthy();
            }
            _ => c.skip(),
        }
    }
    m.content |= shown && !thought;
    m.progress |= shown && thought;
}

/// An event of the Interactions API.
pub(super) fn read_interaction(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts) {
    let (mut kind, mut delta, mut status) = (&[][..], false, &[][..]);
    while let Some(key) = c.key() {
        match key {
            w::EVENT_TYPE => kind = c.string().unwrap_or_default(),
            w::DELTA => delta |= c.non_empty(),
            w::ERROR => m.error |= c.truthy(),
            w::STATUS => status = c.string().unwrap_or_default(),
            w::INTERACTION => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        match key {
                            w::MODEL => facts.read_model(c),
                            w::USAGE => facts.usage.read(c),
                            w::STATUS => status = c.string().unwrap_or_default(),
                            _ => c.skip(),
                        }
                    }
                }
            }
            _ => c.skip(),
        }
    }
    m.content = delta && kind.ends_with(b".delta");
    m.error |= w::word(kind) == w::ERROR;
    if matches!(status, b"failed" | b"cancelled") {
        finish(status, m, facts);
    } else if matches!(w::word(kind), w::INTERACTION_COMPLETE | w::INTERACTION_COMPLETED) {
        m.terminal = true;
        ended(status, m, facts);
    }
}
