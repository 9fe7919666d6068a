//! Durations and points in time, in whole milliseconds.
//!
//! The core has no clock. Every method that needs the time takes it as an argument, so a test owns it and a host whose
//! clock stands still between I/O (Workers) or jumps does no harm. All arithmetic saturates.

use core::fmt;

/// A duration in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

/// A point in time: whole milliseconds since the Unix epoch, on the driver's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest duration there is; stands for "no limit" in arithmetic.
    pub const MAX: Self = Self(u64::MAX);

    /// A duration of whole seconds, saturating.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, never below zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product with a whole number, saturating.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Instant {
    /// The end of time; stands for "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `after` later, saturating at [`Instant::NEVER`].
    #[must_use]
    pub const fn plus(self, after: Millis) -> Self {
        Self(self.0.saturating_add(after.0))
    }

    /// The instant `before` earlier, saturating at the epoch.
    #[must_use]
    pub const fn minus(self, before: Millis) -> Self {
        Self(self.0.saturating_sub(before.0))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }

    /// How long it is until `later`; zero if it has passed.
    #[must_use]
    pub const fn until(self, later: Self) -> Millis {
        Millis(later.0.saturating_sub(self.0))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_wraps() {
        assert_eq!(Instant::NEVER.plus(Millis(1)), Instant::NEVER);
        assert_eq!(Instant(5).since(Instant(9)), Millis::ZERO);
        assert_eq!(Instant(9).until(Instant(5)), Millis::ZERO);
        assert_eq!(Millis::from_secs(u64::MAX), Millis::MAX);
        assert_eq!(Millis(3).minus(Millis(4)), Millis::ZERO);
        assert_eq!(Millis(3).times(u64::MAX), Millis::MAX);
    }
}
