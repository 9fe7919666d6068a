//! How long to wait before a retry when the provider does not say, and how much longer than it says when it does.
//!
//! Exponential with jitter; the four kinds are those of "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
//! A wait hint wins over any formula: the answer is never less than the hint, plus a small positive jitter so that a
//! fleet does not come back in one instant. Whole milliseconds; saturates at any attempt number.

use crate::random::up_to;
use crate::time::Millis;

/// How a backoff is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Anywhere between nothing and the whole.
    #[default]
    Full,
    /// Half of it for certain, the other half anywhere.
    Equal,
    /// Anywhere between the base and three times the wait before.
    Decorrelated,
    /// The whole, always.
    None,
}

impl Jitter {
    /// The jitter of a public name: `full`, `equal`, `decorrelated`, `none`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "full" => Some(Self::Full),
            "equal" => Some(Self::Equal),
            "decorrelated" => Some(Self::Decorrelated),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

/// The waits of one logical request.
///
/// # Default
/// base 500 ms, cap `8_000` ms, full jitter: the range that the LLM SDKs agree on, with the jitter that they lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    base: Millis,
    cap: Millis,
    jitter: Jitter,
    previous: Millis,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Millis(500), Millis(8_000), Jitter::Full)
    }
}

impl Backoff {
    /// Waits that start at `base` and double up to `cap`. A cap below the base counts as the base.
    #[must_use]
    pub fn new(base: Millis, cap: Millis, jitter: Jitter) -> Self {
        Self { base, cap: cap.max(base), jitter, previous: base }
    }

    /// The wait before retry number `retry` (1 is the first), without a hint.
    pub fn delay(&mut self, retry: u32, rng: &mut fastrand::Rng) -> Millis {
        let growth = 1_u64.checked_shl(retry.saturating_sub(1)).unwrap_or(u64::MAX);
        let whole = self.base.times(growth).min(self.cap);
        let delay = match self.jitter {
            Jitter::None => whole,
            Jitter::Full => Millis(up_to(rng, whole.0)),
            Jitter::Equal => {
                let half = whole.0 / 2;
                Millis(whole.0.saturating_sub(up_to(rng, half)))
            }
            Jitter::Decorrelated => {
                let top = self.previous.times(3).min(self.cap).max(self.base);
                self.base.plus(Millis(up_to(rng, top.0.saturating_sub(self.base.0))))
            }
        };
        self.previous = delay.max(self.base);
        delay
    }

    /// The wait for a hint: the hint and up to a tenth of it on top, at most a second.
    #[must_use]
    pub fn hinted(hint: Millis, rng: &mut fastrand::Rng) -> Millis {
        let spread = (hint.0 / 10).clamp(10, 1_000);
        hint.plus(Millis(up_to(rng, spread.saturating_sub(1)).saturating_add(1)))
    }

    /// The wait before retry number `retry`: for the hint if there is one, else by the formula.
    pub fn next(&mut self, retry: u32, hint: Option<Millis>, rng: &mut fastrand::Rng) -> Millis {
        match hint {
            Some(hint) => Self::hinted(hint, rng),
            None => self.delay(retry, rng),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    const ALL: [Jitter; 4] = [Jitter::Full, Jitter::Equal, Jitter::Decorrelated, Jitter::None];

    fn delays(jitter: Jitter, retries: u32) -> Vec<u64> {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(Millis(500), Millis(8_000), jitter);
        (1..=retries).map(|retry| backoff.delay(retry, &mut rng).0).collect()
    }

    #[test]
    fn without_jitter_it_doubles_up_to_the_cap() {
        assert_eq!(delays(Jitter::None, 7), [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
    }

    #[test]
    fn a_thousand_attempts_overflow_nothing_and_stay_under_the_cap() {
        for jitter in ALL {
            assert!(delays(jitter, 1_000).into_iter().all(|delay| delay <= 8_000), "{jitter:?}");
        }
        let mut rng = fastrand::Rng::with_seed(1);
        let mut widest = Backoff::new(Millis::MAX, Millis::MAX, Jitter::Decorrelated);
        assert_eq!(widest.delay(u32::MAX, &mut rng), Millis::MAX);
    }

    #[test]
    fn full_jitter_reaches_both_ends_and_equal_jitter_keeps_half() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut full = Backoff::default();
        let seen: Vec<u64> = (0..10_000).map(|_| full.delay(1, &mut rng).0).collect();
        assert!(seen.iter().min().unwrap() < &5 && seen.iter().max().unwrap() > &495);
        let mut equal = Backoff::new(Millis(500), Millis(8_000), Jitter::Equal);
        assert!((0..10_000).all(|_| (250..=500).contains(&equal.delay(1, &mut rng).0)));
    }

    #[test]
    fn decorrelated_jitter_never_falls_below_the_base() {
        assert!(delays(Jitter::Decorrelated, 1_000).into_iter().all(|delay| delay >= 500));
    }

    #[test]
    fn a_hint_is_never_undercut_and_two_callers_do_not_come_back_together() {
        let mut rng = fastrand::Rng::with_seed(4);
        for hint in [0, 1, 999, 7_000, 86_400_000, u64::MAX - 1] {
            let waits: Vec<u64> = (0..50).map(|_| Backoff::hinted(Millis(hint), &mut rng).0).collect();
            assert!(waits.iter().all(|wait| *wait > hint && *wait - hint <= 1_000), "{hint}");
        }
        let hint = Millis(7_000);
        assert_ne!(Backoff::hinted(hint, &mut rng), Backoff::hinted(hint, &mut rng));
    }

    #[test]
    fn a_cap_below_the_base_counts_as_the_base() {
        let mut rng = fastrand::Rng::with_seed(5);
        assert_eq!(Backoff::new(Millis(500), Millis(1), Jitter::None).delay(9, &mut rng), Millis(500));
    }
}
