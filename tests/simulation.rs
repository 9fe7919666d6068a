//! What the defaults must reach against a simulated provider, with fixed seeds. `docs/simulation.md` has the numbers of
//! all policies; `cargo run --release --example simulate` makes them.
#![allow(clippy::cast_precision_loss, clippy::indexing_slicing, reason = "tests")]

mod simulated;

use simulated::{
    Policy, Report, failover, flood, mean, outage, overload, play, quiet, steady_goodput, steady_rejected,
};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

fn runs(scenario: impl Fn(u64) -> simulated::Scenario, policy: Policy) -> Vec<Report> {
    SEEDS.map(|seed| play(&scenario(seed), policy)).collect()
}

#[test]
fn an_outage_costs_its_provider_at_most_fifteen_percent_more_and_nested_layers_twenty_times() {
    for policy in [Policy::Evenkeel, Policy::EvenkeelAlone] {
        for run in runs(outage, policy) {
            let sent = run.per_logical(60_000, 120_000);
            assert!(sent <= 1.15, "{policy:?}: {sent}");
        }
    }
    assert!(mean(&runs(outage, Policy::Nested), |run| run.per_logical(60_000, 120_000)) > 15.0);
}

#[test]
fn goodput_is_back_within_five_seconds_of_an_outages_end_without_a_second_spike() {
    for run in runs(outage, Policy::Evenkeel) {
        let back = run.recovery(120_000);
        assert!(back.is_some_and(|seconds| seconds <= 5), "{back:?}");
        let peak = run.sent_series[120..180].iter().max().copied();
        assert!(peak <= Some(360), "{peak:?} a second, 1.2 times the limit is 360");
    }
}

#[test]
fn a_fallback_spares_a_dead_primary_and_it_is_used_again_within_four_seconds() {
    for phase in 0..40 {
        let (dead, again) = failover(phase * 100, 100, phase);
        assert!(dead <= 4, "{dead} requests at phase {phase}");
        assert!(again <= 4_100, "{again} ms at phase {phase}, a tick of the client included");
    }
}

#[test]
fn at_three_times_the_limit_nearly_all_of_it_is_used_and_nearly_nothing_rejected_whatever_the_provider_tells() {
    for (hints, headers) in [(true, true), (true, false), (false, false)] {
        for run in runs(|seed| overload(seed, hints, headers), Policy::Evenkeel) {
            let (goodput, rejected) = (steady_goodput(&run), steady_rejected(&run));
            assert!(goodput >= 0.97, "{goodput} with hints {hints}, headers {headers}");
            assert!(rejected <= 0.03, "{rejected} with hints {hints}, headers {headers}");
        }
    }
}

#[test]
fn one_tenants_batch_flood_leaves_the_others_p99_and_their_answers_alone() {
    let p99 = |run: &Report| run.percentile(0, 990, 60_000, 330_000) as f64;
    let (calm, busy) = (runs(quiet, Policy::Evenkeel), runs(flood, Policy::Evenkeel));
    let ratio = mean(&busy, p99) / mean(&calm, p99);
    assert!(ratio <= 1.2, "{ratio}");
    for run in &busy {
        assert!(run.answered(0) >= 0.99, "{}", run.answered(0));
    }
}
