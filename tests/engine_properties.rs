//! The invariants of a keel under many calls at once: 100,000 calls a run, in histories in which the upstream, the
//! callers, the host and the clock do whatever they like. One seed makes a history; a failure names it.
//!
//! `ENGINE_SEED` makes it another set of histories, `ENGINE_HISTORIES` more of them.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "tests"
)]

mod common;

use common::two_organisations;
use evenkeel::call::{Action, Input};
use evenkeel::class::ErrorClass;
use evenkeel::classify::TransportError;
use evenkeel::control::{ConcurrencyConfig, Control, ControlConfig, TenantLimits};
use evenkeel::engine::{Begin, Engine};
use evenkeel::headers::Headers;
use evenkeel::ledger::{ATTEMPT_FIELDS, CALL_FIELDS, FIELD, RECORD};
use evenkeel::policy::Policy;
use evenkeel::time::{Instant, Millis};
use std::collections::{BTreeMap, BTreeSet};

const CALLS: u32 = 400;
const HISTORIES: u64 = 250;
const TOTAL: u64 = 60_000;

const GOOD: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":9}}"#;
const CONTENT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const LAST: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const IN_BAND: &str = "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\"}}\n\n";
const FAILURES: [(u16, &str); 7] = [
    (400, r#"{"error":{"message":"SECRET PROMPT is wrong","type":"invalid_request_error"}}"#),
    (401, r#"{"error":{"message":"no","code":"invalid_api_key"}}"#),
    (404, r#"{"error":{"message":"no","code":"model_not_found"}}"#),
    (429, r#"{"error":{"message":"no","code":"rate_limit_exceeded"}}"#),
    (429, r#"{"error":{"message":"no","code":"insufficient_quota","type":"insufficient_quota"}}"#),
    (500, r#"{"error":{"message":"no","type":"server_error"}}"#),
    (503, r#"{"error":{"message":"no","code":"server_is_overloaded"}}"#),
];

/// Where the host is with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Sent,
    Body(usize),
    Stream,
}

#[derive(Debug)]
struct Live {
    id: u32,
    logical: String,
    phase: Phase,
    committed: bool,
    cancelled: bool,
}

struct History {
    rng: fastrand::Rng,
    engine: Engine,
    now: u64,
    max_attempts: u32,
    pooled: bool,
    preflight: bool,
    live: Vec<Live>,
    begun: u32,
    /// Attempts sent, by logical request.
    sent: BTreeMap<String, u32>,
    cancelled: BTreeSet<String>,
    records: Vec<BTreeMap<&'static str, String>>,
    /// The latest instant that was.
    latest: u64,
}

fn config(rng: &mut fastrand::Rng, pooled: bool, preflight: bool) -> ControlConfig {
    let mut config = ControlConfig {
        concurrency: Some(ConcurrencyConfig {
            max: rng.bool().then(|| rng.u32(1..20)),
            ..ConcurrencyConfig::default()
        }),
        max_queued: rng.usize(0..200),
        max_tenants: rng.usize(1..5),
        max_targets: rng.usize(1..5),
        ..ControlConfig::default()
    };
    if rng.bool() {
        config.default_tenant = TenantLimits { concurrency: Some(3), ..TenantLimits::default() };
    }
    if pooled {
        config.pools = two_organisations("openai", preflight);
    }
    config
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (pooled, preflight) = (rng.bool(), rng.bool());
        let control = Control::new(config(&mut rng, pooled, preflight)).unwrap();
        let max_attempts = rng.u32(1..6);
        let policy = Policy { max_attempts, total: Millis(TOTAL), attempt: Millis(20_000), ..Policy::STANDARD };
        Self {
            engine: Engine::new(seed, Some("test"), policy, control),
            rng,
            now: 1_795_996_800_000,
            max_attempts,
            pooled,
            preflight: pooled && preflight,
            live: Vec::new(),
            begun: 0,
            sent: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            records: Vec::new(),
            latest: 1_795_996_800_000,
        }
    }

    fn begin(&mut self) {
        self.begun += 1;
        let stream = self.rng.bool();
        let model = ["gpt-5", "gpt-5-mini", "o9"][self.rng.usize(0..3)];
        self.engine
            .request_body(format!(r#"{{"model":"{model}","stream":{stream},"messages":"SECRET PROMPT"}}"#).as_bytes());
        let begin = Begin {
            url: "https://api.openai.com/v1/chat/completions?key=SECRET",
            method: "POST",
            tenant: ["", "acme", "other"][self.rng.usize(0..3)],
            batch: self.rng.bool(),
            replayable: true,
            deadline: self.rng.bool().then(|| Millis(self.rng.u64(0..TOTAL))),
            credential: "Bearer sk-SECRET",
            ..Begin::default()
        };
        let (id, action) = self.engine.begin(&begin, Instant(self.now));
        let logical = self.engine.call(id).map_or_else(String::new, |call| call.facts().logical_request_id.clone());
        assert!(!logical.is_empty(), "a call that has just begun is known");
        self.live.push(Live { id, logical, phase: Phase::Waiting, committed: false, cancelled: false });
        self.take(self.live.len() - 1, action);
    }

    /// Does what an action says, as far as the host's own part of it goes.
    fn take(&mut self, at: usize, action: Action) {
        let Live { id, ref logical, committed, .. } = self.live[at];
        match action {
            Action::Send => {
                assert!(!committed, "3: nothing is sent after the commit point");
                let sent = self.sent.entry(logical.clone()).or_default();
                *sent += 1;
                assert!(*sent <= self.max_attempts, "1: {sent} attempts of {}", self.max_attempts);
                let call = self.engine.call(id).unwrap();
                assert!(
                    call.deadline() > Instant(self.now),
                    "2: sent at {} with deadline {:?}",
                    self.now,
                    call.deadline()
                );
                self.no_other_probe(id);
                self.live[at].phase = Phase::Sent;
            }
            Action::ReadBody { .. } | Action::Continue | Action::Judge => {}
            Action::ReadStream => self.live[at].phase = Phase::Stream,
            Action::Commit => {
                self.live[at].phase = Phase::Stream;
                self.live[at].committed = true;
            }
            Action::Sleep | Action::Wait => self.live[at].phase = Phase::Waiting,
            Action::Deliver | Action::Return | Action::Fail | Action::Reject | Action::Break => {
                self.engine.ending(id);
                let ended = self.live.swap_remove(at);
                if ended.cancelled {
                    self.cancelled.insert(ended.logical);
                }
            }
        }
    }

    /// 8: one probe of a breaker, unless the other's lease is over.
    fn no_other_probe(&mut self, id: u32) {
        let own = *self.engine.call(id).and_then(|call| call.permit()).unwrap();
        if !own.probe {
            return;
        }
        let model = self.engine.call(id).unwrap().facts().model.clone();
        for other in self.live.iter().filter(|other| other.id != id) {
            let Some(call) = self.engine.call(other.id) else { continue };
            let Some(permit) = call.permit() else { continue };
            let alive = permit.lease_until > Instant(self.latest) && permit.id.0 != 0;
            let probe = permit.probe && call.facts().model == model && alive;
            // A lease of sixty seconds may be over while its call goes on, and content proves health before the end.
            let young = call.deadline() > Instant(self.latest) && !other.committed;
            assert!(!(probe && young && self.latest < self.now + 1), "8: two probes of {model}");
        }
    }

    fn give(&mut self, at: usize, input: Input<'_>) {
        let action = self.engine.handle(self.live[at].id, input, Instant(self.now));
        self.take(at, action);
        while let Some(id) = self.engine.take_woken() {
            if let Some(at) = self.live.iter().position(|live| live.id == id) {
                let action = self.engine.handle(id, Input::Woken, Instant(self.now));
                self.take(at, action);
            }
        }
        let taken = self.engine.take_records();
        self.records.extend(unpack(&taken));
    }

    /// Lets something happen to one call.
    fn advance(&mut self, at: usize) {
        let due = self.engine.call(self.live[at].id).is_none_or(|call| call.wake() <= Instant(self.now));
        if due {
            return self.give(at, Input::Timer);
        }
        if self.rng.u32(0..60) == 0 {
            self.live[at].cancelled = true;
            return self.give(at, Input::Cancelled);
        }
        if self.rng.u32(0..200) == 0 {
            self.live.swap_remove(at); // killed by its host, without a word
            return;
        }
        match self.live[at].phase {
            Phase::Waiting => {}
            Phase::Sent => match self.rng.u32(0..10) {
                0 => self.give(at, Input::Transport(TransportError("Error\u{1f}ECONNRESET\u{1f}socket hang up\u{1e}"))),
                1 => self.give(at, Input::Transport(TransportError("Error\u{1f}ECONNREFUSED\u{1f}refused\u{1e}"))),
                2..=5 => self.head(at, 200, FAILURES.len()),
                6 => {
                    let headers = Headers("content-type:text/event-stream\n");
                    self.give(at, Input::Head { status: 200, headers });
                }
                7..=8 => {
                    let which = self.rng.usize(0..FAILURES.len());
                    self.head(at, FAILURES[which].0, which);
                }
                _ => {} // it says nothing
            },
            Phase::Body(which) => {
                let body = FAILURES.get(which).map_or(GOOD, |(_, body)| body);
                if self.rng.u32(0..20) == 0 {
                    self.give(at, Input::Transport(TransportError("TypeError\u{1f}\u{1f}terminated\u{1e}")));
                } else {
                    self.give(at, Input::Body { bytes: body.as_bytes(), complete: true });
                }
            }
            Phase::Stream => match self.rng.u32(0..8) {
                0..=3 => self.give(at, Input::Chunk(CONTENT.as_bytes())),
                4 => self.give(at, Input::Chunk(IN_BAND.as_bytes())),
                5 => self.give(at, Input::StreamEnd),
                6 => self.give(at, Input::Chunk(LAST.as_bytes())),
                _ => self.give(at, Input::Transport(TransportError("TypeError\u{1f}\u{1f}terminated\u{1e}"))),
            },
        }
    }

    fn head(&mut self, at: usize, status: u16, which: usize) {
        let mut headers = String::from("content-type:application/json\n");
        if self.rng.bool() {
            headers.push_str(&format!("retry-after:{}\n", self.rng.u32(0..9)));
        }
        if self.rng.bool() {
            let left = self.rng.u32(0..9);
            headers.push_str(&format!("x-ratelimit-limit-requests:9\nx-ratelimit-remaining-requests:{left}\n"));
        }
        self.live[at].phase = Phase::Body(which);
        self.give(at, Input::Head { status, headers: Headers(&headers) });
    }

    fn run(mut self) {
        while self.begun < CALLS || !self.live.is_empty() {
            match self.rng.u32(0..20) {
                0..=3 if self.begun < CALLS => self.begin(),
                4 => self.now += self.rng.u64(0..3_000),
                5 => self.now -= self.rng.u64(0..200),
                _ if !self.live.is_empty() => {
                    let at = self.rng.usize(0..self.live.len());
                    self.advance(at);
                }
                _ => {}
            }
            self.latest = self.latest.max(self.now);
        }
        // Those that their host killed are found, and nothing is left behind.
        for later in [120_000, 240_000] {
            self.engine.sweep(Instant(self.latest + later));
            self.engine.control_mut().sweep(Instant(self.latest + later));
        }
        let taken = self.engine.take_records();
        self.records.extend(unpack(&taken));
        assert_eq!(self.engine.active(), 0, "12: no call is left in the table");
        assert_eq!(self.engine.control().waiting(), 0, "12: nobody waits");
        let counts = self.engine.control().permits();
        assert_eq!((counts.held, counts.given), (0, counts.returned + counts.expired), "6: permits");
        self.check_records();
    }

    fn check_records(&self) {
        let mut calls = 0;
        let mut attempts: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for record in &self.records {
            assert!(record.values().all(|value| !value.contains("SECRET")), "11: {record:?}");
            let logical = record.get("logical_request_id").map_or("", String::as_str);
            let class = record.get("error_class").and_then(|class| ErrorClass::from_name(class));
            match record["type"].as_str() {
                "attempt" => {
                    attempts.entry(logical).or_default().push(record["attempt_no"].parse().unwrap());
                    if record["decision"] == "retry" {
                        let class = class.unwrap();
                        assert!(class.may_retry_same_target() || self.pooled, "7: {record:?}");
                        assert!(class != ErrorClass::Cancelled && class != ErrorClass::BadRequest, "7: {record:?}");
                    }
                    assert_eq!(record["status"] == "cancelled", class == Some(ErrorClass::Cancelled), "10: {record:?}");
                }
                "call" => {
                    calls += 1;
                    assert_eq!(record["status"] == "cancelled", class == Some(ErrorClass::Cancelled), "10: {record:?}");
                    if record["status"] == "cancelled" {
                        assert!(self.cancelled.contains(logical), "10: nobody cancelled {logical}");
                    }
                }
                _ => {}
            }
        }
        assert_eq!(calls, CALLS, "4: one record a call");
        for (logical, sent) in &self.sent {
            let numbers = attempts.remove(logical.as_str()).unwrap_or_default();
            assert_eq!(numbers, (1..=*sent).collect::<Vec<_>>(), "4: one record an attempt of {logical}");
        }
        assert!(attempts.is_empty(), "4: attempts that nobody sent: {attempts:?}");
        if self.preflight {
            let mut state = String::new();
            self.engine.control().state_json(Instant(self.latest), &mut state);
            assert!(state.contains("\"preflight\":\""), "{state}");
        }
    }
}

fn unpack(packed: &str) -> Vec<BTreeMap<&'static str, String>> {
    packed
        .split_terminator(RECORD)
        .map(|record| {
            let fields: Vec<&str> = record.split(FIELD).collect();
            let names = match fields[0] {
                "attempt" => ATTEMPT_FIELDS,
                "call" => CALL_FIELDS,
                _ => &["type", "kind", "at", "subject", "detail"],
            };
            assert_eq!(fields.len(), names.len(), "{record}");
            names.iter().copied().zip(fields.iter().map(ToString::to_string)).collect()
        })
        .collect()
}

#[test]
fn the_invariants_hold_for_a_hundred_thousand_calls_that_share_a_keel() {
    let of = |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (first, histories) = (of("ENGINE_SEED", 1), of("ENGINE_HISTORIES", HISTORIES));
    let calls = u64::from(CALLS) * histories;
    assert!(calls >= 100_000 || histories < HISTORIES, "{calls} calls");
    for seed in first..first + histories {
        let history = std::panic::AssertUnwindSafe(|| History::new(seed).run());
        if let Err(panic) = std::panic::catch_unwind(history) {
            eprintln!("the history of ENGINE_SEED={seed} ENGINE_HISTORIES=1");
            std::panic::resume_unwind(panic);
        }
    }
}
