//! Who the providers are: one file each, found by name or by host.
//!
//! `build.rs` collects the files of this directory into a table sorted by name; a lookup is a binary search, so one
//! provider more doesn't slow the others. `cargo fmt` doesn't see files that are collected so: `rustfmt --edition 2024
//! src/classify/providers/*.rs` does.

use super::table::Table;
use crate::headers::Headers;
use crate::json::Value;
use crate::limits::Window;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::text;
use alloc::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/providers.rs"));

/// What is known of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Provider {
    /// Its name, as in options and records.
    pub name: &'static str,
    /// Its hosts, lower case: `api.openai.com`; a label of `*` stands for one or more labels or a part of one.
    pub hosts: &'static [&'static str],
    /// The provider whose rules hold here too, after its own; usually whose protocol it speaks. Empty: none.
    pub base: &'static str,
    /// Its own rules.
    pub rules: Table,
    /// The response headers that hold its request id, best first.
    pub request_id: &'static [&'static str],
    /// Over what its unnamed limits count: requests, tokens.
    pub windows: (Window, Window),
    /// Where its rules come from, if a rule doesn't say.
    #[cfg(not(target_arch = "wasm32"))]
    pub source: &'static str,
}

impl Provider {
    /// What a file starts from: no hosts, OpenAI's rules after its own, `x-request-id`.
    pub const DEFAULT: Self = Self {
        name: "",
        hosts: &[],
        base: "openai",
        rules: Table::EMPTY,
        request_id: &["x-request-id"],
        windows: (Window::Unknown, Window::Unknown),
        #[cfg(not(target_arch = "wasm32"))]
        source: "",
    };
}

/// Servers that people run themselves, on hosts that say nothing: their words are theirs alone.
pub(crate) const SELF_HOSTED: &[&str] = &["vllm", "llama.cpp", "ollama", "lmstudio", "huggingface"];

/// The provider of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Provider> {
    ALL.binary_search_by(|p| p.name.cmp(name)).ok().and_then(|at| ALL.get(at)).copied()
}

/// The provider of that host (any case, without port).
#[must_use]
pub fn by_host(host: &str) -> Option<&'static Provider> {
    if host.len() > 253 || !text::has(host, ".") {
        return None;
    }
    let host = host.to_ascii_lowercase();
    ALL.iter().find(|p| p.hosts.iter().any(|pattern| host_matches(pattern, &host))).copied()
}

/// By name, else by host.
#[must_use]
pub fn find(name_or_host: &str) -> Option<&'static Provider> {
    by_name(name_or_host).or_else(|| by_host(name_or_host))
}

/// Every provider, by name.
pub fn all() -> impl Iterator<Item = &'static Provider> {
    ALL.iter().copied()
}

/// The provider whose rules fit a protocol, where the provider itself is unknown.
pub(crate) const fn of_protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::AnthropicMessages => "anthropic",
        Protocol::GeminiGenerate | Protocol::GeminiInteractions => "gemini",
        Protocol::BedrockConverse
        | Protocol::BedrockConverseStream
        | Protocol::BedrockInvoke
        | Protocol::BedrockInvokeStream => "bedrock",
        Protocol::MistralChat => "mistral",
        Protocol::CohereChat => "cohere",
        Protocol::OllamaChat => "ollama",
        Protocol::WorkersAiRun => "workers-ai",
        Protocol::HuggingFaceInference | Protocol::TgiGenerate => "huggingface",
        _ => "openai",
    }
}

/// Whether `host` fits `pattern`; one `*` stands for any text that isn't empty.
fn host_matches(pattern: &str, host: &str) -> bool {
    match text::cut(pattern, "*") {
        None => pattern == host,
        Some((head, tail)) => {
            host.len() > head.len().saturating_add(tail.len()) && host.starts_with(head) && host.ends_with(tail)
        }
    }
}

/// Headers that hold a request id anywhere, tried after the provider's own.
const REQUEST_IDS: &[&str] =
    &["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-generation-id", "cf-ray"];

fn clean(id: &str) -> Option<&str> {
    let id = id.get(..id.len().min(128))?.trim_ascii();
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_graphic())).then_some(id)
}

/// The provider's own id of a request: from its headers, else from the body's `request_id` or `id`. At most 128
/// printable ASCII characters; anything else is no id.
#[must_use]
pub fn request_id<'a>(provider: &str, headers: Headers<'a>, body: &[u8]) -> Option<Cow<'a, str>> {
    let own = find(provider).map_or(&[][..], |p| p.request_id);
    // The edge's ray is the last resort: what the body says is closer to the provider.
    let header = |name: &&str| headers.get(name).and_then(clean);
    let (edge, common) = REQUEST_IDS.split_last()?;
    if let Some(id) = own.iter().find_map(header).or_else(|| common.iter().find_map(header)) {
        return Some(Cow::Borrowed(id));
    }
    let body = body.get(..super::facts::LOOK).unwrap_or(body);
    let from_body = Value::parse(body).and_then(|value| {
        let member = |name: &str| value.get(name).and_then(Value::scalar).filter(|t| *t != "null").and_then(clean);
        member("request_id").or_else(|| member("id")).or_else(|| member("responseId"))
    });
    from_body.map(|id| Cow::Owned(id.to_owned())).or_else(|| header(edge).map(Cow::Borrowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_base_exists() {
        assert!(ALL.windows(2).all(|w| w[0].name < w[1].name));
        for provider in all() {
            assert!(provider.base.is_empty() || by_name(provider.base).is_some(), "{}", provider.name);
            assert!(by_name(provider.name).is_some());
        }
        for name in SELF_HOSTED {
            assert!(by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn hosts_find_their_providers_in_any_case() {
        for (host, name) in [
            ("API.openai.com", "openai"),
            ("my-res.openai.azure.com", "azure"),
            ("bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
            ("us-central1-aiplatform.googleapis.com", "vertex"),
            ("aiplatform.googleapis.com", "vertex"),
            ("generativelanguage.googleapis.com", "gemini"),
            ("api.groq.com", "groq"),
            ("router.huggingface.co", "huggingface"),
        ] {
            assert_eq!(by_host(host).map(|p| p.name), Some(name), "{host}");
        }
        for host in ["localhost", "evil-api.openai.com.example", "openai.azure.com", ""] {
            assert_eq!(by_host(host).map(|p| p.name), None, "{host}");
        }
    }

    #[test]
    fn request_ids_come_from_headers_then_the_body_then_the_edge() {
        let id = |provider, headers, body: &str| {
            request_id(provider, Headers(headers), body.as_bytes()).map(Cow::into_owned)
        };
        assert_eq!(id("anthropic", "Request-Id: req_1\nx-request-id: x\n", ""), Some("req_1".into()));
        assert_eq!(id("azure", "x-request-id: x\napim-request-id: a\n", ""), Some("a".into()));
        assert_eq!(id("cohere", "cf-ray: r\n", r#"{"id":"c-1","message":"no"}"#), Some("c-1".into()));
        assert_eq!(id("anthropic", "cf-ray: r\n", r#"{"request_id":null}"#), Some("r".into()));
        assert_eq!(id("", "", r#"{"request_id":"bad id"}"#), None);
    }
}
