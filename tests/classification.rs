//! The shared table of provider errors, and this project's own, against `classify`.
//!
//! `tests/data/provider-errors.json` is the shared table, `tests/data/more-errors.json` what it lacks, in the same form.
//! Where a case is believed to be wrong it is listed in `DISAGREEMENTS` with the reason, and the answer given instead is
//! checked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use evenkeel::classify::{Classification, Signal, TransportError, classify};
use evenkeel::headers::Headers;
use evenkeel::protocol::Protocol;
use evenkeel::time::Instant;
use serde::Deserialize;
use std::collections::BTreeMap;

const NOW: Instant = Instant(1_795_996_800_000); // 2026-11-30T00:00:00Z

#[derive(Deserialize)]
struct Case {
    id: String,
    provider: String,
    protocol: String,
    status: Option<u16>,
    headers: BTreeMap<String, String>,
    body: String,
    #[serde(default)]
    stream: bool,
    expect: Option<Expect>,
}

#[derive(Deserialize, Debug, PartialEq)]
struct Expect {
    class: String,
    retryable: bool,
    wait_ms: Option<u64>,
    scope: String,
}

/// Case id, what is answered instead, why.
const DISAGREEMENTS: &[(&str, Instead, &str)] = &[];

/// Class, retryable, wait, scope.
type Instead = (&'static str, bool, Option<u64>, &'static str);

/// `{name, code, message, cause}` as the packed chain.
fn pack(error: &serde_json::Value) -> String {
    let mut out = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let field = |name: &str| error.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        if !out.is_empty() {
            out.push('\u{1e}');
        }
        out.push_str(&[field("name"), field("code"), field("message")].join("\u{1f}"));
        next = error.get("cause").filter(|c| c.is_object());
    }
    out
}

fn run(case: &Case) -> Option<Classification> {
    let headers: String = case.headers.iter().flat_map(|(n, v)| [n, ":", v, "\n"]).collect();
    let packed;
    let mut signal = Signal {
        provider: &case.provider,
        protocol: Protocol::from_name(&case.protocol).unwrap_or_default(),
        status: case.status,
        headers: Headers(&headers),
        body: case.body.as_bytes(),
        stream: case.stream,
        now: NOW,
        ..Signal::EMPTY
    };
    if case.protocol == "transport" {
        packed = pack(&serde_json::from_str(&case.body).unwrap());
        signal.body = b"";
        signal.error = Some(TransportError(&packed));
    }
    classify(&signal)
}

fn observed(verdict: Option<&Classification>) -> Option<Expect> {
    verdict.map(|v| Expect {
        class: v.class.name().into(),
        retryable: v.retryable,
        wait_ms: v.wait_hint.map(|w| w.0),
        scope: v.scope.name().into(),
    })
}

fn check(table: &str) {
    let cases: Vec<Case> = serde_json::from_str(table).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let verdict = run(case);
        let got = observed(verdict.as_ref());
        let instead = DISAGREEMENTS.iter().find(|d| d.0 == case.id).map(|d| Expect {
            class: d.1.0.into(),
            retryable: d.1.1,
            wait_ms: d.1.2,
            scope: d.1.3.into(),
        });
        let expected = instead.as_ref().or(case.expect.as_ref());
        if got.as_ref() != expected {
            wrong.push(format!("{}\n  want {expected:?}\n  got  {got:?} by {:?}", case.id, verdict.map(|v| v.rule)));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_case_of_the_shared_table_is_told_right() {
    check(include_str!("data/provider-errors.json"));
}

#[test]
fn every_case_that_the_shared_table_lacks_is_told_right() {
    check(include_str!("data/more-errors.json"));
}
