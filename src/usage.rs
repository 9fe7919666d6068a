//! What a whole answer says it cost, and which model gave it.
//!
//! One look at the members that protocols use: `usage` (OpenAI, Anthropic, Cohere, Bedrock), `usageMetadata` (Gemini),
//! `x_groq.usage`, `prompt_eval_count` (Ollama). Nothing is made up: what isn't said is `None`. Anthropic counts cached
//! input apart from `input_tokens`; here `input` is all of it and `cached` what came from the cache, as elsewhere.

use crate::json::{Kind, Outline, Value, push_lossy};
use crate::prelude::*;
use crate::protocol::Protocol;

/// Tokens of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub input: Option<u64>,
    /// Tokens of the answer, reasoning included.
    pub output: Option<u64>,
    /// Input tokens read from a cache.
    pub cached: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This, overridden by what `later` says: providers repeat and complete their counts in a stream.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        Self {
            input: later.input.or(self.input),
            output: later.output.or(self.output),
            cached: later.cached.or(self.cached),
            reasoning: later.reasoning.or(self.reasoning),
        }
    }

    /// The counts of one JSON value: a whole answer, or an item of one.
    #[must_use]
    pub fn of_members(members: &[(&[u8], Value<'_>)]) -> Self {
        let mut usage = Self::default();
        for &(name, value) in members {
            match name {
                b"usage" | b"usageMetadata" => usage = usage.updated(Self::of_counts(value, 0)),
                b"x_groq" | b"response" | b"message" | b"delta" | b"metadata" | b"interaction"
                    if value.kind() == Kind::Object =>
                {
                    for inner in ["usage", "usageMetadata"] {
                        if let Some(counts) = value.get(inner) {
                            usage = usage.updated(Self::of_counts(counts, 0));
                        }
                    }
                }
                b"prompt_eval_count" => usage.input = value.u64(),
                b"eval_count" => usage.output = value.u64(),
                _ => {}
            }
        }
        usage
    }

    /// The counts of a `usage` object of any protocol.
    fn of_counts(counts: Value<'_>, depth: u8) -> Self {
        let mut usage = Self::default();
        let mut beside_input = 0_u64;
        let mut thoughts = None;
        for (name, value) in counts.members() {
            let Some((_, count)) = COUNTS.iter().find(|(known, _)| known.as_bytes() == name) else { continue };
            let number = value.u64();
            match count {
                Count::Input => usage.input = number.or(usage.input),
                Count::Output => usage.output = number.or(usage.output),
                Count::Cached => usage.cached = number,
                Count::CachedBeside | Count::WrittenBeside => {
                    beside_input = beside_input.saturating_add(number.unwrap_or(0));
                    if matches!(count, Count::CachedBeside) {
                        usage.cached = number;
                    }
                }
                Count::Reasoning => usage.reasoning = number,
                Count::Thoughts => thoughts = number,
                Count::Inner if depth < 2 => usage = usage.updated(Self::of_counts(value, depth.saturating_add(1))),
                Count::Billed if depth < 2 && usage.is_empty() => {
                    usage = Self::of_counts(value, depth.saturating_add(1));
                }
                Count::Inner | Count::Billed => {}
            }
        }
        usage.input = usage.input.map(|n| n.saturating_add(beside_input));
        if let Some(thoughts) = thoughts {
            // Gemini counts thoughts apart from the candidates.
            usage.reasoning = Some(thoughts);
            usage.output = Some(usage.output.unwrap_or(0).saturating_add(thoughts));
        }
        usage
    }
}

/// What a member of a usage object counts.
enum Count {
    Input,
    Output,
    Cached,
    /// Read from a cache and counted apart from the input (Anthropic, Bedrock).
    CachedBeside,
    /// Written to a cache and counted apart from the input.
    WrittenBeside,
    Reasoning,
    /// Reasoning, counted apart from the output (Gemini).
    Thoughts,
    /// An object with more counts.
    Inner,
    /// An object with counts that hold where there are no others (Cohere).
    Billed,
}

const COUNTS: &[(&str, Count)] = &[
    ("prompt_tokens", Count::Input),
    ("input_tokens", Count::Input),
    ("inputTokens", Count::Input),
    ("promptTokenCount", Count::Input),
    ("total_input_tokens", Count::Input),
    ("completion_tokens", Count::Output),
    ("output_tokens", Count::Output),
    ("outputTokens", Count::Output),
    ("candidatesTokenCount", Count::Output),
    ("total_output_tokens", Count::Output),
    ("cache_read_input_tokens", Count::CachedBeside),
    ("cacheReadInputTokens", Count::CachedBeside),
    ("cache_creation_input_tokens", Count::WrittenBeside),
    ("cacheWriteInputTokens", Count::WrittenBeside),
    ("prompt_cache_hit_tokens", Count::Cached),
    ("cachedContentTokenCount", Count::Cached),
    ("cached_tokens", Count::Cached),
    ("reasoning_tokens", Count::Reasoning),
    ("thoughtsTokenCount", Count::Thoughts),
    ("prompt_tokens_details", Count::Inner),
    ("input_tokens_details", Count::Inner),
    ("completion_tokens_details", Count::Inner),
    ("output_tokens_details", Count::Inner),
    ("tokens", Count::Inner),
    ("billed_units", Count::Billed),
];

/// The usage that a whole body reports. The protocol is a hint only, since gateways mix them.
#[must_use]
pub fn usage(protocol: Protocol, body: &Outline<'_>) -> Usage {
    match (body.value.kind(), protocol) {
        // Gemini without `alt=sse`: the counts are cumulative, the last ones are the whole.
        (Kind::Array, Protocol::GeminiGenerate | Protocol::Unknown) => body
            .value
            .items()
            .fold(Usage::default(), |usage, item| usage.updated(Usage::of_members(&Outline::of(item).members))),
        _ => Usage::of_members(&body.members),
    }
}

/// The model that a whole body says has served it; at most 128 bytes of printable ASCII.
#[must_use]
pub fn served_model(protocol: Protocol, body: &Outline<'_>) -> Option<String> {
    let first;
    let members = if body.value.kind() == Kind::Array {
        first = Outline::of(body.value.items().next()?);
        &first.members
    } else {
        &body.members
    };
    let get = |name: &str| members.iter().find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| *value);
    let own = if protocol == Protocol::GeminiGenerate { get("modelVersion") } else { None };
    let name = own
        .or_else(|| get("model"))
        .or_else(|| get("modelVersion"))
        .or_else(|| get("message")?.get("model"))
        .or_else(|| get("response")?.get("model"))?;
    let raw = name.raw_str()?;
    let mut out = String::new();
    push_lossy(&mut out, raw.get(..128).unwrap_or(raw));
    (!out.is_empty() && out.bytes().all(|b| b.is_ascii_graphic())).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> [Option<u64>; 4] {
        let u = Value::parse(body.as_bytes())
            .map_or(Usage::default(), |value| usage(Protocol::Unknown, &Outline::of(value)));
        [u.input, u.output, u.cached, u.reasoning]
    }

    #[test]
    fn every_protocol_says_it_in_its_own_words() {
        for (body, expected) in [
            (
                r#"{"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
                [Some(9), Some(3), Some(4), Some(2)],
            ),
            (
                r#"{"usage":{"input_tokens":9,"output_tokens":3,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":2}}}"#,
                [Some(9), Some(3), Some(4), Some(2)],
            ),
            (
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":9,"output_tokens":3}}}"#,
                [Some(9), Some(3), None, None],
            ),
            (
                r#"{"type":"message","usage":{"input_tokens":9,"cache_read_input_tokens":4,"cache_creation_input_tokens":1,"output_tokens":3}}"#,
                [Some(14), Some(3), Some(4), None],
            ),
            (
                r#"{"candidates":[],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"thoughtsTokenCount":2,"cachedContentTokenCount":4}}"#,
                [Some(9), Some(5), Some(4), Some(2)],
            ),
            (
                r#"[{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}},{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3}}]"#,
                [Some(9), Some(3), None, None],
            ),
            (r#"{"usage":{"inputTokens":9,"outputTokens":3,"totalTokens":12}}"#, [Some(9), Some(3), None, None]),
            (
                r#"{"usage":{"billed_units":{"input_tokens":1,"output_tokens":1},"tokens":{"input_tokens":9,"output_tokens":3}}}"#,
                [Some(9), Some(3), None, None],
            ),
            (r#"{"x_groq":{"usage":{"prompt_tokens":9,"completion_tokens":3}}}"#, [Some(9), Some(3), None, None]),
            (r#"{"done":true,"prompt_eval_count":9,"eval_count":3}"#, [Some(9), Some(3), None, None]),
            (
                r#"{"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}}"#,
                [Some(9), Some(3), Some(4), None],
            ),
            (r#"{"usage":null}"#, [None; 4]),
            (r#"{"usage":{"prompt_tokens":-1,"completion_tokens":"x"}}"#, [None; 4]),
            ("", [None; 4]),
        ] {
            assert_eq!(read(body), expected, "{body}");
        }
    }

    #[test]
    fn the_model_that_served_is_read_from_where_the_protocol_says_it() {
        let model = |body: &str| served_model(Protocol::Unknown, &Outline::of(Value::parse(body.as_bytes()).unwrap()));
        assert_eq!(model(r#"{"model":"gpt-5-2026"}"#).as_deref(), Some("gpt-5-2026"));
        assert_eq!(model(r#"{"modelVersion":"gemini-3"}"#).as_deref(), Some("gemini-3"));
        assert_eq!(model(r#"{"type":"message_start","message":{"model":"claude"}}"#).as_deref(), Some("claude"));
        assert_eq!(model(r#"{"model":"a b"}"#), None);
        assert_eq!(model(r#"{"model":7}"#), None);
    }
}
