//! Whatever comes: no panic, bounded work, the same answer twice. A fixed number of mutated inputs, from a fixed seed.
//!
//! The same entry points have a coverage-guided target in `fuzz/`, whose corpus begins with these seeds.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

use evenkeel::classify::fingerprint::fingerprint;
use evenkeel::classify::{Signal, TransportError, classify, providers};
use evenkeel::headers::Headers;
use evenkeel::json::{Outline, Value};
use evenkeel::limits::limits;
use evenkeel::protocol::Protocol;
use evenkeel::time::Instant;
use evenkeel::usage::{served_model, usage};
use evenkeel::wait_hint::wait_hint;

const INPUTS: u32 = 20_000;
const NOW: Instant = Instant(1_795_996_800_000);

const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b":",
    b",",
    b"\n",
    b"\r\n\r\n",
    b"data: ",
    b"event: error\n",
    b"error: ",
    b"null",
    b"\"error\":",
    b"\"code\":429",
    b"\\ud800",
    b"\\u0000",
    b"\xff\xfe",
    b"\xEF\xBB\xBF",
    b"[DONE]",
    b"999999999999999999999",
    b"-1",
    b"retry after ",
    b"try again in 1h",
    b"limit 0 requested 1",
    b"\"message\":\"{\\\"error\\\":",
    b"<html>",
    b"'",
    b"`",
];

fn seeds() -> Vec<(Vec<u8>, String)> {
    let mut out = Vec::new();
    for table in [include_str!("data/provider-errors.json"), include_str!("data/more-errors.json")] {
        let cases: Vec<serde_json::Value> = serde_json::from_str(table).unwrap();
        for case in cases {
            let headers: String = case["headers"]
                .as_object()
                .unwrap()
                .iter()
                .flat_map(|(n, v)| [n.as_str(), ":", v.as_str().unwrap(), "\n"])
                .collect();
            out.push((case["body"].as_str().unwrap().as_bytes().to_vec(), headers));
        }
    }
    out
}

fn mutate(rng: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(0..=bytes.len());
        match rng.u8(0..5) {
            0 => bytes.truncate(at),
            1 => {
                let token = TOKENS[rng.usize(0..TOKENS.len())];
                bytes.splice(at..at, token.iter().copied());
            }
            2 if at < bytes.len() => bytes[at] = rng.u8(..),
            3 if at < bytes.len() => {
                let end = rng.usize(at..bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ if at < bytes.len() => {
                let end = rng.usize(at..bytes.len());
                bytes.drain(at..end);
            }
            _ => {}
        }
        bytes.truncate(1 << 16);
    }
}

fn drive(provider: &str, protocol: Protocol, status: Option<u16>, stream: bool, body: &[u8], headers: &str) {
    let text = String::from_utf8_lossy(body);
    let signal = Signal {
        provider,
        protocol,
        url: &text,
        status,
        headers: Headers(headers),
        body,
        stream,
        error: status.is_none().then_some(TransportError(&text)),
        custom: &[],
        now: NOW,
    };
    let verdict = classify(&signal);
    assert_eq!(verdict, classify(&signal));
    if let Some(verdict) = verdict {
        assert!(verdict.reason.len() <= 64 && verdict.rule.len() <= 64, "{verdict:?}");
    }
    let _ = wait_hint(provider, Headers(headers), body, NOW);
    let _ = limits(provider, Headers(&text), NOW);
    if let Some(value) = Value::parse(body) {
        let outline = Outline::of(value);
        let _ = usage(protocol, &outline);
        let _ = served_model(protocol, &outline);
    }
    assert!(fingerprint(status, body).len() <= 160);
    if let Some(id) = providers::request_id(provider, Headers(headers), body) {
        assert!(id.len() <= 128 && id.is_ascii());
    }
}

#[test]
fn mutated_inputs_neither_panic_nor_change_their_answer() {
    let seeds = seeds();
    let names: Vec<&str> = providers::all().map(|p| p.name).chain(["", "localhost"]).collect();
    let protocols: Vec<Protocol> = Protocol::names().filter_map(Protocol::from_name).collect();
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..INPUTS {
        let (body, headers) = &seeds[rng.usize(0..seeds.len())];
        let (mut body, mut headers) = (body.clone(), headers.clone().into_bytes());
        mutate(&mut rng, &mut body);
        if rng.bool() {
            mutate(&mut rng, &mut headers);
        }
        let headers = String::from_utf8_lossy(&headers).into_owned();
        let status = [None, Some(200), Some(400), Some(429), Some(500), Some(rng.u16(..))][rng.usize(0..6)];
        let provider = names[rng.usize(0..names.len())];
        let protocol = protocols[rng.usize(0..protocols.len())];
        drive(provider, protocol, status, rng.bool(), &body, &headers);
    }
}

#[test]
fn adversarial_bodies_cost_bounded_work() {
    let quotes = format!(r#"{{"error":{{"message":"{}"}}}}"#, "'limit ".repeat(8_000));
    let leads = format!(r#"{{"error":{{"message":"{}"}}}}"#, "retry in ".repeat(8_000));
    let codes = format!("{{{}}}", vec![r#""code":"x""#; 6_000].join(","));
    let nested = format!(r#"{{"errors":[{}]}}"#, vec![r#"{"errors":[{"errors":[{"message":"m"}]}]}"#; 1_500].join(","));
    let mut strings = String::from(r#"{"message":"x"}"#);
    while strings.len() < 60_000 {
        strings = format!("{{\"message\":{}}}", serde_json::to_string(&strings).unwrap());
    }
    let doubled = format!("[{}]", [&*strings; 8].join(","));
    let wide = vec![b'['; 1 << 20];
    let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(1 << 20));
    let events = "data: {\"choices\":[{\"delta\":{}}]}\n\n".repeat(2_000);
    let colons = ":\n".repeat(30_000);
    let bodies: [&[u8]; 10] = [
        quotes.as_bytes(),
        leads.as_bytes(),
        codes.as_bytes(),
        nested.as_bytes(),
        doubled.as_bytes(),
        &wide,
        long.as_bytes(),
        events.as_bytes(),
        colons.as_bytes(),
        strings.as_bytes(),
    ];
    // Work is counted by the clock only to catch what isn't linear: each takes milliseconds even unoptimised.
    #[allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
    let start = std::time::Instant::now();
    for body in bodies {
        for status in [Some(200), Some(400), Some(429), Some(500)] {
            for stream in [false, true] {
                drive("", Protocol::OpenAiChat, status, stream, body, "x-ratelimit-reset: 1\n");
            }
        }
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_thousand_headers_and_a_megabyte_of_one_are_no_trouble() {
    let many = "x-ratelimit-remaining-tokens: 0\nretry-after: soon\n".repeat(1_000);
    let huge = format!("retry-after: {}\n", "9".repeat(1 << 20));
    for headers in [&many, &huge] {
        drive("openai", Protocol::OpenAiChat, Some(429), false, b"{}", headers);
        assert_eq!(wait_hint("openai", Headers(headers), b"", NOW), None);
    }
}

/// `cargo test --test hostile_input -- --ignored seeds` writes the corpus of the coverage-guided target.
#[test]
#[ignore = "writes fuzz/corpus"]
fn seeds_of_the_fuzz_target_are_written() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/classify");
    std::fs::create_dir_all(&dir).unwrap();
    for table in [include_str!("data/provider-errors.json"), include_str!("data/more-errors.json")] {
        let cases: Vec<serde_json::Value> = serde_json::from_str(table).unwrap();
        for case in cases {
            let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
            let status = case["status"].as_u64().map_or_else(|| "-".to_owned(), |s| s.to_string());
            let stream = if case["stream"].as_bool() == Some(true) { "stream" } else { "whole" };
            let headers: String = case["headers"]
                .as_object()
                .unwrap()
                .iter()
                .flat_map(|(n, v)| [n.as_str(), ":", v.as_str().unwrap(), "\n"])
                .collect();
            let input =
                format!("{} {} {status} {stream}\n{headers}\n{}", text("provider"), text("protocol"), text("body"));
            std::fs::write(dir.join(text("id")), input).unwrap();
        }
    }
}
