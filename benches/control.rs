//! What the control plane costs: admission, pick, breaker, budget and settling of one call, at 1,000 tenants and 200
//! buckets, and with many calls waiting. `cargo bench --bench control`; prints nanoseconds.
#![allow(
    clippy::disallowed_methods,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    missing_docs,
    reason = "a benchmark reads the clock, and stops at anything odd"
)]

use evenkeel::call::Action;
use evenkeel::class::{ErrorClass, Scope};
use evenkeel::control::{
    Admission, Ask, CallId, ConcurrencyConfig, Control, ControlConfig, LimitKind, LimitWindow, Outcome, PoolConfig,
    Priority, RetryCost, VendorLimit,
};
use evenkeel::engine::{Begin, Engine};
use evenkeel::policy::Policy;
use evenkeel::time::{Instant, Millis};
use std::hint::black_box;
use std::time::Instant as Clock;

fn ask<'a>(call: u64, model: &'a str, tenant: &'a str, now: u64) -> Ask<'a> {
    Ask {
        call: CallId(call),
        provider: "openai",
        model,
        account: None,
        tenant,
        priority: if call.is_multiple_of(4) { Priority::Batch } else { Priority::Interactive },
        input_tokens: 500,
        output_tokens: 500,
        deadline: Instant(now + 600_000),
        min_attempt: Millis(1_000),
        avoid: &[],
    }
}

fn limits(now: u64) -> [VendorLimit; 2] {
    let tokens = VendorLimit {
        kind: LimitKind::Tokens,
        window: LimitWindow::Minute,
        limit: Some(10_000_000),
        remaining: Some(9_000_000),
        reset_at: Some(Instant(now + 6_000)),
    };
    [tokens, VendorLimit { kind: LimitKind::Requests, ..tokens }]
}

/// One call after the other over `organisations` buckets for each of `models`; nanoseconds a call.
fn calls(name: &str, organisations: usize, models: usize) {
    let pools = (0..organisations).map(|n| PoolConfig {
        provider: "openai".into(),
        organisation: format!("org-{n}"),
        keys: vec![format!("key-{n}")],
        models: None,
        weight: 1,
        preflight: false,
    });
    let config = ControlConfig { pools: pools.collect(), ..ControlConfig::default() };
    let mut control = Control::new(config).unwrap();
    let tenants: Vec<String> = (0..1_000).map(|n| format!("tenant-{n}")).collect();
    let models: Vec<String> = (0..models).map(|n| format!("gpt-{n}")).collect();
    let mut best = f64::MAX;
    let mut call: u64 = 0;
    for _ in 0..20 {
        let start = Clock::now();
        for _ in 0..20_000 {
            call += 1;
            let now = 1_000_000 + call;
            let (model, tenant) = (&models[call as usize % models.len()], &tenants[(call * 7) as usize % 1_000]);
            control.on_first_attempt("openai", Instant(now));
            let Admission::Granted(permit) = control.admit(&ask(call, model, tenant, now), Instant(now)) else {
                panic!("refused")
            };
            let limits = limits(now);
            let outcome = Outcome {
                limits: &limits,
                used_tokens: Some(700),
                first_token: Some(Millis(300)),
                latency: Millis(2_000),
                output_tokens: Some(200),
                ..Outcome::default()
            };
            control.settle(permit.id, &outcome, Instant(now));
            if call.is_multiple_of(100) {
                black_box(control.may_retry("openai", RetryCost::Plain, Instant(now)));
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / 20_000.0);
    }
    println!("{name:<58} {best:>8.0} ns");
}

/// Memory that the process holds, in bytes; 0 where there is no `/proc`.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4_096.0
}

/// `waiting` calls behind a bucket with one place: what it costs to queue, to hand over a place, and to hold.
fn waiting(waiting: u64) {
    let config = ControlConfig {
        concurrency: Some(ConcurrencyConfig { max: Some(1), ..ConcurrencyConfig::default() }),
        max_queued: 1_000_000,
        ..ControlConfig::default()
    };
    let mut control = Control::new(config).unwrap();
    let now = 1_000_000;
    let tenants: Vec<String> = (0..1_000).map(|n| format!("tenant-{n}")).collect();
    let Admission::Granted(mut held) = control.admit(&ask(0, "gpt", "", now), Instant(now)) else { panic!("refused") };
    let before = resident();
    let start = Clock::now();
    for call in 1..=waiting {
        let tenant = &tenants[call as usize % 1_000];
        black_box(control.admit(&ask(call, "gpt", tenant, now), Instant(now)));
    }
    let queued = start.elapsed().as_nanos() as f64 / waiting as f64;
    let bytes = (resident() - before) / waiting as f64;
    let turns = waiting.min(5_000);
    let start = Clock::now();
    for _ in 0..turns {
        control.settle(held.id, &Outcome::default(), Instant(now));
        let CallId(next) = control.take_woken().unwrap();
        let tenant = &tenants[next as usize % 1_000];
        let Admission::Granted(permit) = control.admit(&ask(next, "gpt", tenant, now), Instant(now)) else {
            panic!("called in vain")
        };
        held = permit;
    }
    let turn = start.elapsed().as_nanos() as f64 / turns as f64;
    println!(
        "{waiting:>7} waiting: to queue {queued:>6.0} ns, to hand over {turn:>6.0} ns, each holds {bytes:>5.0} bytes"
    );
}

/// The same as whole calls of a keel: with their policy, facts and record under way.
fn whole_calls_waiting(waiting: u32) {
    let config = ControlConfig {
        concurrency: Some(ConcurrencyConfig { max: Some(1), ..ConcurrencyConfig::default() }),
        max_queued: 1_000_000,
        ..ControlConfig::default()
    };
    let mut engine = Engine::new(1, Some("secret"), Policy::STANDARD, Control::new(config).unwrap());
    let now = Instant(1_000_000);
    let tenants: Vec<String> = (0..1_000).map(|n| format!("tenant-{n}")).collect();
    let (before, start) = (resident(), Clock::now());
    for call in 0..=waiting {
        let tenant = &tenants[call as usize % 1_000];
        engine.request_body(
            br#"{"model":"gpt-5","max_tokens":500,"messages":[{"role":"user","content":"Why is the sky blue?"}]}"#,
        );
        let begin = Begin {
            url: "https://api.openai.com/v1/chat/completions",
            method: "POST",
            tenant,
            operation: "ticket.summary",
            replayable: true,
            ..Begin::default()
        };
        let (_, action) = engine.begin(&begin, now);
        assert_eq!(action, if call == 0 { Action::Send } else { Action::Wait });
    }
    let each = f64::from(waiting);
    let (begun, bytes) = (start.elapsed().as_nanos() as f64 / each, (resident() - before) / each);
    println!("{waiting:>7} whole calls waiting: to begin {begun:>6.0} ns, each holds {bytes:>5.0} bytes");
}

/// A breaker that is open: what failing fast costs.
fn failing_fast() {
    let mut control = Control::new(ControlConfig::default()).unwrap();
    for call in 0..5 {
        let Admission::Granted(permit) = control.admit(&ask(call, "gpt", "", 0), Instant(1)) else { panic!("refused") };
        let outcome = Outcome { class: Some(ErrorClass::ServerError), scope: Some(Scope::Model), ..Outcome::default() };
        control.settle(permit.id, &outcome, Instant(1));
    }
    let start = Clock::now();
    for call in 0..100_000 {
        black_box(control.admit(&ask(call, "gpt", "", 0), Instant(2)));
    }
    println!("{:<58} {:>8.0} ns", "refused by an open breaker", start.elapsed().as_nanos() as f64 / 100_000.0);
}

fn main() {
    calls("one call, nothing configured", 0, 1);
    calls("one call, 1,000 tenants, 20 models x 10 organisations", 10, 20);
    calls("one call, 1,000 tenants, 1 model x 200 organisations", 200, 1);
    failing_fast();
    for n in [10_000, 100_000] {
        waiting(n);
    }
    whole_calls_waiting(100_000);
}
