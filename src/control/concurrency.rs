//! The adaptive concurrency limit of a bucket: additive increase, multiplicative decrease (TCP's AIMD, as in Netflix's
//! concurrency-limits).
//!
//! It costs nothing until the vendor pushes back: there is no limit before the first 429 or overload. That one tells how
//! many in flight were too many. What was under way at that time was sent under the old limit, so that a burst of its
//! rejections is one lesson and one cut, as TCP cuts once a round trip. A success at the limit adds its share of one;
//! minutes without a rejection lift the limit.

use crate::time::{Instant, Millis};

/// The settings of the concurrency limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencyConfig {
    /// Most requests in flight in a bucket, whatever happens. Range `1..=1_000_000`, default none.
    pub max: Option<u32>,
    /// What the adaptive limit never goes below. Range `1..=1_000_000`, default 1.
    pub min: u32,
    /// Whether rejections lower the limit. Default true.
    pub adaptive: bool,
    /// What a rejection leaves of the limit, in thousandths. Range `1..=999`, default 700 (Netflix 0.9, smithy 0.7).
    pub decrease_per_mille: u32,
    /// Time without a rejection after which the adaptive limit is lifted. Default `300_000` ms.
    pub calm: Millis,
}

impl Default for ConcurrencyConfig {
    fn default() -> Self {
        Self { max: None, min: 1, adaptive: true, decrease_per_mille: 700, calm: Millis(300_000) }
    }
}

/// The limit of one bucket, and what is in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Concurrency {
    /// Thousandths of a request; `None` before the first rejection.
    limit_milli: Option<u64>,
    /// The newest permit at the last cut: what is older was sent under the limit before it.
    round_from: u64,
    last_rejection: Instant,
    in_flight: u32,
}

impl Concurrency {
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The limit now; `None`: there is none.
    pub(crate) fn limit(&self, config: &ConcurrencyConfig) -> Option<u32> {
        let adaptive = self.limit_milli.map(|milli| u32::try_from(milli / 1_000).unwrap_or(u32::MAX).max(config.min));
        match (adaptive, config.max) {
            (Some(adaptive), Some(max)) => Some(adaptive.min(max)),
            (adaptive, max) => adaptive.or(max),
        }
    }

    pub(crate) fn has_room(&self, config: &ConcurrencyConfig, margin: u32) -> bool {
        self.limit(config).is_none_or(|limit| self.in_flight < limit.saturating_sub(margin).max(1))
    }

    pub(crate) fn on_sent(&mut self) {
        self.in_flight = self.in_flight.saturating_add(1);
    }

    pub(crate) fn on_returned(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A success, counted before its place is given back; whether it lifted the adaptive limit.
    pub(crate) fn on_success(&mut self, config: &ConcurrencyConfig, now: Instant) -> bool {
        let Some(milli) = self.limit_milli else { return false };
        self.last_rejection = self.last_rejection.min(now);
        if now.since(self.last_rejection) >= config.calm {
            self.limit_milli = None;
            return true;
        }
        let limit = (milli / 1_000).max(1);
        if u64::from(self.in_flight) >= limit {
            self.limit_milli = Some(milli.saturating_add(1_000_u64.checked_div(limit).unwrap_or(1).max(1)));
        }
        false
    }

    /// A 429 or an overload of the attempt `permit`; `newest` is the latest permit that was granted. Says whether the
    /// limit was cut.
    pub(crate) fn on_rejected(&mut self, permit: u64, newest: u64, config: &ConcurrencyConfig, now: Instant) -> bool {
        if !config.adaptive {
            return false;
        }
        self.last_rejection = now;
        if self.limit_milli.is_some() && permit <= self.round_from {
            return false;
        }
        self.round_from = newest;
        let in_flight = u64::from(self.in_flight).max(1);
        let limit = self.limit_milli.map_or(in_flight, |milli| (milli / 1_000).min(in_flight));
        let cut = limit.saturating_mul(u64::from(config.decrease_per_mille));
        self.limit_milli = Some(cut.max(u64::from(config.min.max(1)).saturating_mul(1_000)));
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    fn with_in_flight(n: u32) -> (Concurrency, ConcurrencyConfig) {
        let mut limit = Concurrency::default();
        for _ in 0..n {
            limit.on_sent();
        }
        (limit, ConcurrencyConfig::default())
    }

    #[test]
    fn there_is_no_limit_before_the_vendor_pushes_back() {
        let (limit, config) = with_in_flight(100_000);
        assert!(limit.has_room(&config, 0));
        assert_eq!(limit.limit(&config), None);
    }

    #[test]
    fn a_hundred_calls_that_fail_together_are_one_cut_whenever_they_end() {
        let (mut limit, config) = with_in_flight(100);
        for permit in 1..=100 {
            assert_eq!(limit.on_rejected(permit, 100, &config, Instant(permit)), permit == 1);
            limit.on_returned();
        }
        assert_eq!(limit.limit(&config), Some(70));
        // What was granted meanwhile was sent under the new limit: its rejection says that it is still too high.
        for _ in 0..70 {
            limit.on_sent();
        }
        assert!(limit.on_rejected(101, 170, &config, Instant(200)));
        assert_eq!(limit.limit(&config), Some(49));
    }

    #[test]
    fn a_later_round_cuts_to_seven_tenths_and_never_below_the_floor() {
        let (mut limit, config) = with_in_flight(10);
        limit.on_rejected(1, 10, &config, Instant(1));
        assert_eq!(limit.limit(&config), Some(7));
        for round in 1..50 {
            limit.on_rejected(round * 10 + 1, round * 10 + 10, &config, Instant(2));
        }
        assert_eq!(limit.limit(&config), Some(1));
        let (none, _) = with_in_flight(0);
        let mut floored = Concurrency { limit_milli: limit.limit_milli, ..none };
        assert!(floored.has_room(&config, 5), "the floor is one, whatever the margin");
        floored.on_sent();
        assert!(!floored.has_room(&config, 0));
    }

    #[test]
    fn a_round_of_successes_at_the_limit_adds_one_and_below_it_nothing() {
        let (mut limit, config) = with_in_flight(10);
        limit.on_rejected(1, 10, &config, Instant(1));
        for _ in 0..8 {
            limit.on_success(&config, Instant(2));
        }
        assert_eq!(limit.limit(&config), Some(8));
        limit.in_flight = 3;
        for _ in 0..100 {
            limit.on_success(&config, Instant(2));
        }
        assert_eq!(limit.limit(&config), Some(8));
    }

    #[test]
    fn minutes_without_a_rejection_lift_it() {
        let (mut limit, config) = with_in_flight(10);
        limit.on_rejected(1, 10, &config, Instant(0));
        assert!(!limit.on_success(&config, Instant(299_999)));
        assert!(limit.on_success(&config, Instant(300_000)));
        assert_eq!(limit.limit(&config), None);
    }
}
