//! A span of time during which something is closed, that survives a clock which jumps.
//!
//! It is renewed to the later of both ends, never shortened. When the clock goes back behind its beginning it begins
//! again: it never ends early, and never lasts for longer than its own length on the new clock.

use crate::time::{Instant, Millis};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hold {
    from: Instant,
    until: Instant,
}

impl Hold {
    /// Closes for `length` from `now` on; what is closed for longer already stays so.
    pub(crate) fn extend(&mut self, length: Millis, now: Instant) {
        if length > self.left(now) {
            *self = Self { from: now, until: now.plus(length) };
        }
    }

    /// How long it is still closed; zero if it is open.
    pub(crate) fn left(&mut self, now: Instant) -> Millis {
        if now < self.from {
            *self = Self { from: now, until: now.plus(self.until.since(self.from)) };
        }
        now.until(self.until)
    }

    /// Opens it.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When it opens, as it was set.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f4_a_renewed_cooling_takes_the_later_of_both_ends() {
        let mut hold = Hold::default();
        hold.extend(Millis(60_000), Instant(0));
        hold.extend(Millis(5_000), Instant(1_000));
        assert_eq!(hold.left(Instant(1_000)), Millis(59_000));
        hold.extend(Millis(90_000), Instant(2_000));
        assert_eq!(hold.left(Instant(2_000)), Millis(90_000));
    }

    #[test]
    fn a_clock_that_goes_back_neither_shortens_nor_stretches_it() {
        let mut hold = Hold::default();
        hold.extend(Millis(5_000), Instant(1_000_000));
        assert_eq!(hold.left(Instant(10)), Millis(5_000));
        assert_eq!(hold.left(Instant(5_010)), Millis::ZERO);
    }

    #[test]
    fn a_shorter_renewal_does_not_shorten_what_a_clock_that_goes_back_starts_again() {
        let mut hold = Hold::default();
        hold.extend(Millis(5_000), Instant(1_000));
        hold.extend(Millis(100), Instant(3_000));
        assert_eq!(hold.left(Instant(2_500)), Millis(3_500));
    }
}
