//! Bedrock `converse-stream` and `invoke-with-response-stream`: the meaning of a frame's payload.
//!
//! | | |
//! | --- | --- |
//! | first content | `contentBlockDelta` with something in it, `contentBlockStart` with `toolUse` |
//! | not content | `messageStart`, `contentBlockStop` |
//! | normal end | `messageStop` with `stopReason`, then `metadata` |
//! | error | a frame `:message-type: exception` or `error`; a body that is JSON instead of frames |
//! | usage | `metadata.usage`; invoke: `amazon-bedrock-invocationMetrics` |
//!
//! An invoke frame wraps the model's own event as `{"bytes":"<base64>"}`; one whose event has no `type` and nothing else
//! that is known is a gateway's keep-alive. Sources: AWS API reference `ConverseStreamOutput`; anthropic-sdk-typescript
//! `bedrock-sdk`; vercel/ai `amazon-bedrock`.

use super::{Choices, Meaning, anthropic, finish};
use crate::prelude::*;
use crate::stream::facts::StreamFacts;
use crate::stream::member::Cursor;
use crate::stream::word::Word;

pub(super) fn read(c: &mut Cursor<'_>, name: Word, m: &mut Meaning, facts: &mut StreamFacts) {
    if name == Word::None {
        return read_unframed(c, m);
    }
    read_members(c, name, m, facts);
}

/// The event object that Nova puts under the event's name.
pub(super) fn read_wrapped(c: &mut Cursor<'_>, name: Word, m: &mut Meaning, facts: &mut StreamFacts) {
    if c.enter(b'{') {
        read_members(c, name, m, facts);
    }
}

fn read_members(c: &mut Cursor<'_>, name: Word, m: &mut Meaning, facts: &mut StreamFacts) {
    while let Some(key) = c.key() {
        match key {
            Word::Delta => m.content |= read_delta(c),
            Word::Start => m.content |= c.non_empty(),
            Word::StopReasonCamel => {
                let reason = c.string().unwrap_or_default();
                finish(reason, m, facts);
            }
            Word::Usage => facts.usage.read(c),
            _ => c.skip(),
        }
    }
    m.terminal |= name == Word::Metadata;
}

/// `{"text":"…"}`, `{"toolUse":{"input":"…"}}` or `{"reasoningContent":{"text":"…"}}`.
fn read_delta(c: &mut Cursor<'_>) -> bool {
    let mut shown = false;
    if c.enter(b'{') {
        while let Some(key) = c.key() {
            if matches!(key, Word::ToolUse | Word::ReasoningContentCamel) && c.peek() == b'{' {
                c.enter(b'{');
                while c.key().is_some() {
                    shown |= c.non_empty();
                }
            } else {
                shown |= c.non_empty();
            }
        }
    }
    shown
}

/// JSON where frames were announced: an error body, or a decoded frame as `{headers, body}`.
fn read_unframed(c: &mut Cursor<'_>, m: &mut Meaning) {
    while let Some(key) = c.key() {
        match key {
            Word::Message | Word::MessageUpper | Word::AwsType | Word::Error => m.error |= c.truthy(),
            Word::Headers => {
                if c.enter(b'{') {
                    while let Some(key) = c.key() {
                        let value = c.word();
                        m.error |= key == Word::MessageType && matches!(value, Word::Exception | Word::Error);
                    }
                }
            }
            _ => c.skip(),
        }
    }
}

/// An invoke chunk.
pub(super) fn read_invoke(
    c: &mut Cursor<'_>,
    name: Word,
    m: &mut Meaning,
    facts: &mut StreamFacts,
    choices: &mut Choices,
    scratch: &mut Vec<u8>,
) {
    if name == Word::None {
        return read_unframed(c, m);
    }
    while let Some(key) = c.key() {
        if key != Word::Bytes {
            c.skip();
            continue;
        }
        let Some(text) = c.string() else { continue };
        scratch.clear();
        decode_base64(text, scratch);
        let mut inner = Cursor::new(scratch);
        if inner.enter(b'{') {
            anthropic::read(&mut inner, Word::None, m, facts, choices);
        }
    }
    if scratch.capacity() > crate::stream::held::RAW_MAX {
        *scratch = Vec::new();
    }
}

/// Decodes base64; stops at the first byte that is none.
fn decode_base64(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut have) = (0_u32, 0_u32);
    for byte in text {
        let six = match byte {
            b'A'..=b'Z' => byte.wrapping_sub(b'A'),
            b'a'..=b'z' => byte.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => byte.wrapping_sub(b'0').wrapping_add(52),
            b'+' => 62,
            b'/' => 63,
            b'\\' => continue, // an escaped slash
            _ => break,
        };
        bits = (bits << 6) | u32::from(six);
        have = have.wrapping_add(6);
        if have >= 8 {
            have = have.wrapping_sub(8);
            out.push((bits >> have).to_le_bytes()[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_decodes_with_and_without_padding() {
        for (text, expected) in
            [("eyJhIjoxfQ==", "{\"a\":1}"), ("eyJhIjoxfQ", "{\"a\":1}"), ("", ""), ("Pz8\\/", "???")]
        {
            let mut out = Vec::new();
            decode_base64(text.as_bytes(), &mut out);
            assert_eq!(out, expected.as_bytes(), "{text}");
        }
    }
}
