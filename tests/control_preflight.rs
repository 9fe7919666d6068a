//! The preflight of a pool's buckets, and the choice of a bucket that can answer in time.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod common;

use common::{Rig, answered, failed, hinted};
use evenkeel::class::{ErrorClass, Scope};
use evenkeel::control::{
    Admission, Ask, CallId, ControlConfig, NoticeKind, Outcome, Permit, PoolConfig, Priority, Reason, TenantLimits,
};
use evenkeel::time::{Instant, Millis};

fn config(pools: &[(&str, &[&str], bool)]) -> ControlConfig {
    let pools = pools.iter().map(|(organisation, keys, preflight)| PoolConfig {
        provider: "openai".into(),
        organisation: (*organisation).into(),
        keys: keys.iter().map(|key| (*key).into()).collect(),
        models: None,
        weight: 1,
        preflight: *preflight,
    });
    ControlConfig { pools: pools.collect(), ..ControlConfig::default() }
}

fn one() -> Rig {
    Rig::new(config(&[("a", &["a1"], true)]))
}

#[track_caller]
fn waits_for_the_preflight(rig: &mut Rig, call: u64) {
    let said = rig.ask(call);
    assert!(matches!(said, Admission::Wait { reason: Reason::Preflight, .. }), "{said:?}");
}

fn granted(rig: &mut Rig, calls: std::ops::Range<u64>) -> Vec<Permit> {
    calls
        .filter_map(|call| match rig.ask(call) {
            Admission::Granted(permit) => Some(permit),
            _ => None,
        })
        .collect()
}

/// What those who waited are told, by call.
fn told(rig: &mut Rig, calls: std::ops::Range<u64>) -> Vec<(ErrorClass, Reason)> {
    let mut said = Vec::new();
    while let Some(CallId(call)) = rig.control.take_woken() {
        assert!(calls.contains(&call));
        if let Admission::Refused { class, reason, retry_after } = rig.ask(call) {
            assert!(retry_after.is_some_and(|wait| wait > Millis::ZERO), "{retry_after:?}");
            said.push((class, reason));
        }
    }
    said
}

#[test]
fn one_call_goes_first_and_all_others_once_it_was_answered_well() {
    let mut rig = one();
    let first = rig.grant();
    (1..50).for_each(|call| waits_for_the_preflight(&mut rig, call));
    rig.settle(&first, answered());
    assert_eq!(granted(&mut rig, 1..50).len(), 49);
    assert_eq!(rig.notices(), [NoticeKind::PreflightPassed]);
    rig.grant();
}

#[test]
fn the_content_of_a_stream_is_answer_enough() {
    let mut rig = one();
    let first = rig.grant();
    waits_for_the_preflight(&mut rig, 1);
    rig.control.on_head(first.id, &[], false, Instant(rig.now));
    waits_for_the_preflight(&mut rig, 1);
    rig.control.on_head(first.id, &[], true, Instant(rig.now));
    assert_eq!(granted(&mut rig, 1..2).len(), 1);
}

#[test]
fn a_refused_preflight_is_told_to_those_who_wait_at_once_and_nothing_more_is_sent() {
    let rows = [
        (ErrorClass::AuthError, Scope::Key, 30_000),
        (ErrorClass::PermissionError, Scope::Key, 30_000),
        (ErrorClass::PermissionError, Scope::Model, 30_000),
        (ErrorClass::NotFound, Scope::Model, 30_000),
        (ErrorClass::QuotaExhausted, Scope::Key, 900_000),
        (ErrorClass::Overloaded, Scope::Model, 2_000),
        (ErrorClass::ServerError, Scope::Provider, 2_000),
        (ErrorClass::ConnectionError, Scope::Provider, 2_000),
        (ErrorClass::Timeout, Scope::Provider, 2_000),
    ];
    for (class, scope, stands) in rows {
        let mut rig = one();
        let first = rig.grant();
        (1..20).for_each(|call| waits_for_the_preflight(&mut rig, call));
        rig.settle(&first, failed(class, scope));
        assert_eq!(told(&mut rig, 1..20), vec![(class, Reason::PreflightFailed); 19], "{class:?}");
        assert!(rig.notices().contains(&NoticeKind::PreflightFailed));
        rig.now += stands - 1;
        rig.refused(Reason::PreflightFailed);
        rig.now += 1;
        if scope == Scope::Key && class != ErrorClass::QuotaExhausted {
            rig.refused(Reason::KeysDisabled);
            assert!(rig.control.enable_key("a1", Instant(rig.now)));
        }
        let next = rig.grant();
        waits_for_the_preflight(&mut rig, 1);
        rig.settle(&next, answered());
        assert_eq!(granted(&mut rig, 1..2).len(), 1, "{class:?}: well again");
    }
}

#[test]
fn an_enabled_key_is_asked_with_at_once() {
    let mut rig = one();
    let first = rig.grant();
    rig.settle(&first, failed(ErrorClass::AuthError, Scope::Key));
    rig.refused(Reason::PreflightFailed);
    rig.control.enable_key("a1", Instant(rig.now));
    rig.grant();
    waits_for_the_preflight(&mut rig, 1);
}

#[test]
fn a_refused_key_is_followed_by_the_pools_next_one() {
    let mut rig = Rig::new(config(&[("a", &["a1", "a2"], true)]));
    let first = rig.grant();
    waits_for_the_preflight(&mut rig, 1);
    rig.settle(&first, failed(ErrorClass::AuthError, Scope::Key));
    let second = granted(&mut rig, 1..2).pop().unwrap();
    assert_ne!(first.key, second.key);
    waits_for_the_preflight(&mut rig, 2);
}

#[test]
fn a_rate_limit_is_waited_out_and_then_one_call_asks() {
    let mut rig = one();
    let first = rig.grant();
    waits_for_the_preflight(&mut rig, 1);
    rig.settle(&first, hinted(ErrorClass::RateLimited, Scope::Bucket, 7_000));
    let said = rig.ask(1);
    let until = Instant(rig.now + 7_000);
    assert_eq!(said, Admission::Wait { until, reason: Reason::BucketCooling });
    rig.now += 7_000;
    assert_eq!(granted(&mut rig, 1..2).len(), 1);
    waits_for_the_preflight(&mut rig, 2);
}

#[test]
fn what_the_request_is_to_blame_for_says_nothing_of_the_bucket() {
    for class in [ErrorClass::BadRequest, ErrorClass::ContentFiltered, ErrorClass::RequestTooLarge] {
        let mut rig = one();
        let first = rig.grant();
        waits_for_the_preflight(&mut rig, 1);
        waits_for_the_preflight(&mut rig, 2);
        rig.settle(&first, failed(class, Scope::Request));
        assert_eq!(granted(&mut rig, 1..3).len(), 1, "the next one asks, alone");
    }
}

#[test]
fn a_cancelled_or_killed_preflight_frees_its_place() {
    let mut rig = one();
    let first = rig.grant();
    waits_for_the_preflight(&mut rig, 1);
    rig.settle(&first, failed(ErrorClass::Cancelled, Scope::Request));
    assert_eq!(granted(&mut rig, 1..2).len(), 1, "cancelled: the next one asks");
    waits_for_the_preflight(&mut rig, 2);
    rig.now += 60_000; // call 1 was killed and says nothing
    assert_eq!(granted(&mut rig, 2..3).len(), 1, "its lease is over");
    waits_for_the_preflight(&mut rig, 3);
}

#[test]
fn another_bucket_is_a_way_out_of_a_refusal_and_of_the_wait_for_it() {
    let mut rig = Rig::new(config(&[("a", &["a1"], true), ("b", &["b1"], false)]));
    let first = rig.grant();
    assert_eq!(rig.bucket(&first), "openai/a/gpt-5");
    for _ in 0..5 {
        let permit = rig.grant();
        assert_eq!(rig.bucket(&permit), "openai/b/gpt-5");
    }
    rig.settle(&first, failed(ErrorClass::NotFound, Scope::Model));
    for _ in 0..5 {
        let permit = rig.grant();
        assert_eq!(rig.bucket(&permit), "openai/b/gpt-5");
    }
}

#[test]
fn a_bucket_that_cools_is_waited_for_beside_one_that_refused_if_it_opens_in_time() {
    for (cools, waits) in [(10_000, true), (3_600_000, false)] {
        let mut rig = Rig::new(config(&[("a", &["a1"], true), ("b", &["b1"], false)]));
        let (first, second) = (rig.grant(), rig.grant());
        rig.settle(&first, failed(ErrorClass::Overloaded, Scope::Model));
        rig.settle(&second, hinted(ErrorClass::RateLimited, Scope::Bucket, cools));
        if waits {
            let until = Instant(rig.now + cools);
            assert_eq!(rig.ask(7), Admission::Wait { until, reason: Reason::BucketCooling });
        } else {
            rig.refused(Reason::PreflightFailed);
        }
    }
}

#[test]
fn who_stands_behind_one_that_waits_out_a_refusal_waits_for_another_bucket_that_opens_in_time() {
    for (cools, waits) in [(10_000, true), (3_600_000, false)] {
        let mut rig = Rig::new(config(&[("a", &["a1"], true), ("b", &["b1"], false)]));
        let (first, second) = (rig.grant(), rig.grant());
        rig.settle(&first, failed(ErrorClass::Overloaded, Scope::Model));
        rig.settle(&second, hinted(ErrorClass::RateLimited, Scope::Bucket, cools));
        rig.avoid = vec![first.bucket];
        assert!(matches!(rig.ask(7), Admission::Wait { reason: Reason::PreflightFailed, .. }));
        rig.avoid.clear();
        if waits {
            for _ in 0..2 {
                let said = rig.ask(8);
                assert!(matches!(said, Admission::Wait { reason: Reason::Queued, .. }), "{said:?}");
            }
        } else {
            rig.refused(Reason::PreflightFailed);
        }
        rig.now += 2_000;
        assert_eq!(granted(&mut rig, 7..8)[0].bucket, first.bucket);
    }
}

#[test]
fn a_refused_preflight_is_told_to_those_behind_their_tenants_own_limit_too() {
    let limits = TenantLimits { concurrency: Some(1), ..TenantLimits::default() };
    let mut rig = Rig::new(ControlConfig { default_tenant: limits, ..config(&[("a", &["a1"], true)]) });
    rig.tenant = "t".into();
    let first = rig.grant();
    for call in 1..5 {
        let said = rig.ask(call);
        assert!(matches!(said, Admission::Wait { reason: Reason::TenantConcurrency | Reason::Queued, .. }), "{said:?}");
    }
    rig.settle(&first, failed(ErrorClass::NotFound, Scope::Model));
    assert_eq!(told(&mut rig, 1..5), vec![(ErrorClass::NotFound, Reason::PreflightFailed); 4]);
    assert_eq!(rig.control.waiting(), 0);
}

#[test]
fn an_enabled_key_calls_who_waits_for_another_bucket() {
    let mut rig = Rig::new(config(&[("a", &["a1"], true), ("b", &["b1"], false)]));
    let (first, second) = (rig.grant(), rig.grant());
    rig.settle(&first, failed(ErrorClass::AuthError, Scope::Key));
    rig.settle(&second, hinted(ErrorClass::RateLimited, Scope::Bucket, 10_000));
    assert!(matches!(rig.ask(7), Admission::Wait { reason: Reason::BucketCooling, .. }));
    rig.control.enable_key("a1", Instant(rig.now));
    assert_eq!(rig.control.take_woken(), Some(CallId(7)));
    assert_eq!(granted(&mut rig, 7..8)[0].bucket, first.bucket);
}

#[test]
fn the_call_that_failed_waits_out_the_refusal_and_asks_again_itself() {
    let mut rig = one();
    let first = rig.grant();
    rig.settle(&first, failed(ErrorClass::Overloaded, Scope::Model));
    rig.avoid = vec![first.bucket];
    let until = Instant(rig.now + 2_000);
    assert_eq!(rig.ask(7), Admission::Wait { until, reason: Reason::PreflightFailed });
    rig.avoid.clear();
    rig.refused(Reason::PreflightFailed);
    rig.now += 2_000;
    rig.avoid = vec![first.bucket];
    assert!(matches!(rig.ask(7), Admission::Granted(_)));
}

#[test]
fn it_is_asked_again_after_five_idle_minutes() {
    let mut rig = one();
    let first = rig.grant();
    rig.settle(&first, answered());
    rig.now += 299_000;
    let (one, two) = (rig.grant(), rig.grant());
    rig.settle(&one, answered());
    rig.settle(&two, answered());
    rig.now += 300_000;
    rig.grant();
    waits_for_the_preflight(&mut rig, 1);
}

#[test]
fn each_model_is_asked_for_itself() {
    let mut rig = one();
    let first = rig.grant();
    rig.settle(&first, answered());
    rig.model = "gpt-5-mini";
    rig.grant();
    waits_for_the_preflight(&mut rig, 1);
}

/// Two organisations of which one is known to be slow: 10 tokens a second after 2 s.
fn slow_and_fast() -> Rig {
    let mut rig = Rig::new(config(&[("slow", &["s1"], false), ("fast", &["f1"], false)]));
    for _ in 0..20 {
        let permit = rig.grant();
        let slow = rig.bucket(&permit).contains("slow");
        let (first, rate) = if slow { (2_000, 10) } else { (200, 100) };
        let latency = Millis(first + 100 * 1_000 / rate);
        let first_token = Some(Millis(first));
        rig.settle(&permit, Outcome { first_token, latency, output_tokens: Some(100), ..Outcome::default() });
    }
    rig
}

fn ask(rig: &mut Rig, call: u64, output_tokens: u64, deadline: u64) -> Permit {
    let ask = Ask {
        call: CallId(call),
        provider: "openai",
        model: "gpt-5",
        account: None,
        tenant: "",
        priority: Priority::Interactive,
        input_tokens: 0,
        output_tokens,
        deadline: Instant(rig.now + deadline),
        min_attempt: Millis::ZERO,
        avoid: &rig.avoid,
    };
    match rig.control.admit(&ask, Instant(rig.now)) {
        Admission::Granted(permit) => permit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bucket_that_cannot_answer_in_time_is_left_for_one_that_can() {
    let rows = [
        // tokens, deadline -> whether the slow one takes its turn
        (0, 60_000, true),
        (100, 60_000, true),
        (300, 60_000, true),
        (700, 60_000, false),
        (100, 10_000, false),
        (0, 1_000, false),
    ];
    for (tokens, deadline, taken) in rows {
        let mut rig = slow_and_fast();
        let permits = [ask(&mut rig, 1, tokens, deadline), ask(&mut rig, 2, tokens, deadline)];
        let buckets = permits.map(|permit| rig.bucket(&permit).contains("slow"));
        assert_eq!(buckets.contains(&true), taken, "{tokens} tokens in {deadline} ms");
        let told = permits.iter().filter_map(|permit| {
            let told = rig.control.too_slow(permit.id)?;
            let speed = told.speed;
            assert!(speed.estimate > told.remaining && told.remaining == Millis(deadline), "{told:?}");
            assert_eq!(told.left, Some("openai/slow/gpt-5"));
            let first = speed.first_token.unwrap();
            assert!(first >= Millis(2_000) && first < Millis(2_500), "{first:?}");
            assert!((10..13).contains(&speed.tokens_per_second.unwrap()), "{speed:?}");
            Some(())
        });
        assert_eq!(told.count() > 0, !taken);
    }
}

#[test]
fn where_none_can_answer_in_time_the_call_goes_all_the_same() {
    let mut rig = slow_and_fast();
    let permits = [ask(&mut rig, 1, 100_000, 5_000), ask(&mut rig, 2, 100_000, 5_000)];
    for permit in &permits {
        let bucket = rig.bucket(permit);
        let told = rig.control.too_slow(permit.id).unwrap();
        assert_eq!((told.left, told.remaining), (None, Millis(5_000)), "it says so of its own bucket");
        let (least, most) = if bucket.contains("slow") { (10, 13) } else { (100, 128) };
        assert!((least..most).contains(&told.speed.tokens_per_second.unwrap()), "{bucket}: {told:?}");
    }
    assert_ne!(permits[0].bucket, permits[1].bucket, "they take turns");
}

#[test]
fn a_fast_bucket_that_failed_this_call_is_better_than_one_that_cannot_make_it() {
    let mut rig = slow_and_fast();
    let fast = ask(&mut rig, 1, 100, 5_000);
    assert!(rig.bucket(&fast).contains("fast"));
    rig.avoid = vec![fast.bucket];
    assert_eq!(ask(&mut rig, 2, 100, 5_000).bucket, fast.bucket);
}

#[test]
fn a_slow_bucket_is_tried_again_by_one_call_a_minute() {
    let mut rig = slow_and_fast();
    rig.now += 60_000;
    let permits: Vec<Permit> = (0..10).map(|call| ask(&mut rig, call, 100, 5_000)).collect();
    let slow = permits.iter().filter(|permit| rig.control.bucket(permit.bucket).unwrap().contains("slow"));
    assert_eq!(slow.count(), 1);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::default()
    })]

    #[test]
    fn the_bucket_taken_can_answer_in_time_if_any_can_and_the_call_always_goes(
        speeds in proptest::collection::vec((50..5_000_u64, 5..500_u64), 3),
        asks in proptest::collection::vec((0..5_000_u64, 100..60_000_u64), 300),
    ) {
        let names = ["a", "b", "c"];
        let pools: Vec<(&str, &[&str], bool)> = vec![("a", &["a1"], false), ("b", &["b1"], false), ("c", &["c1"], false)];
        let mut rig = Rig::new(config(&pools));
        let of = |rig: &Rig, permit: &Permit| names.iter().position(|name| rig.bucket(permit).contains(&format!("/{name}/"))).unwrap();
        for _ in 0..30 {
            let permit = rig.grant();
            let (first, rate) = speeds[of(&rig, &permit)];
            let (first_token, latency) = (Some(Millis(first)), Millis(first + 1_000_000 / rate));
            rig.settle(&permit, Outcome { first_token, latency, output_tokens: Some(1_000), ..Outcome::default() });
        }
        for (call, (tokens, deadline)) in asks.into_iter().enumerate() {
            let permit = ask(&mut rig, call as u64, tokens, deadline);
            let takes = |(first, rate): (u64, u64)| first + tokens * 1_000 / rate;
            let taken = takes(speeds[of(&rig, &permit)]);
            // What is known is known to a quarter, up or down.
            let surely = speeds.iter().any(|speed| takes(*speed) * 5 / 4 + 1 < deadline);
            proptest::prop_assert!(!surely || taken <= deadline * 5 / 4 + 1, "{taken} ms for {tokens} tokens in {deadline}");
            let told = rig.control.too_slow(permit.id);
            let left = told.is_some_and(|told| told.left.is_some());
            proptest::prop_assert!(told.is_none_or(|told| told.speed.estimate > told.remaining));
            proptest::prop_assert!(!left || taken <= deadline * 5 / 4 + 1);
        }
    }
}
