//! No HTTP answer at all: what the runtimes call it.
//!
//! One table for Node (undici, `node:http`, `node:http2`, OpenSSL), Bun, Deno, workerd and the browsers. The whole
//! chain of causes is walked, since the outermost message is often only "fetch failed" or "terminated". Strong evidence
//! (a code, a name) stands above weak wording. Each rule also says whether the request can have reached the provider.
//! Sources: undici `lib/core/errors.js`, Node `errors` docs, Bun `src/bun.js`, workerd `src/workerd/api/http.c++`,
//! sindresorhus/is-network-error, gemini-cli `retry.ts`.

use super::TransportError;
use super::facts::{is_listed, word_bit};
use crate::class::ErrorClass::{self, BadRequest, Cancelled, ConnectionError, StreamInterrupted, Timeout, Unknown};
use crate::class::Scope::{self, Provider, Request};
use crate::class::{Classification, Delivery};
use alloc::borrow::Cow;

/// The deepest cause that is looked at.
const MAX_DEPTH: usize = 8;

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct TransportRule {
    /// Unique, `snake_case`.
    pub name: &'static str,
    /// Any of these, separated by `|`, as an entry's code or name (exactly), or in a message as a word of capitals.
    pub codes: &'static str,
    /// Any of these, separated by `|`, in an entry's message, lower case.
    pub texts: &'static str,
    /// What it is.
    pub class: ErrorClass,
    /// What it speaks of.
    pub scope: Scope,
    /// Whether the same call would plausibly succeed soon.
    pub retry: bool,
    /// Whether the request can have reached the provider.
    pub delivery: Delivery,
    /// The [`word_bit`]s of the codes.
    code_bits: u64,
}

/// The bits of words separated by `|`.
#[allow(clippy::arithmetic_side_effects, reason = "const: a mistake doesn't compile")]
const fn bits_of(mut words: &[u8]) -> u64 {
    let (mut bits, mut length) = (0, 0);
    loop {
        if length == words.len() || matches!(words.split_at(length).1, [b'|', ..]) {
            let (word, rest) = words.split_at(length);
            bits |= word_bit(word);
            let [_, rest @ ..] = rest else { return bits };
            words = rest;
            length = 0;
        } else {
            length += 1;
        }
    }
}

const fn t(
    name: &'static str,
    codes: &'static str,
    texts: &'static str,
    class: ErrorClass,
    delivery: Delivery,
) -> TransportRule {
    TransportRule {
        name,
        codes,
        texts,
        class,
        scope: Provider,
        retry: class.may_retry_same_target(),
        delivery,
        code_bits: bits_of(codes.as_bytes()),
    }
}

impl TransportRule {
    const fn never(self) -> Self {
        Self { retry: false, ..self }
    }

    const fn request(self) -> Self {
        Self { scope: Request, ..self }
    }
}

use crate::prelude::*;
use crate::text::{self, joined};
use Delivery::{MaybeSent, NotSent};

/// Tried in order, each against every cause.
#[rustfmt::skip] // one rule a line
pub const RULES: &[TransportRule] = &[
    // What our own stream guard reports when a body ends before its meaning did.
    t("stream_interrupted", "StreamInterrupted", "", StreamInterrupted, MaybeSent),
    // A key of the user's that could not be had: nothing was sent, and nobody's health is told by it.
    t("key_unavailable", "EVENKEEL_KEY", "", Unknown, NotSent),
    // Our own fault: it will not change.
    t("invalid_url", "ERR_INVALID_URL|ERR_INVALID_PROTOCOL|UND_ERR_INVALID_ARG", "invalid url|failed to parse url|unsupported protocol|unknown scheme|url scheme", BadRequest, NotSent),
    t("certificate", "CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|ERR_TLS_CERT_ALTNAME_INVALID|CERT_REVOKED|CERT_UNTRUSTED|CERT_REJECTED|UNKNOWN_CERTIFICATE_VERIFICATION_ERROR", "certificate has expired|self signed certificate|self-signed certificate|unable to verify the first certificate|invalid peer certificate|certificate verify failed|certificate is not trusted|does not match certificate's altnames", ConnectionError, NotSent).never(),
    t("tls_version", "ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_UNSUPPORTED_PROTOCOL|EPROTO", "wrong version number|unsupported protocol version", ConnectionError, NotSent).never(),
    // Never processed: free to send again.
    t("refused", "ECONNREFUSED|ConnectionRefused|FailedToOpenSocket", "connection refused|unable to connect. is the computer able to access the url", ConnectionError, NotSent),
    t("dns", "ENOTFOUND|EAI_AGAIN|EAI_NODATA|EAI_NONAME|EAI_FAIL|DNSException|ENODATA|ESERVFAIL|DNS_ENOTFOUND", "getaddrinfo|dns error|failed to lookup address|name not resolved|dns lookup", ConnectionError, NotSent),
    t("unreachable", "EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|EADDRNOTAVAIL", "network is unreachable|no route to host", ConnectionError, NotSent),
    t("connect_timeout", "UND_ERR_CONNECT_TIMEOUT|ConnectTimeoutError", "connect timeout|connection timed out|tcp connect error: deadline", Timeout, NotSent),
    t("http2_refused", "NGHTTP2_REFUSED_STREAM", "refused_stream|refused stream", ConnectionError, NotSent),
    // Sent, perhaps processed, perhaps billed.
    t("headers_timeout", "UND_ERR_HEADERS_TIMEOUT|HeadersTimeoutError", "headers timeout", Timeout, MaybeSent),
    t("body_timeout", "UND_ERR_BODY_TIMEOUT|BodyTimeoutError", "body timeout", Timeout, MaybeSent),
    t("socket_timeout", "ETIMEDOUT|ESOCKETTIMEDOUT|ERR_SOCKET_CONNECTION_TIMEOUT", "socket hang up due to timeout", Timeout, MaybeSent),
    t("reset", "ECONNRESET|ECONNABORTED|EPIPE|ConnectionReset|ConnectionClosed|ERR_SOCKET_CLOSED|SocketError|UND_ERR_SOCKET|UND_ERR_CLOSED|UND_ERR_DESTROYED|BrokenPipe|UnexpectedEof", "connection reset|socket hang up|other side closed|socket connection was closed|connection closed before message completed|broken pipe|peer closed connection|connection error: |closed unexpectedly", ConnectionError, MaybeSent),
    t("premature_close", "ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP2_STREAM_ERROR|ERR_HTTP2_SESSION_ERROR|ERR_HTTP2_GOAWAY_SESSION|ERR_HTTP2_STREAM_CANCEL|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|HPE_INVALID_CONSTANT|HPE_INVALID_CHUNK_SIZE|HPE_CLOSED_CONNECTION|HPE_INVALID_EOF_STATE|HTTPParserError|UND_ERR_RESPONSE|ERR_CONTENT_LENGTH_MISMATCH|ERR_INCOMPLETE_CHUNKED_ENCODING|Z_BUF_ERROR|ERR_CONTENT_DECODING_FAILED|ZlibError|BrotliDecompressionError", "premature close|prematurely|response body object should not be disturbed or locked by a reset|end of file before message length reached|error reading a body from connection|error decoding response body|unexpected end of file|incomplete json segment|invalid http response", ConnectionError, MaybeSent),
    t("tls_broken", "ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC|ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC|ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR|ERR_SSL_SSL/TLS_ALERT_BAD_RECORD_MAC", "bad record mac|ssl alert|tls handshake eof|client network socket disconnected before secure tls|handshake failure", ConnectionError, MaybeSent),
    // workerd: "the dominant Worker error", also while a body is read.
    t("workerd_lost", "", "network connection lost|internal error; reference|internal error.|the script will never generate a response|stream was cancelled by the remote", ConnectionError, MaybeSent),
    t("workerd_limit", "", "too many subrequests|subrequest depth limit exceeded", BadRequest, NotSent),
    // Names: after the codes, so that an abort caused by a broken connection is what broke it.
    t("timeout", "TimeoutError|ERR_TIMEOUT|ERR_TIMED_OUT|UND_ERR_ABORTED_TIMEOUT", "operation timed out|operation was aborted due to timeout|request timed out|the request timed out|signal timed out|deadline has elapsed", Timeout, MaybeSent),
    t("aborted", "AbortError|ABORT_ERR|UND_ERR_ABORTED|ERR_CANCELED|APIUserAbortError", "operation was aborted|request was aborted|fetch is aborted|user aborted|signal is aborted without reason", Cancelled, MaybeSent).request(),
    // Wording that says only that it failed: undici, Chromium, Safari, Firefox, React Native, Deno, Bun.
    t("body_interrupted", "", "terminated|error in input stream|error reading response|stream closed|body stream interrupted|aborted by the server", ConnectionError, MaybeSent),
    t("fetch_failed", "", "fetch failed|failed to fetch|load failed|networkerror when attempting to fetch|network request failed|network error|error sending request|the internet connection appears to be offline|the network connection was lost|connection error|client error (|err_network|err_internet|err_connection|err_http2|err_quic|net::err", ConnectionError, MaybeSent),
];

/// Names of causes that say nothing.
pub(crate) const UNKNOWN: TransportRule = TransportRule {
    name: "unknown",
    codes: "",
    texts: "",
    class: Unknown,
    scope: Provider,
    retry: false,
    delivery: MaybeSent,
    code_bits: 0,
};

/// The words of a message that look like a code: capitals, digits and underscores, e.g. `read ECONNRESET`.
fn codes_in(message: &str) -> impl Iterator<Item = &str> {
    text::pieces(message, " :,().").filter(|word| {
        word.len() > 4 && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    })
}

/// The rule of a transport error.
pub(crate) fn find(error: TransportError<'_>) -> &'static TransportRule {
    let mut codes: Vec<(u64, &str)> = Vec::new();
    let mut messages = String::new();
    for entry in text::pieces(error.0, "\u{1e}").take(MAX_DEPTH) {
        let mut fields = text::pieces(entry, "\u{1f}");
        for word in [fields.next(), fields.next()].into_iter().flatten().filter(|word| !word.is_empty()) {
            codes.push((word_bit(word.as_bytes()), word));
        }
        let message = fields.rest();
        let message = message.char_indices().nth(512).and_then(|(at, _)| message.get(..at)).unwrap_or(message);
        for code in codes_in(message).take(8) {
            codes.push((word_bit(code.as_bytes()), code));
        }
        messages.push_str(message);
        messages.push('\n');
    }
    messages.make_ascii_lowercase();
    let hits = |rule: &TransportRule| {
        codes.iter().any(|(bit, code)| rule.code_bits & bit != 0 && is_listed(code, rule.codes))
            || (!rule.texts.is_empty() && text::pieces(rule.texts, "|").any(|text| text::has(&messages, text)))
    };
    RULES.iter().find(|rule| hits(rule)).unwrap_or(&UNKNOWN)
}

/// The verdict on a transport error.
pub(crate) fn classify(error: TransportError<'_>) -> Classification {
    let rule = find(error);
    Classification {
        class: rule.class,
        retryable: rule.retry,
        scope: rule.scope,
        wait_hint: None,
        reason: Cow::Borrowed(rule.name),
        rule: Cow::Owned(joined(&["transport.", rule.name])),
    }
}
