//! What an event means, per protocol: content, ending, error, tokens.
//!
//! One reader a family; hosts that are compatible with OpenAI share one, which knows the union of their shapes. Sources
//! stand at each reader. An unknown event means nothing and never fails a stream.

mod anthropic;
mod bedrock;
mod cohere;
mod gemini;
mod ollama;
mod openai;
mod responses;

use super::facts::{StreamFacts, safe_text};
use super::member::Cursor;
use super::scan::Kind;
use super::template::Template;
use super::word::{Word, word};
use crate::prelude::*;
use crate::protocol::Protocol;

/// What a finish reason says of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finish {
    /// It has not finished.
    #[default]
    None,
    /// It is whole, or as long as was allowed; unknown reasons count as this.
    Good,
    /// The model's own output was unusable (a malformed tool call): another attempt may do better.
    Fault,
    /// A safety system ended it.
    Filtered,
    /// The provider broke off.
    Broken,
}

/// What one event means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// A reader of the answer sees something of it.
    pub(crate) content: bool,
    /// Tokens are being generated, but not for the reader's eyes.
    pub(crate) progress: bool,
    /// It is an error event.
    pub(crate) error: bool,
    /// It is an error event that the protocol's clients overlook.
    pub(crate) overlooked: bool,
    /// Nothing follows it.
    pub(crate) terminal: bool,
    /// Why the answer ended, if it did.
    pub(crate) finish: Finish,
    /// Its JSON is broken.
    pub(crate) malformed: bool,
    /// It is not an event of the answer: a ping, `[DONE]`, no data at all.
    pub(crate) aside: bool,
}

/// Which choices (OpenAI) or candidates (Gemini) were seen, and which have finished; a bit each, the last for all from 63.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choices {
    seen: u64,
    finished: u64,
}

impl Choices {
    fn note(&mut self, index: u64, finished: bool) {
        let bit = 1_u64 << index.min(63);
        self.seen |= bit;
        if finished {
            self.finished |= bit;
        }
    }

    /// Whether every choice that was seen has finished.
    const fn all_finished(self) -> bool {
        self.seen & !self.finished == 0
    }
}

/// Reads the events of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    protocol: Protocol,
    choices: Choices,
    finished: bool,
    /// A Bedrock invoke chunk's decoded payload.
    scratch: Vec<u8>,
    template: Template,
}

impl Reader {
    pub(crate) fn new(protocol: Protocol) -> Self {
        let (choices, template) = (Choices::default(), Template::default());
        Self { protocol, choices, finished: false, scratch: Vec::new(), template }
    }

    /// Forgets the last event, so that the next one is read whatever it is like.
    #[cfg(test)]
    pub(crate) fn forget_last(&mut self) {
        self.template.forget();
    }

    /// Whether an event is like the last one.
    #[cfg(test)]
    pub(crate) fn recognises(&mut self, name: &[u8], data: &[u8]) -> bool {
        self.template.meaning_of(name, data).is_some()
    }

    /// Whether the answer has finished, all of its choices.
    pub(crate) const fn has_finished(&self) -> bool {
        self.finished && self.choices.all_finished()
    }

    /// Memory that is taken, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.scratch.capacity().saturating_add(self.template.capacity())
    }

    /// Reads an event. `truncated`: its end was not kept.
    #[inline]
    pub(crate) fn read(
        &mut self,
        kind: Kind,
        name: &[u8],
        data: &[u8],
        truncated: bool,
        facts: &mut StreamFacts,
    ) -> Meaning {
        let mut m = Meaning::default();
        match kind {
            Kind::Event => {}
            Kind::Bare => m.overlooked = self.protocol != Protocol::GeminiGenerate,
            Kind::ErrorField => {
                (m.error, m.overlooked) = (true, true);
                return m;
            }
            Kind::Exception | Kind::FrameError | Kind::Invalid => {
                m.error = true;
                return m;
            }
        }
        let data = data.trim_ascii();
        if kind == Kind::Event
            && !truncated
            && let Some(same) = self.template.meaning_of(name, data)
        {
            return same;
        }
        let word_of_name = word(name);
        m.error = word_of_name == Word::Error;
        if data.is_empty() {
            m.aside = !m.error;
            return m;
        }
        if data == b"[DONE]" {
            (m.terminal, m.aside) = (true, true);
            return m;
        }
        self.template.forget();
        let mut c = Cursor::new(data);
        let in_array = c.peek() == b'[';
        if in_array && c.enter(b'[') && !c.item() {
            return m;
        }
        if c.peek() != b'{' {
            m.malformed = true;
            return m;
        }
        c.enter(b'{');
        self.object(&mut c, name, word_of_name, &mut m, facts);
        m.malformed = (c.is_bad() || (!in_array && c.peek() != 0)) && !truncated;
        self.finished |= m.finish != Finish::None;
        if kind == Kind::Event && !truncated {
            self.template.learn(name, data, c.marks(), m);
        }
        m
    }

    #[inline]
    fn object(&mut self, c: &mut Cursor<'_>, raw_name: &[u8], name: Word, m: &mut Meaning, facts: &mut StreamFacts) {
        match self.protocol {
            Protocol::OpenAiResponses | Protocol::OpenAiImages => responses::read(c, raw_name, m, facts),
            Protocol::AnthropicMessages => anthropic::read(c, name, m, facts, &mut self.choices),
            Protocol::GeminiGenerate => gemini::read(c, m, facts, &mut self.choices),
            Protocol::GeminiInteractions => gemini::read_interaction(c, m, facts),
            Protocol::BedrockConverse | Protocol::BedrockConverseStream => bedrock::read(c, name, m, facts),
            Protocol::BedrockInvoke | Protocol::BedrockInvokeStream => {
                bedrock::read_invoke(c, name, m, facts, &mut self.choices, &mut self.scratch);
            }
            Protocol::CohereChat => cohere::read(c, name, m, facts),
            Protocol::OllamaChat => ollama::read(c, m, facts),
            _ => openai::read(c, m, facts, &mut self.choices),
        }
    }
}

/// What a finish reason says, in every protocol's spelling. Those not listed, known or not, are a success.
const fn judge(reason: Word) -> Finish {
    match reason {
        // OpenAI, Azure, Mistral; Anthropic; Bedrock (guardrails, Titan in capitals); Cohere; GLM.
        Word::ContentFilter
        | Word::Refusal
        | Word::GuardrailIntervened
        | Word::ContentFiltered
        | Word::FinishContentFiltered
        | Word::ErrorToxic
        | Word::Sensitive
        // Gemini.
        | Word::Safety
        | Word::Recitation
        | Word::Blocklist
        | Word::ProhibitedContent
        | Word::Spii
        | Word::ModelArmor
        | Word::ImageSafety
        | Word::ImageProhibitedContent
        | Word::ImageRecitation => Finish::Filtered,
        // Gemini, then Bedrock: the model's fault, another sample may do.
        Word::MalformedFunctionCall
        | Word::UnexpectedToolCall
        | Word::MalformedResponse
        | Word::NoImage
        | Word::ImageOther
        | Word::MalformedModelOutput
        | Word::MalformedToolUse => Finish::Fault,
        // DeepSeek; OpenRouter and Mistral; GLM; Cohere; Responses and Interactions.
        Word::InsufficientSystemResource
        | Word::Error
        | Word::NetworkError
        | Word::FinishError
        | Word::Timeout
        | Word::Failed
        | Word::Cancelled => Finish::Broken,
        _ => Finish::Good,
    }
}

/// Takes a finish reason over.
fn finish(reason: &[u8], m: &mut Meaning, facts: &mut StreamFacts) {
    if reason.is_empty() {
        return;
    }
    m.finish = m.finish.max(judge(word(reason)));
    facts.finish_reason = Some(safe_text(reason));
}

/// Takes an ending over for which the provider need not give a reason.
fn ended(reason: &[u8], m: &mut Meaning, facts: &mut StreamFacts) {
    m.finish = m.finish.max(Finish::Good);
    finish(reason, m, facts);
}
