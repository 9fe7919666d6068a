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

pub(super) fn read(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    while let Some(key) = c.key() {
        match key {
            b"candidates" => read_candidates(c, m, facts, choices),
            b"usageMetadata" => facts.usage.read(c),
            b"modelVersion" => facts.read_model(c),
            b"error" => m.error |= c.truthy(),
            b"promptFeedback" => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if key == b"blockReason" {
                            if let Some(reason) = c.string().filter(|r| *r != b"BLOCK_REASON_UNSPECIFIED") {
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
                b"content" => read_content(c, m),
                b"index" => index = c.uint().unwrap_or_default(),
                b"finishReason" => {
                    if let Some(reason) = c.string().filter(|r| !matches!(*r, b"" | b"FINISH_REASON_UNSPECIFIED")) {
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
        if key != b"parts" || !c.enter(b'[') {
            if key != b"parts" {
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
            b"thought" => thought = c.truthy(),
            b"text" | b"functionCall" | b"inlineData" | b"fileData" | b"executableCode" | b"codeExecutionResult" => {
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
            b"event_type" => kind = c.string().unwrap_or_default(),
            b"delta" => delta |= c.non_empty(),
            b"error" => m.error |= c.truthy(),
            b"status" => status = c.string().unwrap_or_default(),
            b"interaction" => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        match key {
                            b"model" => facts.read_model(c),
                            b"usage" => facts.usage.read(c),
                            b"status" => status = c.string().unwrap_or_default(),
                            _ => c.skip(),
                        }
                    }
                }
            }
            _ => c.skip(),
        }
    }
    m.content = delta && kind.ends_with(b".delta");
    m.error |= kind == b"error";
    if matches!(status, b"failed" | b"cancelled") {
        finish(status, m, facts);
    } else if matches!(kind, b"interaction.complete" | b"interaction.completed") {
        m.terminal = true;
        ended(status, m, facts);
    }
}
