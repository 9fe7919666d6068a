//! An event that differs from the one before it only in values that nobody looks at means the same.
//!
//! Nearly all events of a stream are alike: the same members in the same order, another token. What a reader takes from an
//! event follows from its bytes, save for the strings and numbers that it steps over and the strings of which it asks only
//! whether they are empty; [`Cursor`](super::member::Cursor) marks those. So an event with the same bytes between the marks
//! needs no second reading. It also does to the stream's facts what the one before did, which is nothing new: reading the
//! same event twice in a row changes nothing.

use super::member::{Marks, scalar_end, starts_with};
use super::protocol::Meaning;
use crate::prelude::*;
use crate::text::string_end;

/// The longest event that is remembered, in bytes.
const MAX_EVENT: usize = 1_024;

/// The last event that was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template {
    /// Its data; empty if there is none to compare with.
    data: Vec<u8>,
    name: Vec<u8>,
    marks: Marks,
    /// Up to where events have been the same, marks included.
    steady: usize,
    meaning: Meaning,
}

impl Template {
    /// Remembers an event that was read, unless it is too long or too varied.
    pub(crate) fn learn(&mut self, name: &[u8], data: &[u8], marks: &Marks, meaning: Meaning) {
        self.data.clear();
        if data.len() > MAX_EVENT || name.len() > MAX_EVENT || marks.are_too_many() {
            return;
        }
        self.data.extend_from_slice(data);
        self.name.clear();
        self.name.extend_from_slice(name);
        self.marks = *marks;
        self.steady = 0;
        self.meaning = meaning;
    }

    /// Forgets the event.
    pub(crate) fn forget(&mut self) {
        self.data.clear();
    }

    /// Memory that is taken, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.data.capacity().saturating_add(self.name.capacity())
    }

    /// What an event means, if it is like the one before it.
    pub(crate) fn meaning_of(&mut self, name: &[u8], data: &[u8]) -> Option<Meaning> {
        if self.data.is_empty() || name != self.name {
            return None;
        }
        let known = self.data.as_slice();
        // The beginning that events have in common, an id and a model, is compared at once.
        let head = known.get(..self.steady)?;
        if !starts_with(data, head) {
            self.steady = 0;
        }
        let (mut ours, mut theirs) = (self.steady, self.steady);
        let mut steady = true;
        for (start, end) in self.marks.spans() {
            if start < ours {
                continue;
            }
            let between = known.get(ours..start)?;
            let rest = data.get(theirs..)?;
            if !starts_with(rest, between) {
                return None;
            }
            let value = theirs.wrapping_add(between.len());
            theirs = same_kind(data, value, *known.get(start)?)?;
            ours = end;
            steady &= ours == theirs && is_same(data.get(value..theirs)?, known.get(start..end)?);
            if steady {
                self.steady = end;
            }
        }
        is_same(data.get(theirs..)?, known.get(ours..)?).then_some(self.meaning)
    }
}

fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && starts_with(a, b)
}

/// The end of the value at `at`, if it is of the kind that begins with `first`: a string that is not empty, or a number.
fn same_kind(data: &[u8], at: usize, first: u8) -> Option<usize> {
    let own = *data.get(at)?;
    if first == b'"' {
        let inside = at.wrapping_add(1);
        let end = string_end(data, inside).filter(|end| own == b'"' && *end > inside)?;
        Some(end.wrapping_add(1))
    } else {
        matches!(own, b'-' | b'0'..=b'9').then(|| scalar_end(data, at))
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::StreamFacts;
    use super::super::protocol::Reader;
    use super::super::scan::Kind;
    use super::*;
    use crate::protocol::Protocol;
    use proptest::prelude::*;

    /// Protocol, event name, and data in which `#` stands for a string's inside and `@` for a number.
    const EVENTS: &[(Protocol, &str, &str)] = &[
        (
            Protocol::OpenAiChat,
            "",
            r##"{"id":"c1","created":@,"model":"#","choices":[{"index":0,"delta":{"content":"#"},"finish_reason":null}],"obfuscation":"#"}"##,
        ),
        (
            Protocol::OpenAiChat,
            "",
            r##"{"id":"c1","model":"#","choices":[{"index":@,"delta":{"content":"#","reasoning":""}}],"usage":{"prompt_tokens":@,"completion_tokens":@}}"##,
        ),
        (
            Protocol::OpenAiChat,
            "",
            r##"{"choices":[{"index":0,"delta":{},"finish_reason":"#"}],"error":"#","object":"#"}"##,
        ),
        (
            Protocol::OpenAiResponses,
            "response.output_text.delta",
            r##"{"type":"response.output_text.delta","sequence_number":@,"item_id":"#","delta":"#","logprobs":[],"obfuscation":"#"}"##,
        ),
        (
            Protocol::OpenAiResponses,
            "",
            r##"{"type":"#","delta":"#","response":{"model":"#","usage":{"input_tokens":@}}}"##,
        ),
        (
            Protocol::AnthropicMessages,
            "content_block_delta",
            r##"{"type":"content_block_delta","index":@,"delta":{"type":"text_delta","text":"#"}}"##,
        ),
        (
            Protocol::AnthropicMessages,
            "message_delta",
            r##"{"type":"message_delta","delta":{"stop_reason":"#"},"usage":{"output_tokens":@}}"##,
        ),
        (
            Protocol::GeminiGenerate,
            "",
            r##"{"candidates":[{"content":{"parts":[{"text":"#","thought":false}],"role":"model"},"index":@}],"usageMetadata":{"promptTokenCount":@},"modelVersion":"#"}"##,
        ),
        (
            Protocol::OllamaChat,
            "",
            r##"{"model":"#","created_at":"#","message":{"role":"#","content":"#"},"done":false}"##,
        ),
        (
            Protocol::CohereChat,
            "",
            r##"{"type":"content-delta","index":@,"delta":{"message":{"content":{"text":"#"}}}}"##,
        ),
        (
            Protocol::BedrockConverseStream,
            "contentBlockDelta",
            r##"{"contentBlockIndex":@,"delta":{"text":"#"},"p":"#"}"##,
        ),
        (Protocol::BedrockInvokeStream, "chunk", r##"{"bytes":"#","p":"#"}"##),
    ];

    /// Which event, what its strings and numbers are, and a byte that is changed in it, if any.
    type Made = (usize, Vec<String>, Vec<u32>, Option<(usize, u8)>);

    fn made() -> impl Strategy<Value = Made> {
        let string = prop_oneof![
            4 => "[a-c ]{1,3}",
            1 => Just(String::new()),
            1 => Just(r#"\"q\\"#.to_owned()),
            1 => Just("stop".to_owned()),
            1 => Just("content_filter".to_owned()),
            1 => Just("error".to_owned()),
            1 => Just("eyJ0eXBlIjoicGluZyJ9".to_owned()),
        ];
        let spoiled = prop_oneof![6 => Just(None), 1 => (0_usize..160, any::<u8>()).prop_map(Some)];
        (0..EVENTS.len(), proptest::collection::vec(string, 4), proptest::collection::vec(0_u32..30, 3), spoiled)
    }

    fn data((which, strings, numbers, spoiled): &Made) -> Vec<u8> {
        let (mut strings, mut numbers) = (strings.iter().cycle(), numbers.iter().cycle());
        let mut out = String::new();
        for c in EVENTS[*which].2.chars() {
            match c {
                '#' => out.push_str(strings.next().unwrap()),
                '@' => out.push_str(&numbers.next().unwrap().to_string()),
                other => out.push(other),
            }
        }
        let mut out = out.into_bytes();
        if let Some((at, byte)) = spoiled
            && let Some(slot) = out.get_mut(*at)
        {
            *slot = *byte;
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn an_event_that_is_recognised_means_what_it_means_when_it_is_read(
            protocol in 0..EVENTS.len(),
            events in proptest::collection::vec((made(), 1_usize..4, any::<bool>()), 1..10),
        ) {
            let protocol = EVENTS[protocol].0;
            let (mut quick, mut thorough) = (Reader::new(protocol), Reader::new(protocol));
            let (mut facts, mut expected) = (StreamFacts::default(), StreamFacts::default());
            for (event, times, own) in &events {
                let mut event = event.clone();
                if *own {
                    event.0 = EVENTS.iter().position(|(p, ..)| *p == protocol).unwrap_or(0);
                }
                for _ in 0..*times {
                    let (name, data) = (EVENTS[event.0].1.as_bytes(), data(&event));
                    let meaning = quick.read(Kind::Event, name, &data, false, &mut facts);
                    thorough.forget_last();
                    prop_assert_eq!(meaning, thorough.read(Kind::Event, name, &data, false, &mut expected));
                    prop_assert_eq!(&facts, &expected);
                    prop_assert_eq!(quick.has_finished(), thorough.has_finished());
                    for (string, number) in event.1.iter_mut().zip(&mut event.2) {
                        string.push('x');
                        *number = number.wrapping_add(7);
                    }
                }
            }
        }
    }

    #[test]
    fn the_next_token_of_every_protocol_is_recognised() {
        for (protocol, name, _) in
            EVENTS.iter().filter(|(.., data)| !data.contains("\"usage") && !data.contains("bytes"))
        {
            let which = EVENTS.iter().position(|(p, n, _)| p == protocol && n == name).unwrap();
            let mut reader = Reader::new(*protocol);
            let mut facts = StreamFacts::default();
            for round in 0..4_u32 {
                let event = |token: &str| data(&(which, vec![format!("{token}{round}")], vec![7], None));
                reader.read(Kind::Event, name.as_bytes(), &event("t"), false, &mut facts);
                // The first one gives the model's name, which is looked at until it is known.
                let recognised = reader.recognises(name.as_bytes(), &event("token "));
                assert!(recognised || round == 0, "{protocol:?} {round}");
            }
        }
    }

    #[test]
    fn a_number_of_which_is_asked_what_it_is_is_not_taken_for_another() {
        let ollama = |event: &str| {
            let mut reader = Reader::new(Protocol::OllamaChat);
            let mut facts = StreamFacts::default();
            reader.read(Kind::Event, b"", br#"{"error":0,"done":0,"eval_count":-1}"#, false, &mut facts);
            (reader.read(Kind::Event, b"", event.as_bytes(), false, &mut facts), facts.usage.output)
        };
        assert!(ollama(r#"{"error":1,"done":0,"eval_count":-1}"#).0.error);
        assert!(ollama(r#"{"error":0,"done":7,"eval_count":-1}"#).0.terminal);
        assert_eq!(ollama(r#"{"error":0,"done":0,"eval_count":12}"#).1, Some(12));
    }

    #[test]
    fn an_empty_token_a_longer_event_and_another_name_are_read() {
        let mut template = Template::default();
        let data = br#"{"t":"a","n":1}"#;
        let mut marks = Marks::default();
        marks.push(5, 8);
        marks.push(13, 14);
        let meaning = Meaning { content: true, ..Meaning::default() };
        template.learn(b"e", data, &marks, meaning);
        let like = |template: &mut Template, name: &[u8], data: &[u8]| template.meaning_of(name, data) == Some(meaning);
        assert!(like(&mut template, b"e", br#"{"t":"b\"c","n":-12.5e3}"#));
        for (name, data) in [
            (&b"e"[..], &br#"{"t":"","n":1}"#[..]),
            (b"f", data),
            (b"e", br#"{"t":"a","n":"1"}"#),
            (b"e", br#"{"t":"a","n":1} "#),
            (b"e", br#"{"t":"a","n":1"#),
            (b"e", br#"{"t":null,"n":1}"#),
            (b"e", br#"{"t":"a","m":1}"#),
            (b"e", br#"{"t":"a\","n":1}"#),
            (b"e", b""),
        ] {
            assert!(!like(&mut template, name, data), "{}", String::from_utf8_lossy(data));
        }
        template.learn(b"e", &b" ".repeat(2_000), &marks, meaning);
        assert!(!like(&mut template, b"e", &b" ".repeat(2_000)));
    }
}
