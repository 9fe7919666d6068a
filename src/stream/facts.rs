//! What was seen of a stream: the numbers and names that a record of it carries.

use super::member::Cursor;
use super::word::Word;
use crate::prelude::*;
use crate::time::{Instant, Millis};

/// Tokens as the provider counted them. Nothing is made up: `None` is what it did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamUsage {
    /// Tokens of the input.
    pub input: Option<u64>,
    /// Tokens of the output.
    pub output: Option<u64>,
    /// Tokens of the input that came from a cache.
    pub cached: Option<u64>,
    /// Tokens of the output that were spent on reasoning.
    pub reasoning: Option<u64>,
}

/// What was seen of a stream so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// When the first byte of the body came.
    pub first_byte_at: Option<Instant>,
    /// When the first generated token came, a thought included.
    pub first_token_at: Option<Instant>,
    /// When the last byte came.
    pub last_byte_at: Option<Instant>,
    /// The longest time between two chunks.
    pub longest_gap: Millis,
    /// Bytes of the body.
    pub bytes: u64,
    /// Events with data, `[DONE]` not counted.
    pub events: u64,
    /// Events that a reader of the answer sees something of. Zero in an answer that ended well is worth a second look: LM
    /// Studio ends so when the prompt did not fit.
    pub content_events: u64,
    /// Events whose JSON is broken. They are passed on.
    pub malformed_events: u64,
    /// Events that came behind the terminal marker, a second one included.
    pub events_after_end: u64,
    /// Tokens, as the provider counted them.
    pub usage: StreamUsage,
    /// Why the answer ended, in the provider's word; at most 64 bytes.
    pub finish_reason: Option<Box<str>>,
    /// The model that answered, in the provider's word; at most 64 bytes.
    pub model: Option<Box<str>>,
    /// Whether the protocol's terminal marker came.
    pub terminal_seen: bool,
    /// More was held than is allowed, so the stream was let go before its commit point.
    pub commit_forced: bool,
    /// Whether the protocol is known. If not, bytes, gaps and resets are all that was watched.
    pub understood: bool,
}

/// A provider's word, made safe to write anywhere: cut to 64 bytes, all but printable ASCII replaced.
pub(crate) fn safe_text(raw: &[u8]) -> Box<str> {
    let text: String =
        raw.iter().take(64).map(|b| if b.is_ascii_graphic() || *b == b' ' { char::from(*b) } else { '?' }).collect();
    text.into_boxed_str()
}

impl StreamFacts {
    /// Reads the model's name, once.
    pub(crate) fn read_model(&mut self, c: &mut Cursor<'_>) {
        if self.model.is_some() {
            c.skip();
        } else if let Some(name) = c.string().filter(|name| !name.is_empty()) {
            self.model = Some(safe_text(name));
        }
    }
}

impl StreamUsage {
    /// Reads a usage object in any provider's spelling. Cumulative counts replace earlier ones; a zero never does.
    pub(crate) fn read(&mut self, c: &mut Cursor<'_>) {
        if !c.enter(b'{') {
            return;
        }
        while let Some(key) = c.key() {
            let slot = match key {
                Word::PromptTokens
                | Word::InputTokens
                | Word::PromptTokenCount
                | Word::InputTokensCamel
                | Word::PromptEvalCount
                | Word::InputTokenCount
                | Word::TotalInputTokens => &mut self.input,
                Word::CompletionTokens
                | Word::OutputTokens
                | Word::CandidatesTokenCount
                | Word::OutputTokensCamel
                | Word::EvalCount
                | Word::OutputTokenCount
                | Word::TotalOutputTokens => &mut self.output,
                Word::CachedTokens
                | Word::CacheReadInputTokens
                | Word::CachedContentTokenCount
                | Word::CacheReadInputTokensCamel
                | Word::PromptCacheHitTokens
                | Word::TotalCachedTokens => &mut self.cached,
                Word::ReasoningTokens | Word::ThoughtsTokenCount | Word::TotalThoughtTokens => &mut self.reasoning,
                Word::PromptTokensDetails
                | Word::CompletionTokensDetails
                | Word::InputTokensDetails
                | Word::OutputTokensDetails
                | Word::Tokens => {
                    self.read_details(c);
                    continue;
                }
                _ => {
                    c.skip();
                    continue;
                }
            };
            set(slot, c.uint());
        }
    }

    /// The object one level below: details of OpenAI's, `tokens` of Cohere's.
    fn read_details(&mut self, c: &mut Cursor<'_>) {
        if !c.enter(b'{') {
            return;
        }
        while let Some(key) = c.key() {
            let slot = match key {
                Word::InputTokens => &mut self.input,
                Word::OutputTokens => &mut self.output,
                Word::CachedTokens => &mut self.cached,
                Word::ReasoningTokens => &mut self.reasoning,
                _ => {
                    c.skip();
                    continue;
                }
            };
            set(slot, c.uint());
        }
    }
}

/// Takes a count over, unless it is a zero that would replace something.
pub(crate) fn set(slot: &mut Option<u64>, count: Option<u64>) {
    if count.is_some_and(|n| n > 0 || slot.is_none()) {
        *slot = count;
    }
}
