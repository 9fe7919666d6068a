//! Tenants, priorities, turns, leases and a clock that misbehaves.
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
    Admission, CallId, ConcurrencyConfig, ControlConfig, NoticeKind, Permit, Priority, Reason, TenantLimits,
};
use evenkeel::time::Instant;

fn at_most(max: u32) -> ControlConfig {
    let concurrency = ConcurrencyConfig { max: Some(max), ..ConcurrencyConfig::default() };
    ControlConfig { concurrency: Some(concurrency), ..ControlConfig::default() }
}

/// Serves one waiter after the other from a bucket with one place; says in which order they had their turn.
fn serve(rig: &mut Rig, mut held: Permit, turns: usize) -> Vec<u64> {
    let mut order = Vec::new();
    for _ in 0..turns {
        rig.settle(&held, answered());
        let CallId(next) = rig.control.take_woken().expect("somebody waits");
        let Admission::Granted(permit) = rig.ask(next) else { panic!("{next} was called in vain") };
        order.push(next);
        held = permit;
    }
    order
}

fn queue(rig: &mut Rig, tenant: &str, priority: Priority, calls: std::ops::Range<u64>) {
    (rig.tenant, rig.priority) = (tenant.into(), priority);
    for call in calls {
        assert!(matches!(rig.ask(call), Admission::Wait { .. }), "{call}");
    }
}

#[test]
fn a_freed_place_goes_to_the_first_in_line_and_not_to_a_newcomer() {
    let mut rig = Rig::new(at_most(1));
    let held = rig.grant();
    queue(&mut rig, "", Priority::Interactive, 1..4);
    rig.settle(&held, answered());
    assert!(matches!(rig.ask(9), Admission::Wait { .. }));
    assert!(matches!(rig.ask(2), Admission::Wait { .. }));
    assert!(matches!(rig.ask(1), Admission::Granted(_)));
}

#[test]
fn tenants_take_turns_however_many_calls_one_of_them_brings() {
    let mut rig = Rig::new(at_most(1));
    let held = rig.grant();
    queue(&mut rig, "flood", Priority::Interactive, 1_000..2_000);
    queue(&mut rig, "quiet", Priority::Interactive, 1..4);
    let order = serve(&mut rig, held, 8);
    let quiet = order.iter().filter(|call| **call < 10).count();
    assert_eq!(quiet, 3, "{order:?}");
}

#[test]
fn a_tenant_of_weight_three_has_three_turns_of_four() {
    let heavy = TenantLimits { weight: 3, ..TenantLimits::default() };
    let mut rig = Rig::new(ControlConfig { tenants: vec![("heavy".into(), heavy)], ..at_most(1) });
    let held = rig.grant();
    queue(&mut rig, "light", Priority::Interactive, 1_000..1_100);
    queue(&mut rig, "heavy", Priority::Interactive, 1..100);
    let order = serve(&mut rig, held, 80);
    let turns = order.iter().filter(|call| **call < 100).count();
    assert!((58..=62).contains(&turns), "{turns} of 80");
}

#[test]
fn interactive_work_goes_first_and_batch_work_is_never_starved() {
    let mut rig = Rig::new(at_most(1));
    let held = rig.grant();
    queue(&mut rig, "", Priority::Batch, 1_000..1_100);
    queue(&mut rig, "", Priority::Interactive, 1..100);
    let order = serve(&mut rig, held, 50);
    assert!(order[..9].iter().all(|call| *call < 100), "{order:?}");
    assert_eq!(order.iter().filter(|call| **call >= 1_000).count(), 5, "each tenth turn: {order:?}");
}

#[test]
fn batch_work_leaves_a_tenth_of_the_places_to_interactive_work() {
    let mut rig = Rig::new(at_most(20));
    rig.grant();
    rig.priority = Priority::Batch;
    let through = (1..100).filter(|call| matches!(rig.ask(*call), Admission::Granted(_))).count();
    assert_eq!(through, 17);
    rig.priority = Priority::Interactive;
    assert!(matches!(rig.ask(500), Admission::Granted(_)));
}

#[test]
fn a_tenants_flood_waits_behind_its_own_limit_and_nobody_elses() {
    let limit = TenantLimits { concurrency: Some(2), ..TenantLimits::default() };
    let mut rig = Rig::new(ControlConfig { tenants: vec![("flood".into(), limit)], ..ControlConfig::default() });
    rig.tenant = "flood".into();
    let held = rig.grant();
    rig.grant();
    for call in 1..100 {
        assert!(matches!(rig.ask(call), Admission::Wait { reason: Reason::TenantConcurrency | Reason::Queued, .. }));
    }
    rig.tenant = "other".into();
    rig.grant();
    rig.settle(&held, answered());
    assert_eq!(rig.control.take_woken(), Some(CallId(1)));
}

#[test]
fn a_breaker_that_opens_is_told_to_those_behind_their_tenants_own_limit_too() {
    let limits = TenantLimits { concurrency: Some(1), ..TenantLimits::default() };
    let tenants = vec![("small".into(), limits)];
    let mut rig = Rig::new(ControlConfig { tenants, ..ControlConfig::default() });
    rig.tenant = "small".into();
    rig.model = "gpt-5-mini";
    rig.grant();
    rig.model = "gpt-5";
    queue(&mut rig, "small", Priority::Interactive, 1..4);
    rig.tenant = "other".into();
    for _ in 0..5 {
        let permit = rig.grant();
        rig.settle(&permit, failed(ErrorClass::ServerError, Scope::Model));
    }
    rig.tenant = "small".into();
    let mut told = 0;
    while let Some(CallId(call)) = rig.control.take_woken() {
        assert!(matches!(rig.ask(call), Admission::Refused { reason: Reason::BreakerOpen, .. }), "{call}");
        told += 1;
    }
    assert_eq!((told, rig.control.waiting()), (3, 0));
}

#[test]
fn requests_a_minute_are_given_out_evenly_after_the_first_minutes_worth() {
    let limit = TenantLimits { requests_per_minute: Some(60), ..TenantLimits::default() };
    let mut rig = Rig::new(ControlConfig { default_tenant: limit, ..ControlConfig::default() });
    for _ in 0..60 {
        rig.grant();
    }
    let Admission::Wait { until, reason } = rig.ask(1) else { panic!() };
    assert_eq!((until, reason), (Instant(rig.now + 1_000), Reason::TenantRequests));
    rig.now += 1_000;
    assert!(matches!(rig.ask(1), Admission::Granted(_)));
    rig.deadline = 1_500;
    rig.refused(Reason::TenantRequests);
}

#[test]
fn a_tenant_has_no_more_than_its_share_of_a_limited_bucket() {
    let limit = TenantLimits { share_per_mille: Some(250), ..TenantLimits::default() };
    let mut rig = Rig::new(ControlConfig { default_tenant: limit, ..at_most(8) });
    rig.tenant = "a".into();
    rig.grant();
    rig.grant();
    assert!(matches!(rig.ask(1), Admission::Wait { reason: Reason::TenantShare, .. }));
    rig.tenant = "b".into();
    rig.grant();
}

#[test]
fn a_full_queue_and_a_turn_that_cannot_come_in_time_are_refused_at_once() {
    let mut rig = Rig::new(ControlConfig { max_queued: 20, ..at_most(1) });
    for _ in 0..50 {
        let permit = rig.grant();
        rig.now += 1_000; // what a place is held for
        rig.settle(&permit, answered());
    }
    let _held = rig.grant();
    queue(&mut rig, "", Priority::Interactive, 1..11);
    rig.deadline = 5_000;
    assert!(matches!(rig.ask(11), Admission::Refused { .. }), "ten turns of a second are ahead of it");
    rig.deadline = 600_000;
    queue(&mut rig, "", Priority::Interactive, 20..30);
    rig.refused(Reason::QueueFull);
}

#[test]
fn a_waiter_whose_deadline_comes_first_is_told_and_holds_nobody_up() {
    let mut rig = Rig::new(at_most(1));
    let held = rig.grant();
    rig.deadline = 5_000;
    let Admission::Wait { until, .. } = rig.ask(1) else { panic!() };
    assert!(until <= Instant(rig.now + 4_000));
    rig.now += 4_000;
    rig.deadline = 1_000;
    assert!(matches!(rig.ask(1), Admission::Refused { .. }));
    assert_eq!(rig.control.waiting(), 0);
    rig.settle(&held, answered());
    rig.grant();
}

#[test]
fn a_waiter_that_was_killed_loses_its_turn_to_the_next() {
    let mut rig = Rig::new(at_most(1));
    let held = rig.grant();
    queue(&mut rig, "", Priority::Interactive, 1..3);
    rig.settle(&held, answered());
    assert_eq!(rig.control.take_woken(), Some(CallId(1)));
    rig.now += 2_000; // call 1 never comes
    rig.control.sweep(Instant(rig.now));
    assert_eq!(rig.control.take_woken(), Some(CallId(2)));
    assert!(matches!(rig.ask(2), Admission::Granted(_)));
}

#[test]
fn a_waiter_that_leaves_gives_up_its_place_and_an_offer_it_had() {
    let mut rig = Rig::new(at_most(1));
    let held = rig.grant();
    queue(&mut rig, "", Priority::Interactive, 1..4);
    rig.control.leave(CallId(2), Instant(rig.now));
    rig.settle(&held, answered());
    rig.control.leave(CallId(1), Instant(rig.now)); // it had been offered the place
    assert!(matches!(rig.ask(3), Admission::Granted(_)));
}

#[test]
fn a_permit_whose_holder_vanished_comes_back_at_its_deadline_and_not_before() {
    let mut rig = Rig::new(at_most(1));
    rig.deadline = 10_000;
    let lost = rig.grant();
    assert_eq!(lost.lease_until, Instant(rig.now + 10_000));
    rig.deadline = 60_000;
    queue(&mut rig, "", Priority::Interactive, 1..2);
    rig.now += 9_999;
    assert!(matches!(rig.ask(1), Admission::Wait { .. }));
    rig.now += 1;
    assert!(matches!(rig.ask(1), Admission::Granted(_)));
    rig.settle(&lost, answered());
    rig.settle(&lost, answered());
    let counts = rig.control.permits();
    assert_eq!((counts.given, counts.returned, counts.expired, counts.held), (2, 0, 1, 1));
}

#[test]
fn a_holder_that_says_its_end_a_moment_late_is_not_told_as_lost() {
    let mut rig = Rig::new(ControlConfig::default());
    rig.deadline = 10_000;
    let (late, gone) = (rig.grant(), rig.grant());
    rig.now += 10_000;
    rig.control.sweep(Instant(rig.now)); // another call comes just before the timers of these two
    rig.settle(&late, answered());
    rig.now += 999;
    rig.control.sweep(Instant(rig.now));
    assert!(!rig.notices().contains(&NoticeKind::PermitLost));
    rig.now += 1;
    rig.control.sweep(Instant(rig.now));
    let lost = |notices: &[NoticeKind]| notices.iter().filter(|kind| **kind == NoticeKind::PermitLost).count();
    assert_eq!(lost(&rig.notices()), 1);
    rig.settle(&gone, answered());
    rig.control.sweep(Instant(rig.now + 5_000));
    assert_eq!(lost(&rig.notices()), 0);
}

#[test]
fn a_late_timeout_still_counts_though_its_lease_is_over() {
    let mut rig = Rig::new(ControlConfig::default());
    rig.deadline = 5_000;
    let permits: Vec<_> = (0..5).map(|_| rig.grant()).collect();
    rig.now += 5_001;
    for permit in &permits {
        rig.settle(permit, failed(ErrorClass::Timeout, Scope::Model));
    }
    rig.refused(Reason::BreakerOpen);
}

#[test]
fn a_clock_that_goes_back_releases_no_lease_and_lifts_no_cooling_early() {
    let mut rig = Rig::new(at_most(2));
    rig.deadline = 20_000;
    let a = rig.grant();
    rig.grant();
    rig.settle(&a, hinted(ErrorClass::RateLimited, Scope::Bucket, 5_000));
    rig.now -= 500_000;
    assert!(matches!(rig.ask(1), Admission::Wait { reason: Reason::BucketCooling, .. }));
    rig.now += 4_999;
    assert!(matches!(rig.ask(1), Admission::Wait { reason: Reason::BucketCooling, .. }));
    rig.now += 1; // five seconds of the new clock
    assert!(matches!(rig.ask(1), Admission::Wait { reason: Reason::ConcurrencyLimit, .. }), "the lease is still held");
}

#[test]
fn a_clock_that_stands_still_stops_nothing_that_does_not_need_it() {
    let mut rig = Rig::new(at_most(3));
    for _ in 0..10_000 {
        let permit = rig.grant();
        rig.settle(&permit, answered());
    }
}

#[test]
fn an_attacker_who_invents_tenants_and_models_cannot_grow_the_tables() {
    let mut rig = Rig::new(ControlConfig { max_tenants: 50, max_targets: 20, ..ControlConfig::default() });
    for n in 0..5_000_u32 {
        rig.tenant = "x".repeat(1_000) + &n.to_string();
        rig.model = Box::leak(format!("model-{n}").into_boxed_str());
        rig.now += 7;
        let permit = rig.grant();
        if n % 3 != 0 {
            rig.settle(&permit, answered());
        }
    }
    let mut state = String::new();
    rig.control.state_json(Instant(rig.now), &mut state);
    assert!(state.len() < 100_000, "{} bytes", state.len());
}

#[test]
fn a_tenant_name_of_a_megabyte_is_an_ordinary_tenant() {
    let limit = TenantLimits { concurrency: Some(1), ..TenantLimits::default() };
    let mut rig = Rig::new(ControlConfig { default_tenant: limit, ..ControlConfig::default() });
    rig.tenant = "é".repeat(500_000);
    rig.grant();
    assert!(matches!(rig.ask(1), Admission::Wait { reason: Reason::TenantConcurrency, .. }));
}
