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
use crate::stream::word::{Word, word};

pub(super) fn read(c: &mut Cursor<'_>, m: &mut Meaning, facts: &mut StreamFacts, choices: &mut Choices) {
    while let Some(key) = c.key() {
        match key {
            Word::Candidates => read_candidates(c, m, facts, choices),
            Word::UsageMetadata => facts.usage.read(c),
            Word::ModelVersion => facts.read_model(c),
            Word::Error => m.error |= c.truthy(),
            Word::PromptFeedback => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        if key == Word::BlockReason {
                            if let Some(reason) = c.string().filter(|r| word(r) != Word::BlockReasonUnspecified) {
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
                Word::Content => read_content(c, m),
                Word::Index => index = c.uint().unwrap_or_default(),
                Word::FinishReasonCamel => {
                    if let Some(reason) =
                        c.string().filter(|r| !matches!(word(r), Word::None | Word::FinishReasonUnspecified))
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
        if key != Word::Parts || !c.enter(b'[') {
            if key != Word::Parts {
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
            Word::Thought => thought = c.truthy(),
            Word::Text
            | Word::FunctionCallCamel
            | Word::InlineData
            | Word::FileData
            | Word::ExecutableCode
            | Word::CodeResult => {
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
            Word::EventType => kind = c.string().unwrap_or_default(),
            Word::Delta => delta |= c.non_empty(),
            Word::Error => m.error |= c.truthy(),
            Word::Status => status = c.string().unwrap_or_default(),
            Word::Interaction => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        match key {
                            Word::Model => facts.read_model(c),
                            Word::Usage => facts.usage.read(c),
                            Word::Status => status = c.string().unwrap_or_default(),
                            _ => c.skip(),
                        }
                    }
                }
            }
            _ => c.skip(),
        }
    }
    m.content = delta && kind.ends_with(b".delta");
    m.error |= word(kind) == Word::Error;
    if matches!(word(status), Word::Failed | Word::Cancelled) {
        finish(status, m, facts);
    } else if matches!(word(kind), Word::InteractionComplete | Word::InteractionCompleted) {
        m.terminal = true;
        ended(status, m, facts);
    }
}
