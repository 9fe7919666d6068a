//! Whether an attempt can end before its deadline, by what is known of its target.
//!
//! First token and throughput of each target are kept as histograms on a logarithmic scale (four steps to a doubling)
//! whose counts are halved as they fill, so that the last few hundred calls speak and old ones fade. Until there
//! are eight samples nothing is known: the answer then is a stated default, and a default never refuses anybody. What was
//! not heard of for a minute is tried again, by one call a minute: a slow bucket that is passed over would never be known to
//! have become fast.

use crate::prelude::*;
use crate::time::{Instant, Millis};

/// Steps of the scale: 2^0 to 2^24, four to a doubling.
const STEPS: usize = 100;
/// Samples below which nothing is known.
const FEW: u32 = 8;
/// Samples at which the counts are halved.
const MANY: u32 = 512;
/// First token of a target that nothing is known of.
const COLD_FIRST_TOKEN: Millis = Millis(2_000);
/// Without a success for this long, one call tries whether it is still so slow.
const STALE: Millis = Millis(60_000);
/// Tokens a second of a target that nothing is known of.
const COLD_TOKENS_PER_SECOND: u64 = 50;

/// Decaying percentiles of a quantity between 1 and 16 million.
#[derive(Clone, Debug, Default)]
pub(crate) struct Percentiles {
    counts: Vec<u16>,
    total: u32,
}

impl Percentiles {
    pub(crate) fn add(&mut self, value: u64) {
        if self.counts.is_empty() {
            self.counts.resize(STEPS, 0);
        }
        if self.total >= MANY {
            self.total = 0;
            for count in &mut self.counts {
                *count /= 2;
                self.total = self.total.saturating_add(u32::from(*count));
            }
        }
        if let Some(count) = self.counts.get_mut(step(value)) {
            *count = count.saturating_add(1);
            self.total = self.total.saturating_add(1);
        }
    }

    /// The value that `per_mille` of the samples do not exceed; `None` while there are few.
    pub(crate) fn at(&self, per_mille: u32) -> Option<u64> {
        if self.total < FEW {
            return None;
        }
        let rank = self.total.saturating_mul(per_mille).div_ceil(1_000).max(1);
        let mut seen: u32 = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(u32::from(*count));
            if seen >= rank {
                return Some(value_of(index));
            }
        }
        None
    }
}

/// The step of a value: its power of two, and the two bits below it.
fn step(value: u64) -> usize {
    let value = value.max(1);
    let power = value.ilog2();
    let below = value.checked_shr(power.saturating_sub(2)).unwrap_or(0) & 3;
    let quarter = if power >= 2 { below } else { 0 };
    let index = u64::from(power).saturating_mul(4).saturating_add(quarter);
    usize::try_from(index).unwrap_or(STEPS).min(STEPS.saturating_sub(1))
}

/// The upper end of a step.
fn value_of(index: usize) -> u64 {
    let index = index as u64;
    let power = index / 4;
    let quarter = if power < 2 { 3 } else { index % 4 };
    let base = 1_u64.checked_shl(u32::try_from(power).unwrap_or(0)).unwrap_or(u64::MAX);
    base.saturating_add(base.saturating_mul(quarter.saturating_add(1)) / 4).saturating_sub(1).max(1)
}

/// What is known of how fast a target answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Speed {
    first_token: Percentiles,
    tokens_per_second: Percentiles,
    heard_at: Instant,
}

/// The answer, with what it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feasibility {
    /// Whether the attempt can end in time. True whenever too little is known.
    pub fits: bool,
    /// How long it is expected to take: first token, and the output tokens at that throughput. What is unknown counts as
    /// a default here (2 s, 50 tokens a second), and as nothing in `fits`.
    pub estimate: Millis,
    /// The median first token that this is made from; `None`: unknown.
    pub first_token: Option<Millis>,
    /// The median throughput that this is made from; `None`: unknown.
    pub tokens_per_second: Option<u64>,
}

impl Speed {
    /// A call goes there. If it has not been heard of for long, this one is to find out, and no other.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        if now < self.heard_at || now.since(self.heard_at) >= STALE {
            self.heard_at = now;
        }
    }

    /// The medians, where they are known.
    pub(crate) fn medians(&self) -> (Option<u64>, Option<u64>) {
        (self.first_token.at(500), self.tokens_per_second.at(500))
    }

    pub(crate) fn on_success(
        &mut self,
        first_token: Option<Millis>,
        latency: Millis,
        output_tokens: Option<u64>,
        now: Instant,
    ) {
        self.heard_at = now;
        // What came in one piece tells how fast it was on the whole, and nothing of its first token.
        let streamed = latency.minus(first_token.unwrap_or(Millis::ZERO)).0;
        if let Some(first) = first_token {
            self.first_token.add(first.0);
        }
        if let (Some(tokens), true) = (output_tokens, streamed >= 50) {
            self.tokens_per_second.add(tokens.saturating_mul(1_000).checked_div(streamed).unwrap_or(0));
        }
    }

    /// Whether `output_tokens` more can be there before `deadline`. Medians, not tails: an attempt that would make it
    /// more often than not is worth starting.
    pub(crate) fn feasible(&self, output_tokens: u64, deadline: Instant, now: Instant) -> Feasibility {
        let (first, rate) = self.medians();
        let first_token = first.map(Millis);
        let a_second = rate.unwrap_or(COLD_TOKENS_PER_SECOND).max(1);
        let streaming = output_tokens.saturating_mul(1_000).checked_div(a_second).unwrap_or(0);
        let known = first.unwrap_or(0).saturating_add(if rate.is_some() { streaming } else { 0 });
        Feasibility {
            fits: now.plus(Millis(known)) <= deadline || now.since(self.heard_at) >= STALE,
            estimate: first_token.unwrap_or(COLD_FIRST_TOKEN).plus(Millis(streaming)),
            first_token,
            tokens_per_second: rate,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    #[test]
    fn a_percentile_is_within_a_quarter_above_the_true_value() {
        let mut percentiles = Percentiles::default();
        for value in 1..=500 {
            percentiles.add(value);
        }
        let median = percentiles.at(500).unwrap();
        assert!((250..=313).contains(&median), "{median}");
        let p99 = percentiles.at(990).unwrap();
        assert!((495..=620).contains(&p99), "{p99}");
    }

    #[test]
    fn every_value_has_a_step_whose_end_is_not_below_it() {
        for value in (0..4_096).chain([1 << 20, (1 << 24) - 1]) {
            assert!(value_of(step(value)) >= value, "{value}");
        }
        assert_eq!(step(u64::MAX), STEPS - 1);
    }

    #[test]
    fn a_target_that_nothing_is_known_of_refuses_nobody() {
        let speed = Speed::default();
        let answer = speed.feasible(1_000_000, Instant(1), Instant(0));
        assert!(answer.fits && answer.first_token.is_none() && answer.estimate > Millis(1));
    }

    #[test]
    fn a_slow_target_is_known_not_to_make_it() {
        let mut speed = Speed::default();
        for _ in 0..20 {
            speed.on_success(Some(Millis(1_000)), Millis(11_000), Some(500), Instant(0)); // 50 tokens a second
        }
        assert!(!speed.feasible(1_000, Instant(15_000), Instant(0)).fits);
        assert!(speed.feasible(300, Instant(15_000), Instant(0)).fits);
    }

    #[test]
    fn yesterdays_speed_is_forgotten() {
        let mut speed = Speed::default();
        for _ in 0..2_000 {
            speed.on_success(Some(Millis(8_000)), Millis(9_000), Some(50), Instant(0));
        }
        for _ in 0..1_000 {
            speed.on_success(Some(Millis(500)), Millis(1_500), Some(50), Instant(0));
        }
        assert!(speed.feasible(0, Instant(1_000), Instant(0)).fits);
    }

    #[test]
    fn an_answer_in_one_piece_tells_its_speed_and_nothing_of_a_first_token() {
        let mut speed = Speed::default();
        for _ in 0..8 {
            speed.on_success(None, Millis(10_000), Some(500), Instant(0)); // 50 tokens a second
        }
        assert_eq!(speed.medians().0, None);
        assert!(!speed.feasible(1_000, Instant(12_000), Instant(0)).fits);
        assert!(speed.feasible(500, Instant(12_000), Instant(0)).fits);
    }

    #[test]
    fn after_a_silent_minute_one_call_finds_out_whether_it_is_still_slow() {
        let mut speed = Speed::default();
        for _ in 0..8 {
            speed.on_success(Some(Millis(8_000)), Millis(9_000), None, Instant(0));
        }
        let fits = |speed: &Speed, now| speed.feasible(0, Instant(now + 1_000), Instant(now)).fits;
        assert!(!fits(&speed, 59_999));
        assert!(fits(&speed, 60_000));
        speed.on_sent(Instant(60_000));
        assert!(!fits(&speed, 60_001), "one is enough");
    }
}
