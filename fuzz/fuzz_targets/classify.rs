//! `classify`, `wait_hint`, the header parsers, `usage` and the fingerprint on anything: no panic, bounded answers.
//!
//! `cargo +nightly fuzz run classify`. An input is a line of selectors (provider, protocol, status, stream), the headers,
//! an empty line, and the body; the corpus is written by `cargo test --test hostile_input -- --ignored seeds`.
#![no_main]

use evenkeel::classify::fingerprint::fingerprint;
use evenkeel::classify::{CustomRule, Signal, TransportError, classify, providers};
use evenkeel::headers::Headers;
use evenkeel::limits::limits;
use evenkeel::protocol::Protocol;
use evenkeel::time::Instant;
use evenkeel::usage::{served_model, usage};
use evenkeel::wait_hint::wait_hint;
use libfuzzer_sys::fuzz_target;

const NOW: Instant = Instant(1_795_996_800_000);

fuzz_target!(|data: &[u8]| {
    let split = data.windows(2).position(|w| w == b"\n\n").unwrap_or(data.len());
    let (head, body) = data.split_at(split);
    let body = body.get(2..).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let (first, headers) = head.split_once('\n').unwrap_or((&head, ""));
    let mut fields = first.split(' ');
    let provider = fields.next().unwrap_or_default();
    let protocol = fields.next().and_then(Protocol::from_name).unwrap_or_default();
    let status = fields.next().and_then(|s| s.parse().ok());
    let stream = fields.next() == Some("stream");
    let text = String::from_utf8_lossy(body);
    let custom = CustomRule::parse_all(&text).unwrap_or_default();
    let headers = Headers(headers);
    let signal = Signal {
        provider,
        protocol,
        url: &text,
        status,
        headers,
        body,
        stream,
        error: status.is_none().then_some(TransportError(&text)),
        custom: &custom,
        now: NOW,
    };
    assert_eq!(classify(&signal), classify(&signal));
    let _ = wait_hint(provider, headers, body, NOW);
    let _ = limits(provider, headers, NOW);
    let _ = usage(protocol, body);
    let _ = served_model(protocol, body);
    let _ = providers::request_id(provider, headers, body);
    assert!(fingerprint(status, body).len() <= 160);
});
