//! The pace of a bucket whose vendor tells of its limit by 429 alone, without headers.
//!
//! What got through in the last seconds is what the vendor admits, whatever its limit counts. From the first such 429 on
//! requests are spread at that rate less a tenth, and the rate creeps up until the next one: a sawtooth close to the limit
//! that runs into it once in a while (smithy's client rate limiter does the same). The limit on what is in flight alone
//! would be a poor judge of this: whether ten in flight are ten a second depends on how fast they are answered.

use crate::time::{Instant, Millis};

/// What the measure remembers: the last span of this length, and the one under way.
const SPAN: u64 = 4_000;
/// Less than this is too short to measure.
const SHORT: u64 = 1_000;
/// Answers in that time below which nothing is measured: a quiet client has its backoff.
const FEW: u64 = 10;
/// What a rejection leaves of the measured rate, in thousandths.
const CUT_PER_MILLE: u64 = 900;
/// How much the rate grows in a second, in thousandths of itself.
const GROWTH_PER_MILLE: u64 = 10;
/// What may be sent at once after a pause: this many milliseconds' worth, and one at least.
const BURST: u64 = 250;
/// The slowest pace, in millionths of a request a second: one request in ten seconds. Below it a rejection of each request
/// would cut as much as the time between two of them adds, and growth that is reckoned each millisecond would be nothing.
const SLOWEST: u64 = 100_000;
/// A request, in millionths.
const ONE: u64 = 1_000_000;

/// The pace of one bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    /// Answers in the last span, and in the one under way.
    before: Option<u64>,
    current: u64,
    began_at: Instant,
    /// Requests a second, in millionths; 0: not paced.
    rate: u64,
    /// What may be sent now, in millionths of a request.
    credit: u64,
    moved_at: Instant,
    round_from: u64,
    last_rejection: Instant,
}

impl Pace {
    /// Requests a minute, where it is paced.
    pub(crate) fn per_minute(&self) -> Option<u64> {
        (self.rate > 0).then(|| self.rate.saturating_mul(60) / ONE)
    }

    /// An answer that the vendor let through; whether it lifted the pace.
    pub(crate) fn on_success(&mut self, calm: Millis, now: Instant) -> bool {
        self.turn(now);
        self.current = self.current.saturating_add(1);
        self.last_rejection = self.last_rejection.min(now);
        now.since(self.last_rejection) >= calm && core::mem::take(&mut self.rate) > 0
    }

    /// A 429 of the attempt `permit`, while `newest` is the latest that was granted: all that were under way then are one
    /// lesson. Whether the pace was cut.
    pub(crate) fn on_rejected(&mut self, permit: u64, newest: u64, now: Instant) -> bool {
        self.turn(now);
        self.last_rejection = now;
        if permit <= self.round_from {
            return false;
        }
        self.round_from = newest;
        let seen = self.before.unwrap_or(0).saturating_add(self.current);
        let time = self.before.map_or(0, |_| SPAN).saturating_add(now.since(self.began_at).0).max(SHORT);
        let measured = seen.saturating_mul(1_000_000_000).checked_div(time).filter(|_| seen >= FEW);
        let rate = match (measured, self.rate) {
            (None, rate) | (Some(rate), 0) => rate,
            (Some(measured), rate) => measured.min(rate),
        };
        if rate == 0 {
            return false;
        }
        self.rate = (rate / 1_000).saturating_mul(CUT_PER_MILLE).max(SLOWEST);
        self.credit = 0;
        self.moved_at = now;
        true
    }

    /// When the next request may go; `None`: now.
    pub(crate) fn when(&mut self, now: Instant) -> Option<Instant> {
        if self.rate == 0 {
            return None;
        }
        self.moved_at = self.moved_at.min(now);
        let passed = now.since(self.moved_at).0;
        // A pause longer than a minute teaches nothing of the rate.
        let growth = passed.min(60_000).saturating_mul(GROWTH_PER_MILLE);
        self.rate = self.rate.saturating_add(self.rate.saturating_mul(growth) / 1_000_000);
        self.moved_at = now;
        let most = (self.rate.saturating_mul(BURST) / 1_000).max(ONE);
        self.credit = self.credit.saturating_add(self.rate.saturating_mul(passed) / 1_000).min(most);
        let missing = ONE.checked_sub(self.credit).filter(|missing| *missing > 0)?;
        Some(now.plus(Millis(missing.saturating_mul(1_000).div_ceil(self.rate))))
    }

    pub(crate) fn on_sent(&mut self) {
        self.credit = self.credit.saturating_sub(ONE);
    }

    /// How long so many requests take at this pace.
    pub(crate) fn takes(&self, requests: u64) -> Millis {
        Millis(requests.saturating_mul(1_000_000_000).checked_div(self.rate).unwrap_or(0))
    }

    /// Moves the measure on.
    fn turn(&mut self, now: Instant) {
        let passed = now.since(self.began_at).0;
        if now < self.began_at || passed >= 2 * SPAN {
            (self.before, self.current, self.began_at) = (None, 0, now);
        } else if passed >= SPAN {
            (self.before, self.current) = (Some(self.current), 0);
            self.began_at = self.began_at.plus(Millis(SPAN));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    const CALM: Millis = Millis(300_000);

    /// One that has let `per_second` through for so many seconds, beginning at a second's start.
    fn measured(per_second: u64, seconds: u64) -> Pace {
        let mut pace = Pace::default();
        for n in 0..per_second * seconds {
            pace.on_success(CALM, Instant(100_000 + n * 1_000 / per_second));
        }
        pace
    }

    /// What it lets through between two instants if somebody asks each millisecond.
    fn sent(pace: &mut Pace, from: u64, to: u64) -> u64 {
        let mut sent = 0;
        for now in from..to {
            while pace.when(Instant(now)).is_none() {
                pace.on_sent();
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn there_is_no_pace_before_a_rejection_and_none_from_a_handful_of_answers() {
        let mut pace = measured(100, 3);
        assert_eq!((pace.when(Instant(103_000)), pace.per_minute()), (None, None));
        let mut quiet = measured(1, 5);
        quiet.on_rejected(1, 1, Instant(105_000));
        assert_eq!(quiet.per_minute(), None);
    }

    #[test]
    fn it_is_nine_tenths_of_what_got_through_and_creeps_up() {
        let mut pace = measured(10, 10);
        pace.on_rejected(1, 1, Instant(110_000));
        let paced = pace.per_minute().unwrap();
        assert!((520..=560).contains(&paced), "{paced}");
        let first = sent(&mut pace, 110_000, 120_000);
        assert!((90..=100).contains(&first), "{first}");
        let second = sent(&mut pace, 120_000, 130_000);
        assert!(second > first && second < first + 15, "{second} after {first}");
    }

    #[test]
    fn rejections_of_what_was_already_under_way_are_one_lesson() {
        let mut pace = measured(10, 10);
        for permit in 1..=50 {
            pace.on_rejected(permit, 50, Instant(110_000));
        }
        let paced = pace.per_minute();
        pace.on_rejected(51, 60, Instant(110_100));
        assert!(pace.per_minute() < paced);
        assert!(paced.unwrap() >= 520);
    }

    #[test]
    fn after_a_pause_a_quarter_of_a_second_is_made_up_for_and_no_more() {
        let mut pace = measured(100, 6);
        pace.on_rejected(1, 1, Instant(106_000));
        let burst = sent(&mut pace, 120_000, 120_001);
        assert!((20..=30).contains(&burst), "{burst}");
    }

    #[test]
    fn minutes_without_a_rejection_lift_it() {
        let mut pace = measured(10, 10);
        pace.on_rejected(1, 1, Instant(110_000));
        pace.on_success(CALM, Instant(409_999));
        assert!(pace.per_minute().is_some());
        pace.on_success(CALM, Instant(410_000));
        assert_eq!(pace.per_minute(), None);
    }

    #[test]
    fn after_an_outage_of_429_it_comes_back_however_often_it_is_asked() {
        let mut pace = measured(10, 10);
        for permit in 1..=100 {
            pace.on_rejected(permit, permit, Instant(100_000 + permit * 10_000));
        }
        assert_eq!(pace.per_minute(), Some(6), "one in ten seconds at least");
        // Somebody asks each millisecond.
        sent(&mut pace, 1_100_000, 1_175_000);
        assert!(pace.per_minute() >= Some(10), "{:?}", pace.per_minute());
    }

    #[test]
    fn a_clock_that_jumps_neither_stops_it_nor_lets_a_flood_through() {
        let mut pace = measured(10, 10);
        pace.on_rejected(1, 1, Instant(110_000));
        pace.on_sent();
        let back = pace.when(Instant(5_000)).unwrap();
        assert!(back <= Instant(5_200), "{back:?}");
        assert!(sent(&mut pace, 5_000, 15_000) < 110);
        assert!(sent(&mut pace, u64::MAX - 10, u64::MAX - 9) < 10);
    }
}
