//! Nanoseconds per classification, natively: `cargo bench --bench classify`.
//!
//! Medians of interleaved rounds, so that a busy machine slows every row alike. The bodies are cases of
//! `tests/data/provider-errors.json`, most of them 200 to 500 bytes, and successes.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench"
)]

use evenkeel::classify::{Signal, TransportError, classify};
use evenkeel::headers::Headers;
use evenkeel::json::{Outline, Value};
use evenkeel::protocol::Protocol;
use evenkeel::time::Instant as Point;
use evenkeel::usage::usage;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 31;
const CALLS: u32 = 2_000;

struct Row {
    name: String,
    run: Box<dyn Fn()>,
}

fn case(cases: &[serde_json::Value], id: &str, provider: Option<&'static str>) -> Row {
    let case = cases.iter().find(|c| c["id"] == id).unwrap();
    let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
    let (body, own, protocol) =
        (text("body"), text("provider"), Protocol::from_name(&text("protocol")).unwrap_or_default());
    let headers: String = case["headers"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(n, v)| [n.as_str(), ":", v.as_str().unwrap(), "\n"])
        .collect();
    let status = case["status"].as_u64().and_then(|s| u16::try_from(s).ok());
    let stream = case["stream"].as_bool().unwrap_or(false);
    let provider = provider.map_or(own, str::to_owned);
    Row {
        name: format!("{id} as {:?}, {} bytes", provider, body.len()),
        run: Box::new(move || {
            let signal = Signal {
                provider: &provider,
                protocol,
                status,
                headers: Headers(&headers),
                body: body.as_bytes(),
                stream,
                now: Point(1_795_996_800_000),
                ..Signal::EMPTY
            };
            black_box(classify(black_box(&signal)));
        }),
    }
}

fn main() {
    let cases: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../tests/data/provider-errors.json")).unwrap();
    let mut rows: Vec<Row> = [
        "openai-429-tpm-body-ms",
        "openai-400-bad-param",
        "openai-429-insufficient-quota",
        "anthropic-429-input-tokens",
        "gemini-429-per-minute-tokens",
        "bedrock-429-tokens",
        "openrouter-429-upstream-billing",
        "openai-stream-error-chunk",
        "edge-521",
        "xai-429-tpm",
        "groq-429-tpm-headers",
    ]
    .iter()
    .map(|id| case(&cases, id, None))
    .collect();
    rows.push(case(&cases, "openai-400-bad-param", Some("llm.internal.example")));
    rows.push(Row {
        name: "transport: fetch failed, ECONNRESET".to_owned(),
        run: Box::new(|| {
            let error = "TypeError\u{1f}\u{1f}fetch failed\u{1e}Error\u{1f}ECONNRESET\u{1f}read ECONNRESET";
            black_box(classify(black_box(&Signal { error: Some(TransportError(error)), ..Signal::EMPTY })));
        }),
    });
    for size in [300_usize, 4_000, 40_000] {
        let body = format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-5","choices":[{{"index":0,"message":{{"role":"assistant","content":"{}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":12}}}}"#,
            "Lorem ipsum dolor sit amet. ".repeat(size / 28)
        );
        let counted = body.clone();
        rows.push(Row {
            name: format!("success, {} bytes", body.len()),
            run: Box::new(move || {
                let signal = Signal {
                    provider: "openai",
                    protocol: Protocol::OpenAiChat,
                    status: Some(200),
                    body: body.as_bytes(),
                    ..Signal::EMPTY
                };
                black_box(classify(black_box(&signal)));
            }),
        });
        rows.push(Row {
            name: format!("usage of it, {} bytes", counted.len()),
            run: Box::new(move || {
                let value = Value::parse(black_box(counted.as_bytes())).unwrap();
                black_box(usage(Protocol::OpenAiChat, &Outline::of(value)));
            }),
        });
    }
    let mut times = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for (row, times) in rows.iter().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..CALLS {
                (row.run)();
            }
            times.push(start.elapsed().as_nanos() / u128::from(CALLS));
        }
    }
    for (row, times) in rows.iter().zip(&mut times) {
        times.sort_unstable();
        println!("{:>7} ns  {}", times[ROUNDS / 2], row.name);
    }
}
