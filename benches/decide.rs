//! Retry decisions a second, classification included, natively: `cargo bench --bench decide`.
//!
//! A decision is what a call does with a failed answer: [`classify`] its status, headers and body, draw a backoff, and
//! [`decide`] whether and when to try again. Every failure of the table below gets its turn in each round; the median
//! round is printed, and the slowest failure by itself.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench"
)]

use evenkeel::backoff::Backoff;
use evenkeel::call::{Facts, decide};
use evenkeel::class::Delivery;
use evenkeel::classify::{Signal, TransportError, classify};
use evenkeel::headers::Headers;
use evenkeel::policy::Policy;
use evenkeel::protocol::Protocol;
use evenkeel::time::{Instant as Point, Millis};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 31;
const EACH: u32 = 5_000;
const NOW: Point = Point(1_795_996_800_000);

/// A name and the failure.
type Failure = (&'static str, Signal<'static>);

fn failures() -> Vec<Failure> {
    let answer = |status, headers, body: &'static str| Signal {
        provider: "openai",
        protocol: Protocol::OpenAiChat,
        status: Some(status),
        headers: Headers(headers),
        body: body.as_bytes(),
        now: NOW,
        ..Signal::EMPTY
    };
    let json = "content-type:application/json\nx-request-id:req_1\n";
    vec![
        ("503 without a body", answer(503, "content-type:text/plain\n", "")),
        ("500", answer(500, json, r#"{"error":{"message":"The server had an error.","type":"server_error"}}"#)),
        (
            "429 with retry-after",
            answer(
                429,
                "content-type:application/json\nretry-after:2\n",
                r#"{"error":{"message":"Slow down.","type":"requests","code":"rate_limit_exceeded"}}"#,
            ),
        ),
        (
            "401",
            answer(
                401,
                json,
                r#"{"error":{"message":"Bad key.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            ),
        ),
        (
            "connection reset",
            Signal {
                provider: "openai",
                error: Some(TransportError(
                    "TypeError\u{1f}\u{1f}fetch failed\u{1e}Error\u{1f}ECONNRESET\u{1f}read ECONNRESET",
                )),
                now: NOW,
                ..Signal::EMPTY
            },
        ),
    ]
}

fn main() {
    let policy = Policy::STANDARD;
    let failures = failures();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut times = vec![Vec::new(); failures.len()];
    for _ in 0..ROUNDS {
        for ((_, signal), times) in failures.iter().zip(&mut times) {
            let start = Instant::now();
            for step in 0..EACH {
                let verdict = classify(black_box(signal)).unwrap();
                let mut waits = Backoff::new(policy.base, policy.cap, policy.jitter);
                let facts = Facts {
                    verdict: &verdict,
                    delivery: Delivery::Answered,
                    attempts: 1 + step % 2,
                    replayable: true,
                    repeatable: true,
                    now: NOW,
                    deadline: NOW.plus(Millis(60_000)),
                };
                let _ = black_box(decide(&facts, &policy, waits.delay(1, &mut rng), Millis::ZERO));
            }
            times.push(start.elapsed().as_nanos() as f64 / f64::from(EACH));
        }
    }
    let mut sum = 0.0;
    for ((name, _), times) in failures.iter().zip(&mut times) {
        times.sort_unstable_by(f64::total_cmp);
        let median = times.get(ROUNDS / 2).copied().unwrap_or(f64::NAN);
        sum += median;
        println!("{median:>7.0} ns  {name}");
    }
    let a_second = 1e9 * failures.len() as f64 / sum;
    println!("{:>7.2} million decisions a second (at least 2)", a_second / 1e6);
}
