//! The invariants of a logical request, over random histories: whatever the upstream, the clock, the caller and the host
//! do, in whatever order.
//!
//! The driver here is a hostile one: it answers each action with any outcome, lets timers fire late, lets the clock stand
//! still, sends inputs that do not fit, and cancels at any time.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "tests"
)]

use evenkeel::call::{Action, Input};
use evenkeel::classify::TransportError;
use evenkeel::control::{Control, ControlConfig};
use evenkeel::engine::{Begin, Engine};
use evenkeel::headers::Headers;
use evenkeel::ledger::{ATTEMPT_FIELDS, CALL_FIELDS, FIELD, RECORD};
use evenkeel::policy::Policy;
use evenkeel::time::{Instant, Millis};
use proptest::prelude::*;
use std::collections::BTreeMap;

const START: u64 = 1_795_996_800_000;

/// What the upstream does with one attempt.
#[derive(Clone, Debug)]
enum Fate {
    Status { status: u16, hint: Option<u32>, body: &'static str },
    BodyBreaks,
    Reset,
    Refused,
    Hang,
    Stream { chunks: Vec<&'static str>, end: End },
}

#[derive(Clone, Copy, Debug)]
enum End {
    Clean,
    Reset,
    Stall,
}

const GOOD: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":9}}"#;
const CHUNKS: [&str; 6] = [
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":\"server_is_overloaded\"}}\n\n",
    ": ping\n\n",
    "data: {\"choi",
];

fn fate() -> impl Strategy<Value = Fate> {
    let body = prop_oneof![
        Just(GOOD),
        Just(r#"{"error":{"message":"x","type":"server_error"}}"#),
        Just(r#"{"error":{"message":"x","code":"insufficient_quota"}}"#),
        Just(r#"{"error":{"code":"rate_limit_exceeded"}}"#),
        Just("<html>"),
        Just("{\"a\":["),
        Just(""),
    ];
    let statuses = prop_oneof![
        Just(200_u16),
        Just(400),
        Just(401),
        Just(408),
        Just(429),
        Just(500),
        Just(503),
        Just(529),
        100_u16..600
    ];
    prop_oneof![
        4 => (statuses, proptest::option::of(0_u32..90), body).prop_map(|(status, hint, body)| Fate::Status { status, hint, body }),
        1 => Just(Fate::BodyBreaks),
        1 => Just(Fate::Reset),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Hang),
        3 => (proptest::collection::vec(proptest::sample::select(&CHUNKS[..]), 0..5),
              prop_oneof![Just(End::Clean), Just(End::Reset), Just(End::Stall)])
            .prop_map(|(chunks, end)| Fate::Stream { chunks, end }),
    ]
}

#[derive(Clone, Debug)]
struct Script {
    seed: u64,
    fates: Vec<Fate>,
    latency: Vec<u16>,
    late_timers: u16,
    stream: bool,
    deadline: Option<u32>,
    max_attempts: u32,
    ambiguous: bool,
    cancel_after: Option<u8>,
    noise: bool,
}

fn script() -> impl Strategy<Value = Script> {
    (
        (
            any::<u64>(),
            proptest::collection::vec(fate(), 1..6),
            proptest::collection::vec(0_u16..4_000, 1..8),
            0_u16..30,
        ),
        (
            any::<bool>(),
            proptest::option::of(0_u32..120_000),
            1_u32..5,
            any::<bool>(),
            proptest::option::of(0_u8..12),
            any::<bool>(),
        ),
    )
        .prop_map(
            |(
                (seed, fates, latency, late_timers),
                (stream, deadline, max_attempts, ambiguous, cancel_after, noise),
            )| Script {
                seed,
                fates,
                latency,
                late_timers,
                stream,
                deadline,
                max_attempts,
                ambiguous,
                cancel_after,
                noise,
            },
        )
}

/// What a run shows.
#[derive(Debug, Default)]
struct Outcome {
    sent: u32,
    committed: bool,
    sent_after_commit: bool,
    shortest_wait_over_hint: Option<i64>,
    ended_at: u64,
    last_action: Option<Action>,
    records: Vec<BTreeMap<&'static str, String>>,
}

fn unpack(packed: &str) -> Vec<BTreeMap<&'static str, String>> {
    packed
        .split(RECORD)
        .filter(|r| !r.is_empty())
        .map(|record| {
            let fields: Vec<&str> = record.split(FIELD).collect();
            let names = match fields[0] {
                "attempt" => ATTEMPT_FIELDS,
                "call" => CALL_FIELDS,
                _ => &["type", "kind", "at", "subject", "detail"],
            };
            assert_eq!(names.len(), fields.len(), "a record has its fields: {record:?}");
            names.iter().zip(fields).map(|(n, f)| (*n, f.to_owned())).collect()
        })
        .collect()
}

fn play(script: &Script) -> Outcome {
    let policy = Policy {
        max_attempts: script.max_attempts,
        retry_ambiguous: script.ambiguous,
        total: Millis(90_000),
        first_byte: Millis(5_000),
        first_byte_always: true,
        attempt: Millis(20_000),
        ..Policy::STANDARD
    };
    let control = Control::new(ControlConfig::default()).unwrap();
    let mut engine = Engine::new(script.seed, Some("test"), policy, control);
    let mut now = START;
    let mut out = Outcome::default();
    let body = format!(r#"{{"model":"gpt-5","stream":{},"messages":[{{"content":"SECRET PROMPT"}}]}}"#, script.stream);
    engine.request_body(body.as_bytes());
    let begin = Begin {
        url: "https://api.openai.com/v1/chat/completions?key=SECRET",
        method: "POST",
        replayable: true,
        deadline: script.deadline.map(|ms| Millis(u64::from(ms))),
        credential: "Bearer sk-SECRET",
        ..Begin::default()
    };
    let (id, mut action) = engine.begin(&begin, Instant(now));
    let mut hint: Option<(u64, u64)> = None;
    let mut chunks: Vec<&str> = Vec::new();
    let mut end = End::Clean;
    let mut steps = 0_u32;
    let mut fate_at = 0_usize;
    loop {
        steps += 1;
        assert!(steps < 400, "a call ends: {action:?}");
        out.last_action = Some(action);
        if matches!(action, Action::Deliver | Action::Return | Action::Fail | Action::Reject | Action::Break) {
            break;
        }
        if script.noise {
            // Inputs that do not fit the state change nothing.
            assert_eq!(engine.handle(id, Input::Judged(None), Instant(now)), Action::Continue);
            assert_eq!(engine.handle(id.wrapping_add(1), Input::Timer, Instant(now)), Action::Continue);
        }
        if script.cancel_after.is_some_and(|n| steps > u32::from(n)) {
            // Told to send, and told to stop before it did: the attempt has begun, and has its record.
            out.sent += u32::from(action == Action::Send);
            action = engine.handle(id, Input::Cancelled, Instant(now));
            continue;
        }
        let latency = u64::from(script.latency[steps as usize % script.latency.len()]);
        let wake = engine.call(id).map_or(Instant::NEVER, evenkeel::call::Call::wake);
        let late = u64::from(script.late_timers);
        // A timer that fires before the upstream does something.
        let timer = |now: &mut u64| {
            *now = (*now).max(wake.0) + late;
            Input::Timer
        };
        action = match action {
            Action::Send => {
                if let Some((at, ms)) = hint.take() {
                    let over = i64::try_from(now - at).unwrap() - i64::try_from(ms).unwrap();
                    out.shortest_wait_over_hint = Some(out.shortest_wait_over_hint.map_or(over, |o| o.min(over)));
                }
                out.sent += 1;
                out.sent_after_commit |= out.committed;
                let fate = &script.fates[fate_at % script.fates.len()];
                fate_at += 1;
                let answers = now + latency < wake.0;
                match fate {
                    _ if !answers => engine.handle(id, timer(&mut now), Instant(now)),
                    Fate::Hang => engine.handle(id, timer(&mut now), Instant(now)),
                    Fate::Reset => {
                        now += latency;
                        engine.handle(
                            id,
                            Input::Transport(TransportError("Error\u{1f}ECONNRESET\u{1f}socket hang up\u{1e}")),
                            Instant(now),
                        )
                    }
                    Fate::Refused => engine.handle(
                        id,
                        Input::Transport(TransportError("Error\u{1f}ECONNREFUSED\u{1f}refused\u{1e}")),
                        Instant(now),
                    ),
                    Fate::Status { status, hint: after, .. } => {
                        now += latency;
                        let mut headers = String::from("content-type:application/json\nx-request-id:req_1\n");
                        if let Some(after) = after {
                            headers.push_str(&format!("retry-after:{after}\n"));
                            hint = Some((now, u64::from(*after) * 1_000));
                        }
                        engine.handle(id, Input::Head { status: *status, headers: Headers(&headers) }, Instant(now))
                    }
                    Fate::BodyBreaks => {
                        now += latency;
                        engine.handle(
                            id,
                            Input::Head { status: 200, headers: Headers("content-type:application/json\n") },
                            Instant(now),
                        )
                    }
                    Fate::Stream { chunks: c, end: e } => {
                        now += latency;
                        chunks.clone_from(c);
                        chunks.reverse();
                        end = *e;
                        engine.handle(
                            id,
                            Input::Head { status: 200, headers: Headers("content-type:text/event-stream\n") },
                            Instant(now),
                        )
                    }
                }
            }
            Action::ReadBody { .. } => match &script.fates[(fate_at - 1) % script.fates.len()] {
                Fate::Status { body, .. } => {
                    engine.handle(id, Input::Body { bytes: body.as_bytes(), complete: true }, Instant(now))
                }
                _ => engine.handle(
                    id,
                    Input::Transport(TransportError("TypeError\u{1f}\u{1f}terminated\u{1e}")),
                    Instant(now),
                ),
            },
            Action::ReadStream | Action::Commit | Action::Continue => {
                out.committed |= action == Action::Commit;
                if now + latency / 10 >= wake.0 {
                    engine.handle(id, timer(&mut now), Instant(now))
                } else if let Some(chunk) = chunks.pop() {
                    now += latency / 10;
                    let next = engine.handle(id, Input::Chunk(chunk.as_bytes()), Instant(now));
                    out.committed |= next == Action::Commit;
                    next
                } else {
                    match end {
                        End::Clean => engine.handle(id, Input::StreamEnd, Instant(now)),
                        End::Reset => engine.handle(
                            id,
                            Input::Transport(TransportError("TypeError\u{1f}\u{1f}terminated\u{1e}")),
                            Instant(now),
                        ),
                        End::Stall => engine.handle(id, timer(&mut now), Instant(now)),
                    }
                }
            }
            Action::Sleep | Action::Wait => engine.handle(id, timer(&mut now), Instant(now)),
            other => panic!("an action that nobody asked for: {other:?}"),
        };
        if !matches!(action, Action::Sleep | Action::Wait | Action::Send) {
            hint = hint.filter(|_| matches!(action, Action::ReadBody { .. }));
        }
    }
    out.ended_at = now;
    out.records = unpack(&engine.take_records());
    engine.forget(id);
    assert_eq!(engine.active(), 0, "nothing is left in the table");
    let counts = engine.control().permits();
    assert_eq!(
        counts.given,
        counts.returned + counts.expired,
        "permits given equal permits returned or expired: {counts:?}"
    );
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_in_any_history(script in script()) {
        let out = play(&script);
        // 1. Attempts never exceed their limits.
        prop_assert!(out.sent <= script.max_attempts);
        // 2. Nothing runs past the deadline by more than a timer's lateness.
        let total = script.deadline.map_or(90_000, |ms| u64::from(ms).min(90_000));
        if out.last_action != Some(Action::Deliver) {
            prop_assert!(out.ended_at <= START + total + 2 * u64::from(script.late_timers) + 400, "{} ms over", out.ended_at - START - total);
        }
        // 3. After the commit point there is no further attempt.
        prop_assert!(!out.sent_after_commit);
        // 4. Exactly one record for each attempt that started, and one for the call.
        let attempts: Vec<_> = out.records.iter().filter(|r| r["type"] == "attempt").collect();
        let calls: Vec<_> = out.records.iter().filter(|r| r["type"] == "call").collect();
        prop_assert_eq!(u32::try_from(attempts.len()).unwrap(), out.sent);
        prop_assert_eq!(calls.len(), 1);
        let numbers: Vec<u32> = attempts.iter().map(|r| r["attempt_no"].parse().unwrap()).collect();
        prop_assert_eq!(numbers, (1..=out.sent).collect::<Vec<_>>());
        // 5. No wait is shorter than the hint that it obeys.
        prop_assert!(out.shortest_wait_over_hint.is_none_or(|over| over >= 0), "{:?}", out.shortest_wait_over_hint);
        // 7. A class that may not be retried is not.
        for record in &attempts {
            if record["decision"] == "retry" {
                let class = evenkeel::class::ErrorClass::from_name(&record["error_class"]).unwrap();
                prop_assert!(class.may_retry_same_target(), "{record:?}");
                prop_assert!(script.ambiguous || record["delivery"] != "maybe_sent", "{record:?}");
            }
        }
        // 10. Cancelled is never counted as failed.
        if out.last_action == Some(Action::Reject) {
            prop_assert_eq!(calls[0]["status"].as_str(), "cancelled");
            prop_assert!(attempts.iter().all(|r| r["status"] != "failed" || r["decision"] == "retry"));
        }
        // 11. No secret and no prompt leaves through a record.
        for record in &out.records {
            prop_assert!(record.values().all(|v| !v.contains("SECRET")), "{record:?}");
        }
    }
}

#[test]
fn the_same_seed_clock_and_answers_give_the_same_records() {
    let script = Script {
        seed: 7,
        fates: vec![
            Fate::Status { status: 503, hint: None, body: "" },
            Fate::Reset,
            Fate::Status { status: 200, hint: None, body: GOOD },
        ],
        latency: vec![120],
        late_timers: 0,
        stream: false,
        deadline: None,
        max_attempts: 3,
        ambiguous: true,
        cancel_after: None,
        noise: false,
    };
    let (a, b) = (play(&script), play(&script));
    assert_eq!(a.records, b.records);
    assert_eq!((a.sent, a.last_action), (3, Some(Action::Deliver)));
}
