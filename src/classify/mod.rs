//! What a failure is: `classify` turns what happened into a [`Classification`].
//!
//! Evidence in order: the user's own rules, the transport error, the status, the body's codes, its text. A page from
//! something in between is told before a provider's rules are tried; a provider's table comes before those of the
//! protocol and the generic ones. An error inside an HTTP 200 is what its twin with a status would be. Rules are data:
//! one file a provider under `providers/`; see [`rule::Rule`] for their form.

pub mod custom;
#[cfg(not(target_arch = "wasm32"))]
pub mod docs;
pub mod edge;
pub mod facts;
pub mod fingerprint;
pub mod http;
mod inband;
pub mod providers;
pub mod rule;
pub mod table;
pub mod transport;

use crate::class::ErrorClass::{self, ConnectionError, Overloaded, QuotaExhausted, RateLimited, Timeout, Unknown};
use crate::class::Scope::{Provider, Request};
pub use crate::class::{Classification, Delivery};
use crate::headers::Headers;
use crate::json::Outline;
use crate::limits::limits;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::text::{self, joined};
use crate::time::Instant;
use crate::wait_hint::{body_hint, header_hint};
use alloc::borrow::Cow;
pub use custom::CustomRule;
use facts::{Facts, Shape};
pub use http::is_bare;
use inband::Found;
pub(crate) use inband::is_no_answer;
pub use inband::{FINISHES, Finish};
use rule::Subject;
use table::Table;

/// A transport error and its causes, outermost first: entries separated by `\u{1e}`, each `name \u{1f} code \u{1f}
/// message`. At most 8 entries are looked at.
#[derive(Clone, Copy, Debug)]
pub struct TransportError<'a>(pub &'a str);

/// What is known of one answer, or of its absence.
#[derive(Clone, Copy, Debug)]
pub struct Signal<'a> {
    /// A built-in name (`openai`), a host name, or nothing.
    pub provider: &'a str,
    /// The API's shape.
    pub protocol: Protocol,
    /// The URL, or nothing; its host stands in for an unknown provider.
    pub url: &'a str,
    /// The HTTP status; `None`: there was no answer.
    pub status: Option<u16>,
    /// The headers, packed.
    pub headers: Headers<'a>,
    /// The body, of which 64 KiB are looked at. An empty one on a success of a known protocol is a failure.
    pub body: &'a [u8],
    /// Whether `body` is what a stream delivered after its head.
    pub stream: bool,
    /// What the transport threw.
    pub error: Option<TransportError<'a>>,
    /// The user's own rules, tried first.
    pub custom: &'a [CustomRule],
    /// Now, for hints that are dates.
    pub now: Instant,
}

impl Signal<'_> {
    /// A signal of nothing: no answer, no error.
    pub const EMPTY: Self = Signal {
        provider: "",
        protocol: Protocol::Unknown,
        url: "",
        status: None,
        headers: Headers::EMPTY,
        body: b"",
        stream: false,
        error: None,
        custom: &[],
        now: Instant(0),
    };

    /// The provider's table, by name, by host, or by the host of the URL.
    fn provider(&self) -> Option<&'static providers::Provider> {
        providers::find(self.provider).or_else(|| providers::by_host(host(self.url)?))
    }
}

/// The host of a URL, without port and user.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = text::cut(url, "://")?;
    let authority = text::before(rest, "/?#");
    let host = text::cut_last(authority, "@").map_or(authority, |(_, host)| host);
    Some(if host.starts_with('[') { host } else { text::before(host, ":") })
}

/// Whether the request can have reached the provider.
///
/// `answered` if there was a status, save for those by which something in between says that it got no answer
/// (504, 520, 524: `maybe_sent`) or never asked (521, 522, 523, 525, 526, 530: `not_sent`).
#[must_use]
pub fn delivery(status: Option<u16>, error: Option<TransportError<'_>>) -> Delivery {
    match (status, error) {
        (_, Some(error)) if status.is_none_or(|s| s < 400) => {
            let delivery = transport::find(error).delivery;
            // A head that came is proof that the request was sent.
            if status.is_some() { Delivery::MaybeSent } else { delivery }
        }
        (Some(504 | 520 | 524) | None, _) => Delivery::MaybeSent,
        (Some(521 | 522 | 523 | 525 | 526 | 530), _) => Delivery::NotSent,
        (Some(_), _) => Delivery::Answered,
    }
}

/// What the failure is; `None`: it is none.
#[must_use]
pub fn classify(signal: &Signal<'_>) -> Option<Classification> {
    classify_outlined(signal, None)
}

/// The same, with the outline of the body's first value if somebody has it.
pub(crate) fn classify_outlined(signal: &Signal<'_>, outline: Option<&Outline<'_>>) -> Option<Classification> {
    let Some(status) = signal.status else {
        // Neither an answer nor an error: nothing is known, and that is no success.
        return Some(custom_transport(signal, transport::classify(signal.error.unwrap_or(TransportError("")))));
    };
    if status >= 300 {
        let facts = Facts::of_body(signal.headers, signal.body);
        return Some(verdict(signal, status, &facts, false));
    }
    let content_type = signal.headers.get("content-type").unwrap_or_default();
    let found = if matches!(status, 204 | 205) {
        Found::Fine
    } else if signal.stream {
        inband::in_stream(signal.body, content_type)
    } else {
        inband::in_body(signal.body, content_type, signal.protocol != Protocol::Unknown, outline)
    };
    let found = match found {
        // What broke the stream knows better why it is cut.
        Found::Fine | Found::Cut | Found::Nothing | Found::Blank if signal.error.is_some() => {
            return signal.error.map(|error| custom_transport(signal, transport::classify(error)));
        }
        found => found,
    };
    let plain = |class, retryable, scope, name: &'static str| {
        Some(Classification {
            class,
            retryable,
            scope,
            wait_hint: header_hint(signal.headers, signal.now),
            reason: Cow::Borrowed(name),
            rule: Cow::Owned(joined(&["generic.", name])),
        })
    };
    match found {
        Found::Fine => None,
        Found::Error(facts) => Some(verdict(signal, twin_status(signal, &facts), &facts, false)),
        Found::ChoiceError(facts) => Some(verdict(signal, twin_status(signal, &facts), &facts, true)),
        Found::Finish(finish) => plain(finish.class, finish.retry, finish.scope, finish.name),
        Found::Cut => plain(ConnectionError, true, Provider, "cut_answer"),
        Found::Nothing => plain(ConnectionError, true, Provider, "no_answer"),
        Found::Blank => plain(Timeout, true, Provider, "only_keep_alives"),
        Found::Silent => plain(Unknown, false, Request, "silent_answer"),
        Found::Page => plain(Unknown, true, Provider, "page_instead_of_answer"),
    }
}

/// The status that an error inside a 200 would have had. `invalid_request_error` is a type that lies (Mistral's capacity,
/// Anthropic's rate limit come with it): the provider's own words for a 429 or a 503 are asked before it is believed.
fn twin_status(signal: &Signal<'_>, facts: &Facts) -> u16 {
    let twin = http::twin_status(facts);
    let table = signal.provider().or_else(|| providers::by_name(providers::of_protocol(signal.protocol)));
    if let (400, Some(table)) = (twin, table) {
        for status in [429, 503] {
            let subject = Subject { status, facts, headers: signal.headers, hint_ms: None };
            if table.rules.find(&subject, true).is_some() {
                return status;
            }
        }
    }
    twin
}

/// A user's rules may speak of transport errors too, by their reason as code.
fn custom_transport(signal: &Signal<'_>, built_in: Classification) -> Classification {
    if signal.custom.is_empty() {
        return built_in;
    }
    let facts = Facts::of_code(&built_in.reason);
    custom::find(signal.custom, 0, &facts).map_or(built_in, |rule| rule.classification(signal.provider, None))
}

/// The first rule that holds, in the order in which the tables are tried, with the name that its table goes by.
fn first_rule(
    provider: Option<&'static providers::Provider>,
    protocol: Protocol,
    subject: &Subject<'_>,
) -> Option<(&'static str, table::Verdict)> {
    let find = |name, rules: Table, by_words| rules.find(subject, by_words).map(|rule| (name, rule));
    if matches!(subject.facts.shape, Shape::Html | Shape::Text)
        && let Some(found) = find("edge", edge::TABLE, false)
    {
        return Some(found);
    }
    let base = provider.map_or_else(|| providers::of_protocol(protocol), |p| p.base);
    for table in [provider, providers::by_name(base)].into_iter().flatten() {
        // On nobody's host a server is known by its words, never by a status alone.
        let by_words = provider.is_none() && providers::SELF_HOSTED.contains(&table.name);
        if let Some(found) = find(table.name, table.rules, by_words) {
            return Some(found);
        }
    }
    // Nobody's host: servers that people run themselves are told by what they say.
    if provider.is_none() {
        for table in providers::SELF_HOSTED.iter().filter_map(|name| providers::by_name(name)) {
            if let Some(found) = find(table.name, table.rules, true) {
                return Some(found);
            }
        }
    }
    find("generic", http::TABLE, false)
}

/// The verdict on an error whose facts are known.
fn verdict(signal: &Signal<'_>, status: u16, facts: &Facts, in_choice: bool) -> Classification {
    let ignored = facts.hint_never_comes_true();
    let header = if ignored { None } else { header_hint(signal.headers, signal.now) };
    let hint = if ignored { None } else { header.or_else(|| body_hint(facts, signal.now)) };
    if let Some(rule) = custom::find(signal.custom, status, facts) {
        return rule.classification(signal.provider, header);
    }
    let subject = Subject { status, facts, headers: signal.headers, hint_ms: hint.map(|h| h.0) };
    let provider = signal.provider();
    let found = first_rule(provider, signal.protocol, &subject);
    let Some((table, rule)) = found else {
        return Classification {
            class: Unknown,
            retryable: should_retry(signal, facts, Unknown, true),
            scope: Provider,
            wait_hint: hint,
            reason: reason(facts, "unknown_error"),
            rule: Cow::Borrowed("generic.unknown_error"),
        };
    };
    // A router's own failure is of the route to the model.
    let routed = in_choice && rule.scope == Provider;
    let class = rule.class;
    let wait_hint = match class {
        RateLimited | QuotaExhausted | Overloaded if !ignored => {
            hint.or_else(|| limits(provider.map_or("", |p| p.name), signal.headers, signal.now).wait(signal.now))
        }
        ErrorClass::ServerError | Timeout | ConnectionError | Unknown => hint,
        // A text that says when to try again is an echo where trying again is pointless.
        _ => header,
    };
    Classification {
        class,
        retryable: should_retry(signal, facts, class, rule.retry.unwrap_or_else(|| class.may_retry_same_target())),
        scope: if routed { inband::ROUTED } else { rule.scope },
        wait_hint,
        reason: if table == "generic" { reason(facts, rule.name) } else { Cow::Borrowed(rule.name) },
        rule: Cow::Owned(joined(&[table, ".", rule.name])),
    }
}

/// The first code that reads like a name, else the rule's name.
fn reason(facts: &Facts, rule: &'static str) -> Cow<'static, str> {
    let is_name = |c: &&str| {
        (3..=64).contains(&c.len())
            && !c.starts_with("response.")
            && c.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
            && c.bytes().any(|b| b.is_ascii_alphabetic())
    };
    facts.codes().find(is_name).map_or(Cow::Borrowed(rule), |c| Cow::Owned(c.to_owned()))
}

/// What the server itself says of trying again: `x-should-retry` (OpenAI, Anthropic), OpenRouter's `availability`.
/// "No" is always obeyed; "yes" not where the key, the bill or the payload is at fault.
fn should_retry(signal: &Signal<'_>, facts: &Facts, class: ErrorClass, rule: bool) -> bool {
    let said = match signal.headers.get("x-should-retry") {
        Some(v) if v.eq_ignore_ascii_case("true") => Some(true),
        Some(v) if v.eq_ignore_ascii_case("false") => Some(false),
        _ => facts.retryable,
    };
    let open =
        class.may_retry_same_target() || matches!(class, Unknown | ErrorClass::BadRequest | ErrorClass::Cancelled);
    match said {
        Some(false) => false,
        Some(true) if open => true,
        _ => rule,
    }
}
