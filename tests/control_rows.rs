//! What production taught others about breakers, cooling, keys and limits: one test a lesson, through the whole control plane.
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
    Admission, CallId, ControlConfig, LimitKind, LimitWindow, NoticeKind, Outcome, PoolConfig, Reason, TenantLimits,
    VendorLimit,
};
use evenkeel::time::{Instant, Millis};

fn pool(organisation: &str, keys: &[&str]) -> PoolConfig {
    PoolConfig {
        provider: "openai".into(),
        organisation: organisation.into(),
        keys: keys.iter().map(|key| (*key).into()).collect(),
        models: None,
        weight: 1,
        preflight: false,
    }
}

fn pools(pools: &[(&str, &[&str])]) -> ControlConfig {
    ControlConfig { pools: pools.iter().map(|(name, keys)| pool(name, keys)).collect(), ..ControlConfig::default() }
}

fn tokens(limit: u64, remaining: u64, reset_at: u64) -> VendorLimit {
    VendorLimit {
        kind: LimitKind::Tokens,
        window: LimitWindow::Minute,
        limit: Some(limit),
        remaining: Some(remaining),
        reset_at: Some(Instant(reset_at)),
    }
}

#[test]
fn an_unconfigured_keel_refuses_nobody_before_a_vendor_does() {
    let mut rig = Rig::new(ControlConfig::default());
    for _ in 0..20_000 {
        rig.grant();
    }
}

#[test]
fn c6_a_fan_out_that_hit_the_limit_does_not_come_back_in_step() {
    let mut rig = Rig::new(ControlConfig::default());
    let permits: Vec<_> = (0..100).map(|_| rig.grant()).collect();
    rig.now += 200;
    for permit in &permits[..10] {
        rig.settle(permit, answered());
    }
    for permit in &permits[10..] {
        rig.settle(permit, hinted(ErrorClass::RateLimited, Scope::Bucket, 2_000));
    }
    let calls: Vec<u64> = (1_000..1_090).collect();
    for call in &calls {
        assert!(matches!(rig.ask(*call), Admission::Wait { .. }));
    }
    rig.now += 2_000;
    let through = calls.iter().filter(|call| matches!(rig.ask(**call), Admission::Granted(_))).count();
    assert!((1..=10).contains(&through), "{through} of 90 came back at once; 10 had fitted");
}

#[test]
fn c8_load_is_spread_over_healthy_organisations_not_put_on_the_first_until_it_dies() {
    let mut rig = Rig::new(pools(&[("a", &["k1"]), ("b", &["k2"]), ("c", &["k3"])]));
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..300 {
        let permit = rig.grant();
        *seen.entry(rig.bucket(&permit)).or_insert(0) += 1;
        rig.settle(&permit, answered());
    }
    assert_eq!(seen.values().copied().collect::<Vec<_>>(), [100, 100, 100]);
}

#[test]
fn a_pool_of_weight_three_gets_three_turns_of_four() {
    let mut config = pools(&[("a", &["k1"]), ("b", &["k2"])]);
    config.pools[0].weight = 3;
    let mut rig = Rig::new(config);
    let permits: Vec<_> = (0..400).map(|_| rig.grant()).collect();
    let heavy = permits.iter().filter(|permit| rig.bucket(permit) == "openai/a/gpt-5").count();
    assert_eq!(heavy, 300);
}

#[test]
fn two_keys_of_one_organisation_are_one_rate_limit() {
    let mut rig = Rig::new(pools(&[("a", &["k1", "k2"])]));
    let permit = rig.grant();
    rig.settle(&permit, hinted(ErrorClass::RateLimited, Scope::Bucket, 7_000));
    let Admission::Wait { until, reason } = rig.ask(50) else { panic!("the other key is no way out") };
    assert_eq!((until, reason), (Instant(rig.now + 7_000), Reason::BucketCooling));
    rig.now += 6_999;
    assert!(matches!(rig.ask(50), Admission::Wait { .. }));
    rig.now += 1;
    assert!(matches!(rig.ask(50), Admission::Granted(_)));
}

#[test]
fn another_organisation_is_a_way_out_and_the_keys_of_one_take_turns() {
    let mut rig = Rig::new(pools(&[("a", &["k1", "k2"]), ("b", &["k3"])]));
    let first = rig.grant();
    rig.settle(&first, hinted(ErrorClass::RateLimited, Scope::Bucket, 7_000));
    let second = rig.grant();
    assert_eq!((rig.bucket(&first).as_str(), rig.bucket(&second).as_str()), ("openai/a/gpt-5", "openai/b/gpt-5"));
    rig.now += 7_000;
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let permit = rig.grant();
        keys.extend(permit.key);
        rig.settle(&permit, answered());
    }
    assert_eq!(keys.len(), 3);
}

#[test]
fn f1_a_lost_probe_returns_its_permit_and_the_breaker_does_not_stay_shut() {
    let mut rig = Rig::broken();
    rig.now += 7_500;
    let probe = rig.grant();
    assert!(probe.probe);
    rig.refused(Reason::BreakerOpen);
    rig.now += 60_000;
    let next = rig.grant();
    assert!(next.probe, "the lease of the lost one is over");
    rig.settle(&next, answered());
    assert!(!rig.grant().probe);
}

#[test]
fn f2_two_callers_in_one_tick_only_one_becomes_the_probe() {
    let mut rig = Rig::broken();
    rig.now += 7_500;
    assert!(rig.grant().probe);
    for _ in 0..100 {
        rig.refused(Reason::BreakerOpen);
    }
}

#[test]
fn f3_a_flood_on_a_half_open_breaker_neither_passes_nor_jams_it() {
    let mut rig = Rig::broken();
    rig.now += 7_500;
    let probe = rig.grant();
    for _ in 0..10_000 {
        rig.refused(Reason::BreakerOpen);
    }
    rig.settle(&probe, failed(ErrorClass::ServerError, Scope::Model));
    rig.now += 15_000;
    let probe = rig.grant();
    rig.settle(&probe, answered());
    assert!(!rig.grant().probe);
}

#[test]
fn f4_a_bucket_that_cools_again_cools_until_the_later_of_both_ends() {
    let mut rig = Rig::new(ControlConfig::default());
    let (a, b) = (rig.grant(), rig.grant());
    rig.settle(&a, hinted(ErrorClass::RateLimited, Scope::Bucket, 30_000));
    rig.settle(&b, hinted(ErrorClass::RateLimited, Scope::Bucket, 1_000));
    rig.now += 29_999;
    assert!(matches!(rig.ask(50), Admission::Wait { until, .. } if until == Instant(rig.now + 1)));
}

#[test]
fn f5_when_everything_cools_a_call_waits_for_the_earliest_inside_its_deadline_and_else_fails_with_that_time() {
    let mut rig = Rig::new(pools(&[("a", &["k1"]), ("b", &["k2"])]));
    let (a, b) = (rig.grant(), rig.grant());
    rig.settle(&a, hinted(ErrorClass::RateLimited, Scope::Bucket, 20_000));
    rig.settle(&b, hinted(ErrorClass::RateLimited, Scope::Bucket, 1_500));
    assert!(matches!(rig.ask(50), Admission::Wait { until, .. } if until == Instant(rig.now + 1_500)));
    rig.deadline = 2_000; // a wait of 1.5 s leaves less than the second that an attempt needs
    let Admission::Refused { class, reason, retry_after } = rig.ask(51) else { panic!() };
    assert_eq!((class, reason, retry_after), (ErrorClass::RateLimited, Reason::BucketCooling, Some(Millis(1_500))));
}

#[test]
fn f6_our_own_refusals_never_count_as_the_vendors_failures() {
    let mut rig = Rig::broken();
    for _ in 0..40 {
        rig.refused(Reason::BreakerOpen);
    }
    rig.now += 7_500;
    let probe = rig.grant();
    rig.settle(&probe, answered());
    let mut rig = Rig::new(ControlConfig { max_queued: 0, ..ControlConfig::default() });
    let permit = rig.grant();
    rig.settle(&permit, hinted(ErrorClass::RateLimited, Scope::Bucket, 500));
    for _ in 0..1_000 {
        rig.refused(Reason::QueueFull);
    }
    rig.now += 500;
    assert!(!rig.grant().probe, "no breaker opened");
}

#[test]
fn f8_a_busy_target_with_a_third_of_failures_keeps_its_throughput() {
    let mut rig = Rig::new(ControlConfig::default());
    let mut rng = fastrand::Rng::with_seed(11);
    for _ in 0..6_000 {
        let permit = rig.grant();
        rig.now += 5;
        let bad = rng.u32(0..3) == 0;
        rig.settle(&permit, if bad { failed(ErrorClass::ServerError, Scope::Model) } else { answered() });
    }
}

#[test]
fn f10_what_one_call_learned_of_a_dead_target_the_next_one_knows() {
    let mut rig = Rig::broken();
    let Admission::Refused { class, retry_after, .. } = rig.ask(99) else { panic!("paid again") };
    assert_eq!((class, retry_after), (ErrorClass::ServerError, Some(Millis(7_500))));
}

#[test]
fn f11_an_error_inside_a_200_benches_the_target_like_any_other() {
    let mut rig = Rig::new(ControlConfig::default());
    for _ in 0..5 {
        let permit = rig.grant();
        rig.control.on_head(permit.id, &[], true, Instant(rig.now)); // a good head
        rig.settle(&permit, failed(ErrorClass::Overloaded, Scope::Model)); // and an error event after it
    }
    rig.refused(Reason::BreakerOpen);
}

#[test]
fn h1_calls_are_paced_by_what_the_headers_say_is_left() {
    let mut rig = Rig::new(ControlConfig::default());
    rig.tokens = 400;
    let permit = rig.grant();
    let limits = [tokens(10_000, 1_000, rig.now + 30_000)];
    rig.settle(&permit, Outcome { limits: &limits, ..answered() });
    assert!(matches!(rig.ask(1), Admission::Granted(_)));
    assert!(matches!(rig.ask(2), Admission::Granted(_)));
    let Admission::Wait { until, reason } = rig.ask(3) else { panic!("1200 of 1000 tokens") };
    assert_eq!((until, reason), (Instant(rig.now + 30_000), Reason::NotEnoughHeadroom));
    rig.deadline = 10_000;
    rig.refused(Reason::NotEnoughHeadroom);
    rig.now += 30_000;
    rig.deadline = 60_000;
    assert!(matches!(rig.ask(3), Admission::Granted(_)));
}

#[test]
fn h3_five_calls_at_once_stay_under_a_tenants_token_limit() {
    let limits = TenantLimits { tokens_per_minute: Some(1_000), ..TenantLimits::default() };
    let mut rig = Rig::new(ControlConfig { default_tenant: limits, ..ControlConfig::default() });
    rig.tokens = 400;
    let through = (1..=5).filter(|call| matches!(rig.ask(*call), Admission::Granted(_))).count();
    assert_eq!(through, 2);
    assert!(matches!(rig.ask(3), Admission::Wait { reason: Reason::TenantTokens, .. }));
}

#[test]
fn a_quota_cools_for_a_quarter_of_an_hour_and_says_so() {
    let mut rig = Rig::new(pools(&[("a", &["k1"])]));
    let permit = rig.grant();
    rig.settle(&permit, failed(ErrorClass::QuotaExhausted, Scope::Bucket));
    let Admission::Refused { class, retry_after, .. } = rig.ask(5) else { panic!() };
    assert_eq!((class, retry_after), (ErrorClass::QuotaExhausted, Some(Millis(900_000))));
    assert!(rig.notices().contains(&NoticeKind::QuotaExhausted));
}

#[test]
fn a_quota_of_the_organisation_is_told_of_each_models_bucket() {
    let mut rig = Rig::new(pools(&[("a", &["a1"])]));
    let first = rig.grant();
    rig.model = "gpt-5-mini";
    let mini = rig.grant();
    rig.settle(&mini, answered());
    rig.settle(&first, failed(ErrorClass::QuotaExhausted, Scope::Key));
    let told: Vec<_> = std::iter::from_fn(|| rig.control.take_notice()).collect();
    let until = Some(Instant(rig.now + 900_000));
    let cooling = told.iter().filter(|notice| notice.kind == NoticeKind::BucketCooling && notice.until == until);
    let subjects: Vec<&str> = cooling.map(|notice| notice.subject.as_str()).collect();
    assert_eq!(subjects, ["openai/a/gpt-5", "openai/a/gpt-5-mini"]);
}

#[test]
fn failures_cool_a_pools_bucket_for_2_4_8_seconds_and_a_success_ends_it() {
    let mut rig = Rig::new(pools(&[("a", &["k1"])]));
    for seconds in [2, 4, 8, 16] {
        let permit = rig.grant();
        rig.settle(&permit, failed(ErrorClass::ConnectionError, Scope::Bucket));
        let Admission::Wait { until, reason } = rig.ask(seconds) else { panic!("{seconds} s") };
        assert_eq!((until, reason), (Instant(rig.now + seconds * 1_000), Reason::BucketCooling));
        rig.control.leave(CallId(seconds), Instant(rig.now));
        rig.now += seconds * 1_000;
    }
    let permit = rig.grant();
    rig.settle(&permit, answered());
    let permit = rig.grant();
    rig.settle(&permit, failed(ErrorClass::ConnectionError, Scope::Bucket));
    assert!(matches!(rig.ask(7), Admission::Wait { until, .. } if until == Instant(rig.now + 2_000)));
}

#[test]
fn a_success_that_ends_a_cooling_before_its_time_says_so() {
    let mut rig = Rig::new(pools(&[("a", &["k1"])]));
    let (one, two) = (rig.grant(), rig.grant());
    rig.settle(&one, failed(ErrorClass::ConnectionError, Scope::Bucket));
    rig.settle(&two, answered());
    assert_eq!(rig.notices(), [NoticeKind::BucketCooling, NoticeKind::BucketRecovered]);
    let three = rig.grant();
    rig.settle(&three, answered());
    assert_eq!(rig.notices(), []);
}

#[test]
fn a_refused_key_is_disabled_until_a_person_enables_it() {
    let mut rig = Rig::new(pools(&[("a", &["k1", "k2"])]));
    for _ in 0..2 {
        let permit = rig.grant();
        rig.settle(&permit, failed(ErrorClass::AuthError, Scope::Key));
    }
    rig.now += 86_400_000;
    let Admission::Refused { class, reason, retry_after } = rig.ask(5) else { panic!() };
    assert_eq!((class, reason, retry_after), (ErrorClass::AuthError, Reason::KeysDisabled, None));
    assert!(rig.control.enable_key("k2", Instant(rig.now)));
    assert!(!rig.control.enable_key("k3", Instant(rig.now)));
    let permit = rig.grant();
    assert_eq!(permit.key.and_then(|key| rig.control.key(key)), Some("k2"));
}

#[test]
fn a_bad_request_changes_nothing() {
    let mut rig = Rig::new(pools(&[("a", &["k1"])]));
    for _ in 0..1_000 {
        let permit = rig.grant();
        rig.settle(&permit, failed(ErrorClass::BadRequest, Scope::Request));
    }
    assert!(rig.notices().is_empty());
}

#[test]
fn a_cancelled_call_is_never_a_failure_and_frees_the_probes_place() {
    let mut rig = Rig::new(ControlConfig::default());
    for _ in 0..1_000 {
        let permit = rig.grant();
        rig.settle(&permit, failed(ErrorClass::Cancelled, Scope::Request));
    }
    let mut rig = Rig::broken();
    rig.now += 7_500;
    let probe = rig.grant();
    rig.settle(&probe, failed(ErrorClass::Cancelled, Scope::Request));
    assert!(rig.grant().probe);
}

#[test]
fn a_retry_avoids_the_bucket_that_failed_if_there_is_another() {
    let mut rig = Rig::new(pools(&[("a", &["k1"]), ("b", &["k2"])]));
    let first = rig.grant();
    let second = rig.grant();
    rig.avoid = vec![first.bucket];
    for _ in 0..10 {
        assert_eq!(rig.grant().bucket, second.bucket);
    }
    rig.avoid = vec![first.bucket, second.bucket];
    rig.grant();
}

#[test]
fn an_open_breaker_of_the_provider_shuts_all_its_models_and_no_other_provider() {
    let mut rig = Rig::new(ControlConfig::default());
    for _ in 0..5 {
        let permit = rig.grant();
        rig.settle(&permit, failed(ErrorClass::ConnectionError, Scope::Provider));
    }
    rig.model = "another-model";
    rig.refused(Reason::BreakerOpen);
    rig.provider = "anthropic";
    rig.grant();
}

#[test]
fn a_models_overload_leaves_the_providers_other_models_alone() {
    let mut rig = Rig::broken();
    rig.model = "another-model";
    rig.grant();
}
