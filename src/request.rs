//! What a request is, read from its URL and its body: provider, protocol, model, limits and a keyed hash of the prompt.
//!
//! The host name decides the provider where it is known, and the path's shape the protocol, so that a server on
//! 127.0.0.1 or a company gateway is understood too (its host is then its provider name). The body is walked once, in
//! chunks, and never kept. Paths: each provider's API reference; the shapes are those of `docs/classification.md`.

use crate::body::{JsonWalk, Member};
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::text::{self, number};
use core::hash::Hasher;
use siphasher::sip128::{Hasher128, SipHasher13};

/// Longest model or provider name that is kept, in bytes.
const NAME_MAX: usize = 128;

/// What a URL says of the request to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// `host` or `host:port`, lower case, without user info; empty if the URL has none.
    pub host: String,
    /// The API shape of the path.
    pub protocol: Protocol,
    /// The model or deployment, where the path names it.
    pub model: Option<String>,
    /// Whether the path itself asks for a stream.
    pub stream: bool,
}

/// Reads a URL. Never fails: what is not understood is [`Protocol::Unknown`].
///
/// Query and fragment, where some providers put keys, are not looked at, but for Gemini's `alt=sse`.
#[must_use]
pub fn target(url: &str) -> Target {
    let after_scheme = text::cut(url, "://").map_or(url, |(_, rest)| rest);
    let authority = text::before(after_scheme, "/?#");
    let tail = after_scheme.get(authority.len()..).unwrap_or("");
    let host = text::cut_last(authority, "@").map_or(authority, |(_, h)| h);
    let mut host = cut(host, NAME_MAX).to_ascii_lowercase();
    for default_port in [":443", ":80"] {
        if host.ends_with(default_port) {
            host.truncate(host.len().saturating_sub(default_port.len()));
        }
    }
    let path = text::before(tail, "?#");
    let (protocol, model, stream) = shape(&host, path.trim_end_matches('/'));
    Target { host, protocol, model: model.map(|m| cut(&percent_decode(m), NAME_MAX).to_owned()), stream }
}

/// Protocol, model and stream flag of a path.
fn shape<'p>(host: &str, path: &'p str) -> (Protocol, Option<&'p str>, bool) {
    let between = |before: &str, after: &str| -> Option<&'p str> {
        text::cut(path, before).and_then(|(_, rest)| text::cut(rest, after)).map(|(name, _)| name)
    };
    // The verb after a colon is Gemini's and Vertex' way (google.api.http custom methods).
    if let Some((resource, verb)) = text::cut_last(path, ":") {
        let model = text::cut_last(resource, "/").map(|(_, name)| name);
        match verb {
            "generateContent" | "embedContent" | "batchEmbedContents" | "countTokens" | "predict" => {
                return (Protocol::GeminiGenerate, model, false);
            }
            "streamGenerateContent" => return (Protocol::GeminiGenerate, model, true),
            // Claude on Vertex speaks Anthropic's own body.
            "rawPredict" => return (Protocol::AnthropicMessages, model, false),
            "streamRawPredict" => return (Protocol::AnthropicMessages, model, true),
            _ => {}
        }
    }
    let bedrock =
        |suffix: &str| path.strip_suffix(suffix).and_then(|p| text::cut_last(p, "/model/")).map(|(_, model)| model);
    if let Some(model) = bedrock("/converse") {
        return (Protocol::BedrockConverse, Some(model), false);
    }
    if let Some(model) = bedrock("/converse-stream") {
        return (Protocol::BedrockConverseStream, Some(model), true);
    }
    if let Some(model) = bedrock("/invoke") {
        return (Protocol::BedrockInvoke, Some(model), false);
    }
    if let Some(model) = bedrock("/invoke-with-response-stream") {
        return (Protocol::BedrockInvokeStream, Some(model), true);
    }
    if path.ends_with("/chat/completions") {
        let protocol = if host.ends_with("mistral.ai") { Protocol::MistralChat } else { Protocol::OpenAiChat };
        return (protocol, between("/deployments/", "/"), false);
    }
    if let Some((_, model)) = text::cut(path, "/ai/run/") {
        return (Protocol::WorkersAiRun, Some(model), false);
    }
    let protocol = match path {
        p if p.ends_with("/responses") => Protocol::OpenAiResponses,
        p if p.ends_with("/v1/messages") || p.ends_with("/messages/count_tokens") => Protocol::AnthropicMessages,
        p if p.ends_with("/v2/chat") || (p.ends_with("/v1/chat") && text::has(host, "cohere")) => Protocol::CohereChat,
        p if p.ends_with("/api/chat") || p.ends_with("/api/generate") => Protocol::OllamaChat,
        p if p.ends_with("/completions") => Protocol::OpenAiCompletions,
        p if p.ends_with("/embeddings") => Protocol::OpenAiEmbeddings,
        p if text::has(p, "/images/") => Protocol::OpenAiImages,
        p if p.ends_with("/interactions") => Protocol::GeminiInteractions,
        p if p.ends_with("/generate_stream") => return (Protocol::TgiGenerate, None, true),
        p if p.ends_with("/generate") => Protocol::TgiGenerate,
        p if host.ends_with("huggingface.co") && text::has(p, "/models/") => {
            return (Protocol::HuggingFaceInference, text::cut(path, "/models/").map(|(_, m)| m), false);
        }
        _ => Protocol::Unknown,
    };
    (protocol, between("/deployments/", "/"), false)
}

/// The longest beginning of `text` that has at most `max` bytes and ends between characters.
fn cut(text: &str, max: usize) -> &str {
    text.get(..max.min(text.len())).unwrap_or_else(|| {
        let end = (0..=max).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.get(..end).unwrap_or("")
    })
}

/// Percent-decodes a path segment (RFC 3986, section 2.1); what can't be decoded stays as it is.
fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = |b: u8| text::hex_value(b);
        if byte == b'%'
            && let [high, low, after @ ..] = tail
            && let (Some(h), Some(l)) = (hex(*high), hex(*low))
        {
            out.push(h.wrapping_shl(4) | l);
            rest = after;
        } else {
            out.push(byte);
            rest = tail;
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// What a request body says, without any of its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyFacts {
    /// The `model` member; `None` if absent or the body is not JSON.
    pub model: Option<String>,
    /// Whether the body asks for a stream (`"stream": true`).
    pub stream: bool,
    /// Upper bound of output tokens, under any of its names.
    pub max_output_tokens: Option<u64>,
    /// Size in bytes.
    pub bytes: u64,
    /// Keyed 128-bit SipHash-1-3 of the bytes.
    pub hash: u128,
}

/// Reads a request body chunk by chunk.
#[derive(Debug)]
pub struct BodyReader {
    walk: JsonWalk,
    hasher: SipHasher13,
    facts: BodyFacts,
}

impl BodyReader {
    /// A reader whose hash is keyed with `key`; without the key, a hash tells nothing about a guessed prompt.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self { walk: JsonWalk::new(), hasher: SipHasher13::new_with_key(key), facts: BodyFacts::default() }
    }

    /// Takes the next chunk.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.hasher.write(chunk);
        self.facts.bytes = self.facts.bytes.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        let facts = &mut self.facts;
        self.walk.feed(chunk, |member| note(facts, member));
    }

    /// What the body said. Members of something that isn't one whole JSON value are not believed.
    #[must_use]
    pub fn finish(self) -> BodyFacts {
        let hash = self.hasher.finish128().as_u128();
        let facts = BodyFacts { hash, ..self.facts };
        if self.walk.is_whole() {
            facts
        } else {
            BodyFacts { model: None, stream: false, max_output_tokens: None, ..facts }
        }
    }
}

fn note(facts: &mut BodyFacts, member: Member<'_>) {
    match (member.parent, member.key) {
        ("", "model") if member.is_string => facts.model = Some(cut(&unescape(member.value), NAME_MAX).to_owned()),
        ("", "stream") => facts.stream = !member.is_string && member.value == "true",
        ("", "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "max_tokens_to_sample" | "max_gen_len")
        | ("generationConfig" | "generation_config", "maxOutputTokens" | "max_output_tokens")
        | ("inferenceConfig", "maxTokens")
        | ("options", "num_predict")
        | ("parameters", "max_new_tokens" | "maxOutputTokens") => {
            facts.max_output_tokens = number(member.value).filter(|_| !member.is_string).or(facts.max_output_tokens);
        }
        _ => {}
    }
}

/// `\/` is the one escape that writers use in a model's name.
fn unescape(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = text::cut(rest, "\\/") {
        out.push_str(before);
        out.push('/');
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A key for the prompt hash from a user's secret of any length.
#[must_use]
pub fn hash_key(secret: &str) -> [u8; 16] {
    let mut hasher = SipHasher13::new_with_key(b"evenkeel.hashkey");
    hasher.write(secret.as_bytes());
    hasher.finish128().as_u128().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_and_model_are_read_from_the_path_on_any_host() {
        let table = [
            ("https://api.openai.com/v1/chat/completions", "api.openai.com", "openai.chat", None, false),
            ("http://127.0.0.1:8123/v1/chat/completions?x=1", "127.0.0.1:8123", "openai.chat", None, false),
            ("https://user:pw@gw.acme.io:443/llm/v1/responses/", "gw.acme.io", "openai.responses", None, false),
            ("https://API.Anthropic.com/v1/messages?beta=true", "api.anthropic.com", "anthropic.messages", None, false),
            (
                "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
                "generativelanguage.googleapis.com",
                "gemini.generate",
                Some("gemini-3-pro"),
                true,
            ),
            (
                "https://x-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/gemini-3:generateContent",
                "x-aiplatform.googleapis.com",
                "gemini.generate",
                Some("gemini-3"),
                false,
            ),
            (
                "https://me.openai.azure.com/openai/deployments/gpt5-eu/chat/completions?api-version=1",
                "me.openai.azure.com",
                "openai.chat",
                Some("gpt5-eu"),
                false,
            ),
            (
                "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude%3A0/converse-stream",
                "bedrock-runtime.us-east-1.amazonaws.com",
                "bedrock.converse-stream",
                Some("anthropic.claude:0"),
                true,
            ),
            ("http://localhost:11434/api/chat", "localhost:11434", "ollama.chat", None, false),
            ("https://api.cohere.com/v2/chat", "api.cohere.com", "cohere.chat", None, false),
            ("https://api.mistral.ai/v1/chat/completions", "api.mistral.ai", "mistral.chat", None, false),
            (
                "https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/meta/llama-3",
                "api.cloudflare.com",
                "workers-ai.run",
                Some("@cf/meta/llama-3"),
                false,
            ),
            ("https://api.openai.com/v1/models", "api.openai.com", "unknown", None, false),
            ("not a url", "not a url", "unknown", None, false),
            ("", "", "unknown", None, false),
        ];
        for (url, host, protocol, model, stream) in table {
            let t = target(url);
            assert_eq!(
                (t.host.as_str(), t.protocol.name(), t.model.as_deref(), t.stream),
                (host, protocol, model, stream),
                "{url}"
            );
        }
    }

    fn facts(body: &str) -> BodyFacts {
        let mut reader = BodyReader::new(&[7; 16]);
        reader.feed(body.as_bytes());
        reader.finish()
    }

    #[test]
    fn every_name_of_the_output_limit_is_known() {
        for body in [
            r#"{"max_tokens":64}"#,
            r#"{"max_completion_tokens":64}"#,
            r#"{"max_output_tokens":64}"#,
            r#"{"generationConfig":{"maxOutputTokens":64}}"#,
            r#"{"inferenceConfig":{"maxTokens":64}}"#,
            r#"{"options":{"num_predict":64}}"#,
            r#"{"parameters":{"max_new_tokens":64}}"#,
        ] {
            assert_eq!(facts(body).max_output_tokens, Some(64), "{body}");
        }
        assert_eq!(facts(r#"{"max_tokens":-1}"#).max_output_tokens, None);
        assert_eq!(facts(r#"{"max_tokens":"64"}"#).max_output_tokens, None);
    }

    #[test]
    fn members_inside_a_prompt_are_not_believed() {
        let f = facts(
            r#"{"messages":[{"content":"{\"model\":\"evil\",\"stream\":true}","model":"nested"}],"model":"org\/m"}"#,
        );
        assert_eq!(f.model.as_deref(), Some("org/m"));
        assert!(!f.stream);
    }

    #[test]
    fn a_malformed_body_says_nothing_but_its_size_and_hash() {
        let f = facts(r#"{"model":"gpt-5","stream":true"#);
        assert_eq!((f.model, f.stream, f.bytes), (None, false, 30));
        assert_ne!(f.hash, 0);
    }

    #[test]
    fn the_hash_depends_on_the_key_and_not_on_the_chunks() {
        let body = br#"{"model":"gpt-5"}"#;
        let of = |key: &[u8; 16], chunks: &[&[u8]]| {
            let mut reader = BodyReader::new(key);
            for chunk in chunks {
                reader.feed(chunk);
            }
            reader.finish().hash
        };
        assert_eq!(of(&[1; 16], &[body]), of(&[1; 16], &[&body[..5], &body[5..]]));
        assert_ne!(of(&[1; 16], &[body]), of(&[2; 16], &[body]));
        assert_ne!(hash_key("a"), hash_key("b"));
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let url = format!("https://{}/v1/models/{}:generateContent", "h".repeat(500), "é".repeat(500));
        let t = target(&url);
        assert!(t.host.len() <= 128 && t.model.is_some_and(|m| m.len() <= 128 && m.starts_with('é')));
    }
}
