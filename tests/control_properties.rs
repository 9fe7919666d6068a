//! The invariants of the control plane over random histories: more than 100,000 asks a run, with a clock that stands
//! still, jumps and goes back.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod common;

use common::two_organisations;
use evenkeel::class::{ErrorClass, Scope};
use evenkeel::control::{
    Admission, Ask, BreakerConfig, CallId, ConcurrencyConfig, Control, ControlConfig, KeyId, LimitKind, LimitWindow,
    Outcome, Permit, Priority, RetryBudget, RetryBudgetConfig, RetryCost, TenantLimits, VendorLimit,
};
use evenkeel::time::{Instant, Millis};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Ask { call: u64, model: u8, tenant: u8, batch: bool, tokens: u16, deadline: u16 },
    Settle { which: u8, class: u8, hint: Option<u16>, remaining: Option<u16> },
    Leave { call: u64 },
    Pass { ms: u16 },
    Back { ms: u16 },
    Sweep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ask = (0..60_u64, 0..3_u8, 0..4_u8, any::<bool>(), 0..2_000_u16, 0..20_000_u16).prop_map(
        |(call, model, tenant, batch, tokens, deadline)| Step::Ask { call, model, tenant, batch, tokens, deadline },
    );
    let settle = (any::<u8>(), 0..16_u8, proptest::option::of(0..9_000_u16), proptest::option::of(0..9_000_u16))
        .prop_map(|(which, class, hint, remaining)| Step::Settle { which, class, hint, remaining });
    let step = prop_oneof![
        8 => ask,
        5 => settle,
        1 => (0..60_u64).prop_map(|call| Step::Leave { call }),
        3 => (0..2_000_u16).prop_map(|ms| Step::Pass { ms }),
        1 => (0..3_000_u16).prop_map(|ms| Step::Back { ms }),
        1 => Just(Step::Sweep),
    ];
    proptest::collection::vec(step, 900)
}

fn config(max: Option<u32>, tenants: bool, pools: bool, preflight: bool) -> ControlConfig {
    let mut config = ControlConfig {
        concurrency: Some(ConcurrencyConfig { max, ..ConcurrencyConfig::default() }),
        breaker: Some(BreakerConfig { consecutive_failures: 3, cooldown: Millis(1_000), ..BreakerConfig::default() }),
        max_queued: 40,
        max_tenants: 3,
        max_targets: 2, // one fewer than there are models
        ..ControlConfig::default()
    };
    if tenants {
        config.default_tenant = TenantLimits {
            concurrency: Some(3),
            requests_per_minute: Some(200),
            tokens_per_minute: Some(50_000),
            share_per_mille: Some(600),
            weight: 2,
        };
    }
    if pools {
        config.pools = two_organisations("p", preflight);
    }
    config
}

/// What the control plane must not contradict.
#[derive(Default)]
struct Model {
    held: BTreeMap<u64, (Permit, u8)>,
    granted: u64,
    /// Buckets by when a hint lets them be used again: (said at, end).
    hinted: BTreeMap<u64, (u64, u64)>,
    disabled: Vec<KeyId>,
    /// Buckets that have answered well.
    proven: std::collections::BTreeSet<u64>,
    /// Permits whose end was seen to come; a clock that goes back does not give them back.
    lapsed: std::collections::BTreeSet<u64>,
}

fn run(config: ControlConfig, steps: &[Step], only_cancelled: bool) -> Result<u64, TestCaseError> {
    let max = config.concurrency.and_then(|concurrency| concurrency.max);
    let preflight = config.pools.iter().any(|pool| pool.preflight);
    let mut control = Control::new(config).expect("the configuration is valid");
    let mut model = Model::default();
    let mut now: u64 = 1_000_000;
    let mut asked = 0;
    for step in steps {
        if matches!(step, Step::Ask { .. } | Step::Settle { .. } | Step::Sweep) {
            model.lapsed.extend(model.held.values().filter(|(p, _)| p.lease_until.0 <= now).map(|(p, _)| p.id.0));
        }
        match step {
            Step::Ask { call, model: name, tenant, batch, tokens, deadline } => {
                let holds = model.held.contains_key(call);
                if holds {
                    continue; // one attempt at a time
                }
                asked += 1;
                let ask = Ask {
                    call: CallId(*call),
                    provider: "p",
                    model: ["x", "y", "z"][usize::from(*name)],
                    account: None,
                    tenant: ["", "t", "u", "v"][usize::from(*tenant)],
                    priority: if *batch { Priority::Batch } else { Priority::Interactive },
                    input_tokens: u64::from(*tokens),
                    output_tokens: 100,
                    deadline: Instant(now + u64::from(*deadline)),
                    min_attempt: Millis(500),
                    avoid: &[],
                };
                match control.admit(&ask, Instant(now)) {
                    Admission::Granted(permit) => {
                        model.granted += 1;
                        if permit.id.0 == 0 {
                            continue; // untracked: the table is full of what must not be forgotten
                        }
                        if let Some((_, end)) = model.hinted.get(&permit.bucket.0) {
                            prop_assert!(now >= *end, "sent {} ms before its hint's end", end - now);
                        }
                        if let Some(key) = permit.key {
                            prop_assert!(!model.disabled.contains(&key));
                        }
                        if permit.probe {
                            let others = model.held.values().filter(|(other, other_model)| {
                                other.probe && other_model == name && !model.lapsed.contains(&other.id.0)
                            });
                            prop_assert_eq!(others.count(), 0, "two probes of one model");
                        }
                        if preflight && !model.proven.contains(&permit.bucket.0) {
                            let others = model.held.values().filter(|(other, _)| {
                                other.bucket == permit.bucket && !model.lapsed.contains(&other.id.0)
                            });
                            prop_assert_eq!(others.count(), 0, "a call beside a preflight");
                        }
                        model.held.insert(*call, (permit, *name));
                        if let Some(max) = max {
                            let live = model.held.values().filter(|(other, _)| {
                                other.bucket == permit.bucket && !model.lapsed.contains(&other.id.0)
                            });
                            prop_assert!(live.count() <= max as usize);
                        }
                    }
                    Admission::Wait { until, .. } => {
                        prop_assert!(until > Instant(now));
                    }
                    Admission::Refused { .. } => {}
                }
            }
            Step::Settle { which, class, hint, remaining } => {
                let Some(call) = model.held.keys().copied().nth(usize::from(*which) % model.held.len().max(1)) else {
                    continue;
                };
                let Some((permit, _)) = model.held.remove(&call) else { continue };
                let class = if only_cancelled {
                    Some(ErrorClass::Cancelled)
                } else {
                    ErrorClass::all().nth(usize::from(*class))
                };
                let scope = class.map(|class| match class {
                    ErrorClass::AuthError | ErrorClass::PermissionError => Scope::Key,
                    ErrorClass::RateLimited | ErrorClass::QuotaExhausted => Scope::Bucket,
                    _ => Scope::Model,
                });
                let limits = remaining.map(|remaining| VendorLimit {
                    kind: LimitKind::Tokens,
                    window: LimitWindow::Minute,
                    limit: Some(9_000),
                    remaining: Some(remaining.into()),
                    reset_at: Some(Instant(now + 2_000)),
                });
                let hint = hint.map(|hint| Millis(hint.into())).filter(|_| class.is_some());
                let outcome =
                    Outcome { class, scope, wait_hint: hint, limits: limits.as_slice(), ..Outcome::default() };
                control.settle(permit.id, &outcome, Instant(now));
                if class.is_none() {
                    model.proven.insert(permit.bucket.0);
                }
                if model.lapsed.contains(&permit.id.0) {
                    continue; // it may have been forgotten
                }
                let obeyed = matches!(class, Some(ErrorClass::RateLimited | ErrorClass::Overloaded));
                if let (true, Some(hint)) = (obeyed, hint) {
                    let end = model.hinted.get(&permit.bucket.0).map_or(0, |(_, end)| *end);
                    model.hinted.insert(permit.bucket.0, (now, end.max(now + hint.0)));
                }
                if let (Some(ErrorClass::AuthError | ErrorClass::PermissionError), Some(key)) = (class, permit.key) {
                    model.disabled.push(key);
                }
            }
            Step::Leave { call } => control.leave(CallId(*call), Instant(now)),
            Step::Pass { ms } => now += u64::from(*ms),
            Step::Back { ms } => {
                now -= u64::from(*ms);
                for (said, end) in model.hinted.values_mut().filter(|(said, _)| *said > now) {
                    let length = *end - *said; // it starts again on the new clock, with its whole length
                    (*said, *end) = (now, now + length.min(*end - now));
                }
            }
            Step::Sweep => control.sweep(Instant(now)),
        }
        while control.take_woken().is_some() {}
        let counts = control.permits();
        prop_assert_eq!(counts.given, counts.returned + counts.expired + counts.held);
        if only_cancelled {
            while let Some(notice) = control.take_notice() {
                prop_assert_eq!(notice.kind, evenkeel::control::NoticeKind::PermitLost);
            }
        }
    }
    // Everybody leaves and everything ends: nothing is left behind.
    for call in 0..60 {
        control.leave(CallId(call), Instant(now));
    }
    control.sweep(Instant(now + 100_000));
    prop_assert_eq!((control.permits().held, control.waiting()), (0, 0));
    let mut state = String::new();
    control.state_json(Instant(now), &mut state);
    let parsed: serde_json::Value = serde_json::from_str(&state).expect("the state is JSON");
    let in_flight = parsed["vendor"].as_array().unwrap().iter().map(|bucket| bucket["in_flight"].as_u64().unwrap());
    prop_assert_eq!(in_flight.sum::<u64>(), 0);
    let active = parsed["tenants"].as_array().unwrap().iter().map(|tenant| tenant["active"].as_u64().unwrap());
    prop_assert_eq!(active.sum::<u64>(), 0);
    Ok(asked)
}

/// A fixed seed, so that a run can be repeated; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` make it another or a longer one.
fn settings(cases: u32) -> ProptestConfig {
    let from_env = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = from_env("PROPTEST_RNG_SEED").unwrap_or(2026);
    let cases = from_env("PROPTEST_CASES").and_then(|cases| u32::try_from(cases).ok()).unwrap_or(cases);
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn permits_hints_probes_and_keys_hold_over_any_history() {
    let asked = std::cell::Cell::new(0);
    let input = (steps(), proptest::option::of(1..6_u32), any::<bool>(), any::<bool>(), any::<bool>());
    TestRunner::new(settings(450))
        .run(&input, |(steps, max, tenants, pools, preflight)| {
            asked.set(asked.get() + run(config(max, tenants, pools, preflight), &steps, false)?);
            Ok(())
        })
        .unwrap();
    assert!(asked.get() >= 100_000, "{} asks", asked.get());
}

proptest! {
    #![proptest_config(settings(500))]

    #[test]
    fn the_retry_budget_never_goes_below_zero_and_bounds_retries_at_its_ratio(
        steps in proptest::collection::vec((0..4_u8, 0..700_u64), 400), ratio in 0..1_000_u32, floor in 0..3_000_u32
    ) {
        let config = RetryBudgetConfig { ratio_per_mille: ratio, min_per_second_milli: floor, window: Millis(10_000) };
        let mut budget = RetryBudget::new(config, Instant(0));
        let (mut firsts, mut drawn): (Vec<u64>, Vec<(u64, u64)>) = (Vec::new(), Vec::new());
        let mut now = 0;
        for (kind, ms) in steps {
            match kind {
                0 | 1 => {
                    firsts.push(now);
                    budget.on_first_attempt(Instant(now));
                }
                2 => {
                    let cost = if ms % 2 == 0 { RetryCost::Plain } else { RetryCost::Ambiguous };
                    if budget.draw(cost, Instant(now)) {
                        drawn.push((now, if ms % 2 == 0 { 1_000 } else { 2_000 }));
                    }
                }
                _ => now += ms,
            }
            // The window moves in tenths, so nine of them are always inside it.
            let paid: u64 = drawn.iter().filter(|(at, _)| now - at < 9_000).map(|(_, price)| price).sum();
            let earned = firsts.iter().filter(|at| now - **at < 19_000).count() as u64 * u64::from(ratio);
            prop_assert!(paid <= earned + u64::from(floor) * 10);
        }
    }
}

proptest! {
    #![proptest_config(settings(250))]

    #[test]
    fn cancelled_calls_open_nothing_cool_nothing_and_disable_nothing(
        steps in steps(), pools in any::<bool>(), preflight in any::<bool>()
    ) {
        run(config(Some(4), true, pools, preflight), &steps, true)?;
    }

    #[test]
    fn a_snapshot_of_anything_is_taken_in_without_harm(text in "(breaker|key|cooling|limit|\t|\n|[0-9]{1,20}|p|x|[a-z_]{1,9}|\\PC){0,60}") {
        let mut control = Control::new(config(None, false, true, true)).unwrap();
        control.restore(&text, Instant(5));
        let mut state = String::new();
        control.state_json(Instant(6), &mut state);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&state).is_ok());
    }
}

#[test]
fn a_restarted_core_still_knows_what_is_open_cooling_and_disabled() {
    let mut rig = common::Rig::broken();
    rig.model = "cool";
    let permit = rig.grant();
    rig.settle(&permit, common::hinted(ErrorClass::RateLimited, Scope::Bucket, 60_000));
    let mut snapshot = String::new();
    rig.control.snapshot(Instant(rig.now), &mut snapshot);
    rig.control = Control::new(ControlConfig::default()).unwrap();
    rig.control.restore(&snapshot, Instant(rig.now));
    assert!(matches!(rig.ask(1), Admission::Wait { until, .. } if until == Instant(rig.now + 60_000)));
    rig.model = "gpt-5";
    rig.refused(evenkeel::control::Reason::BreakerOpen);
}
