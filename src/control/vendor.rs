//! What a vendor's headers said of a bucket's headroom, and what that means now.
//!
//! A reading is a fact about one instant. Between readings the table does the vendor's bookkeeping: what was sent since
//! is taken off, a reset that has passed makes the limit whole, and where three readings showed a token bucket (the
//! reset is the time that the deficit takes to refill at the stated rate: OpenAI, Anthropic, Groq) it refills evenly.
//! A fixed window stays empty until its reset. A response that was sent before the one last read never overwrites it.

use super::terms::{LimitKind, LimitWindow, VendorLimit};
use crate::prelude::*;
use crate::time::{Instant, Millis};

/// Limits remembered for a bucket; a response that states more is cut.
const MAX_LIMITS: usize = 8;
/// Readings in agreement after which a limit counts as one that refills evenly.
const SURE: u8 = 3;
/// How long an exhausted limit whose reset is not stated is left alone.
const UNSTATED_RESET: Millis = Millis(60_000);

/// What a request takes from a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) requests: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Cost {
    pub(crate) fn of(self, kind: LimitKind) -> u64 {
        match kind {
            LimitKind::Requests => self.requests,
            LimitKind::Tokens => self.input.saturating_add(self.output),
            LimitKind::InputTokens => self.input,
            LimitKind::OutputTokens => self.output,
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            input: self.input.saturating_sub(other.input),
            output: self.output.saturating_sub(other.output),
        }
    }
}

/// One limit as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What is counted.
    pub kind: LimitKind,
    /// Over what time.
    pub window: LimitWindow,
    /// The whole of it.
    pub limit: Option<u64>,
    /// What the last reading said was left.
    pub remaining: u64,
    /// When it is whole again.
    pub reset_at: Option<Instant>,
    /// When it was read.
    pub read_at: Instant,
    /// Requests or tokens that ended without a reading since.
    spent: u64,
    /// Readings in agreement with an even refill.
    refilling: u8,
}

/// The vendor state of one bucket.
#[derive(Clone, Debug, Default)]
pub struct Vendor {
    limits: Vec<Known>,
    /// The permit that the last reading belongs to.
    read_by: u64,
    /// When the vendor last answered 429.
    pub last_429_at: Option<Instant>,
    /// When it last said that it was overloaded.
    pub last_overload_at: Option<Instant>,
}

impl Vendor {
    /// The limits as they are known.
    #[must_use]
    pub fn limits(&self) -> &[Known] {
        &self.limits
    }

    /// Takes in the headers of the response to `permit`; says whether they were news.
    pub(crate) fn read(&mut self, permit: u64, stated: &[VendorLimit], now: Instant) -> bool {
        let useful = |limit: &&VendorLimit| limit.remaining.is_some() && limit.limit != Some(0);
        if permit < self.read_by || !stated.iter().any(|limit| useful(&limit)) {
            return false;
        }
        self.read_by = permit;
        for stated in stated.iter().filter(useful) {
            let same = |known: &&mut Known| known.kind == stated.kind && known.window == stated.window;
            if let Some(known) = self.limits.iter_mut().find(same) {
                *known = Known::read(stated, Some(*known), now);
            } else if self.limits.len() < MAX_LIMITS {
                self.limits.push(Known::read(stated, None, now));
            }
        }
        true
    }

    /// Whether the last reading is that of `permit`'s own response.
    pub(crate) fn has_read(&self, permit: u64) -> bool {
        self.read_by == permit
    }

    /// Takes off what an attempt used whose response said nothing of the limits.
    pub(crate) fn spend(&mut self, cost: Cost) {
        for known in &mut self.limits {
            known.spent = known.spent.saturating_add(cost.of(known.kind));
        }
    }

    /// When `cost` fits beside what is `reserved` and leaves `margin_per_mille` of each limit; `None` if it fits now.
    pub(crate) fn when(&mut self, cost: Cost, reserved: Cost, margin_per_mille: u64, now: Instant) -> Option<Instant> {
        let mut at = None;
        for known in &mut self.limits {
            known.roll(now);
            let margin = known.limit.unwrap_or(0).saturating_mul(margin_per_mille) / 1_000;
            let mut needed = cost.of(known.kind).saturating_add(reserved.of(known.kind)).saturating_add(margin);
            if let Some(limit) = known.limit {
                if reserved.of(known.kind) == 0 {
                    needed = needed.min(limit); // more than the whole: the vendor must judge, once it is whole
                }
            }
            if known.available(now) < needed {
                at = at.max(Some(known.reached(needed, now)));
            }
        }
        at
    }

    /// What is left of the first limit of this kind now, and its whole.
    #[must_use]
    pub fn left(&self, kind: LimitKind, now: Instant) -> Option<(u64, Option<u64>)> {
        let known = self.limits.iter().find(|known| known.kind == kind)?;
        Some((known.left(now), known.limit))
    }

    pub(crate) fn restore(&mut self, limit: VendorLimit, read_at: Instant) {
        if self.limits.len() < MAX_LIMITS && limit.remaining.is_some() {
            self.limits.push(Known::read(&limit, None, read_at));
        }
    }
}

impl Known {
    fn read(stated: &VendorLimit, before: Option<Self>, now: Instant) -> Self {
        let refilling = before.map_or(0, |known| known.refilling);
        let mut known = Self {
            kind: stated.kind,
            window: stated.window,
            limit: stated.limit,
            remaining: stated.remaining.unwrap_or(0),
            reset_at: stated.reset_at,
            read_at: now,
            spent: 0,
            refilling,
        };
        known.refilling = match known.fits_a_token_bucket() {
            Some(true) => refilling.saturating_add(1).min(SURE),
            Some(false) => 0,
            None => refilling,
        };
        known
    }

    /// What is left of it now.
    #[must_use]
    pub fn left(&self, now: Instant) -> u64 {
        let mut rolled = *self;
        rolled.roll(now);
        rolled.available(now)
    }

    /// Whether this reading is what a token bucket would say; `None` if it does not tell.
    fn fits_a_token_bucket(&self) -> Option<bool> {
        let (limit, reset_at) = (self.limit?, self.reset_at?);
        let deficit = limit.saturating_sub(self.remaining);
        let length = match self.window {
            LimitWindow::Day => 86_400_000,
            LimitWindow::Minute | LimitWindow::Unknown => 60_000,
        };
        let stated = self.read_at.until(reset_at).0.saturating_mul(limit);
        let even = deficit.saturating_mul(length);
        // A small deficit, or a reset rounded to seconds, proves nothing either way.
        if deficit.saturating_mul(20) < limit || even < limit.saturating_mul(2_000) {
            return None;
        }
        Some(stated.abs_diff(even) <= (even / 10).saturating_add(limit.saturating_mul(1_000)))
    }

    /// A reset that has passed makes it whole; what was spent since then is not known and counts from here.
    fn roll(&mut self, now: Instant) {
        if now < self.read_at {
            // The clock went back: keep the distance to the reset.
            self.reset_at = self.reset_at.map(|at| now.plus(self.read_at.until(at)));
            self.read_at = now;
        }
        let exhausted_without_reset = self.reset_at.is_none() && self.remaining.saturating_sub(self.spent) == 0;
        let unstated = exhausted_without_reset.then(|| self.read_at.plus(UNSTATED_RESET));
        let Some(reset_at) = self.reset_at.or(unstated) else { return };
        if reset_at <= now {
            self.remaining = self.limit.unwrap_or(self.remaining.max(1));
            self.spent = 0;
            self.read_at = now;
            self.reset_at = None;
        }
    }

    fn available(&self, now: Instant) -> u64 {
        let refilled = match (self.limit, self.reset_at) {
            (Some(limit), Some(reset_at)) if self.refilling >= SURE => {
                let whole = self.read_at.until(reset_at).0.max(1);
                let passed = now.since(self.read_at).0.min(whole);
                let deficit = limit.saturating_sub(self.remaining);
                mul_div(deficit, passed, whole)
            }
            _ => 0,
        };
        self.remaining.saturating_add(refilled).saturating_sub(self.spent)
    }

    /// When `needed` will be there, if nothing else is sent; at least a tick from now.
    fn reached(&self, needed: u64, now: Instant) -> Instant {
        let reset_at = self.reset_at.unwrap_or_else(|| self.read_at.plus(UNSTATED_RESET));
        let at = match self.limit {
            Some(limit) if self.refilling >= SURE => {
                let whole = self.read_at.until(reset_at).0;
                let deficit = limit.saturating_sub(self.remaining).max(1);
                let missing = needed.saturating_add(self.spent).saturating_sub(self.remaining);
                self.read_at.plus(Millis(mul_div(missing, whole, deficit).saturating_add(1)))
            }
            _ => reset_at,
        };
        at.max(now.plus(Millis(1)))
    }
}

/// `a * b / c` without overflow in between.
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    if let Some(product) = a.checked_mul(b) {
        return product.checked_div(c).unwrap_or(u64::MAX);
    }
    // Long division, bit by bit: a division of 128 bits would be a kilobyte of wasm, and such numbers are rare.
    let product = u128::from(a).saturating_mul(u128::from(b));
    let (mut rest, mut quotient) = (0_u128, 0_u64);
    if product >> 64 >= u128::from(c) {
        return u64::MAX;
    }
    for bit in (0..128_u32).rev() {
        rest = (rest << 1) | ((product >> bit) & 1);
        quotient <<= 1;
        if rest >= u128::from(c) {
            rest = rest.wrapping_sub(u128::from(c));
            quotient |= 1;
        }
    }
    quotient
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    fn tokens(remaining: u64, reset_at: u64) -> VendorLimit {
        VendorLimit {
            kind: LimitKind::Tokens,
            window: LimitWindow::Minute,
            limit: Some(60_000),
            remaining: Some(remaining),
            reset_at: Some(Instant(reset_at)),
        }
    }

    fn cost(tokens: u64) -> Cost {
        Cost { requests: 1, input: tokens, output: 0 }
    }

    #[test]
    fn what_does_not_fit_waits_for_the_reset() {
        let mut vendor = Vendor::default();
        vendor.read(1, &[tokens(100, 9_000)], Instant(1_000));
        assert_eq!(vendor.when(cost(100), Cost::default(), 0, Instant(1_000)), None);
        assert_eq!(vendor.when(cost(101), Cost::default(), 0, Instant(1_000)), Some(Instant(9_000)));
        assert_eq!(vendor.when(cost(50), cost(60), 0, Instant(1_000)), Some(Instant(9_000)), "what is reserved counts");
        assert_eq!(vendor.when(cost(101), Cost::default(), 0, Instant(9_000)), None, "a reset that passed is full");
    }

    #[test]
    fn an_older_response_that_arrives_late_overwrites_nothing() {
        let mut vendor = Vendor::default();
        assert!(vendor.read(7, &[tokens(100, 9_000)], Instant(1_000)));
        assert!(!vendor.read(6, &[tokens(60_000, 9_000)], Instant(2_000)));
        assert_eq!(vendor.left(LimitKind::Tokens, Instant(2_000)), Some((100, Some(60_000))));
    }

    #[test]
    fn a_token_bucket_is_known_by_three_readings_and_refills_evenly() {
        let mut vendor = Vendor::default();
        for n in 1..=3 {
            vendor.read(n, &[tokens(0, 60_000 + n)], Instant(n));
        }
        assert_eq!(vendor.left(LimitKind::Tokens, Instant(10_003)).unwrap().0, 10_000);
        assert_eq!(vendor.when(cost(20_000), Cost::default(), 0, Instant(10_003)), Some(Instant(20_004)));
        vendor.read(4, &[tokens(0, 70_000)], Instant(60_000));
        assert_eq!(
            vendor.left(LimitKind::Tokens, Instant(65_000)).unwrap().0,
            0,
            "ten seconds: a fixed window after all"
        );
    }

    #[test]
    fn more_than_the_whole_limit_goes_when_the_bucket_is_whole_and_nothing_is_in_flight() {
        let mut vendor = Vendor::default();
        vendor.read(1, &[tokens(59_000, 9_000)], Instant(0));
        assert!(vendor.when(cost(90_000), Cost::default(), 0, Instant(0)).is_some());
        assert_eq!(vendor.when(cost(90_000), Cost::default(), 0, Instant(9_000)), None);
        assert!(vendor.when(cost(90_000), cost(1), 0, Instant(9_000)).is_some());
    }

    #[test]
    fn an_exhausted_limit_without_a_reset_is_not_closed_for_ever() {
        let mut vendor = Vendor::default();
        vendor.read(1, &[VendorLimit { reset_at: None, limit: None, ..tokens(0, 0) }], Instant(0));
        assert_eq!(vendor.when(cost(1), Cost::default(), 0, Instant(5)), Some(Instant(60_000)));
        assert_eq!(vendor.when(cost(1), Cost::default(), 0, Instant(60_000)), None);
    }

    #[test]
    fn a_clock_that_goes_back_keeps_the_distance_to_the_reset() {
        let mut vendor = Vendor::default();
        vendor.read(1, &[tokens(0, 1_005_000)], Instant(1_000_000));
        assert_eq!(vendor.when(cost(1), Cost::default(), 0, Instant(10)), Some(Instant(5_010)));
    }
}
