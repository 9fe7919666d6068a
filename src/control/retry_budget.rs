//! The retry budget: how many retries a provider may be sent, as a share of first attempts.
//!
//! A fixed number of attempts a call does not protect anyone in an outage: every call makes them all, and layers
//! multiply. A budget does. The rule is Finagle's and tower's (`TpsBudget`): over the last seconds, retries may be at
//! most a share of the first attempts plus a floor a second, so that a quiet service can retry at all. Each retry
//! draws on the provider's budget and on the global one, and is made only if both can pay.
//!
//! All arithmetic is in thousandths of a retry, in whole numbers.

use super::names::{Entered, Names};
use crate::prelude::*;
use crate::time::{Instant, Millis};

/// The settings of the retry budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudgetConfig {
    /// Retries allowed for each first attempt of the window, in thousandths. Range `0..=10_000`, default 200.
    ///
    /// 20 % is what Finagle, Envoy and failsafe-go arrived at independently. An outage then costs a provider at most
    /// 1.2 requests for each that it would have had anyway.
    pub ratio_per_mille: u32,
    /// Retries a second that are allowed whatever the traffic, in thousandths. Range `0..=1_000_000`, default `1_000`.
    ///
    /// One a second over the window of 10 s means that a fresh isolate has ten retries at hand before its first
    /// success. Finagle's reserve of 10/s is made for servers with thousands of calls a second; an isolate with five
    /// calls a minute would never feel it.
    pub min_per_second_milli: u32,
    /// How long first attempts and retries are remembered. Range `1_000..=60_000` ms (that of tower), default `10_000`.
    pub window: Millis,
}

impl Default for RetryBudgetConfig {
    fn default() -> Self {
        Self { ratio_per_mille: 200, min_per_second_milli: 1_000, window: Millis(10_000) }
    }
}

/// What a retry costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetryCost {
    /// One retry: the failed attempt was not sent, or was answered.
    #[default]
    Plain,
    /// Two retries: the failed attempt may have been carried out, and this one may be paid for twice.
    Ambiguous,
}

impl RetryCost {
    fn milli(self) -> u64 {
        match self {
            Self::Plain => 1_000,
            Self::Ambiguous => 2_000,
        }
    }
}

/// Number of parts a window is remembered in.
const SLOTS: usize = 10;

/// One token bucket over a sliding window.
///
/// At any time `drawn(window) <= ratio * first_attempts(window) + floor * window` at the moment of each draw.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    config: RetryBudgetConfig,
    slots: [Counts; SLOTS],
    current: usize,
    slot_start: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    first: u32,
    drawn_milli: u32,
}

impl RetryBudget {
    /// An empty history: only the floor can be drawn.
    #[must_use]
    pub fn new(config: RetryBudgetConfig, now: Instant) -> Self {
        Self { config, slots: [Counts::default(); SLOTS], current: 0, slot_start: now }
    }

    /// Counts a first attempt, which pays for its share of a retry.
    pub fn on_first_attempt(&mut self, now: Instant) {
        self.advance(now);
        if let Some(slot) = self.slots.get_mut(self.current) {
            slot.first = slot.first.saturating_add(1);
        }
    }

    /// Thousandths of a retry that can be drawn now.
    #[must_use]
    pub fn balance_milli(&mut self, now: Instant) -> u64 {
        self.advance(now);
        let first: u64 = self.slots.iter().fold(0, |sum, slot| sum.saturating_add(u64::from(slot.first)));
        let drawn: u64 = self.slots.iter().fold(0, |sum, slot| sum.saturating_add(u64::from(slot.drawn_milli)));
        let floor = u64::from(self.config.min_per_second_milli).saturating_mul(self.config.window.0) / 1_000;
        first.saturating_mul(u64::from(self.config.ratio_per_mille)).saturating_add(floor).saturating_sub(drawn)
    }

    /// Draws the price of a retry if it can be paid in full; says whether it was.
    pub fn draw(&mut self, cost: RetryCost, now: Instant) -> bool {
        if self.balance_milli(now) < cost.milli() {
            return false;
        }
        if let Some(slot) = self.slots.get_mut(self.current) {
            slot.drawn_milli = slot.drawn_milli.saturating_add(u32::try_from(cost.milli()).unwrap_or(u32::MAX));
        }
        true
    }

    /// Forgets the parts of the window that have passed. A clock that went back starts the current part again:
    /// nothing is forgotten early, and nothing is kept for longer than a window of the new clock.
    fn advance(&mut self, now: Instant) {
        if now < self.slot_start {
            self.slot_start = now;
            return;
        }
        let width = self.config.window.0.div_ceil(SLOTS as u64).max(1);
        let passed = now.since(self.slot_start).0.checked_div(width).unwrap_or(0);
        if passed == 0 {
            return;
        }
        for _ in 0..passed.min(SLOTS as u64) {
            self.current = self.current.saturating_add(1) % SLOTS;
            if let Some(slot) = self.slots.get_mut(self.current) {
                *slot = Counts::default();
            }
        }
        self.slot_start = self.slot_start.plus(Millis(passed.saturating_mul(width)));
    }

    /// Whether a fresh budget would behave the same: nothing within the window.
    fn is_forgotten(&self, now: Instant) -> bool {
        now.since(self.slot_start) >= self.config.window
    }
}

/// The budgets of all providers, and the one they share.
#[derive(Debug)]
pub struct RetryBudgets {
    config: Option<RetryBudgetConfig>,
    global: RetryBudget,
    names: Names,
    providers: Vec<RetryBudget>,
}

impl RetryBudgets {
    /// Budgets for at most `max_providers`; providers beyond that draw on the global budget alone. `None`: no budget,
    /// every retry is allowed.
    #[must_use]
    pub fn new(config: Option<RetryBudgetConfig>, max_providers: usize) -> Self {
        let own = config.unwrap_or_default();
        // Twice the floor, so that one provider's outage does not take the last retry of a quiet one.
        let floor = own.min_per_second_milli.saturating_mul(2);
        let global = RetryBudget::new(RetryBudgetConfig { min_per_second_milli: floor, ..own }, Instant(0));
        Self { config, global, names: Names::new(max_providers), providers: Vec::new() }
    }

    /// Counts the first attempt of a logical request.
    pub fn on_first_attempt(&mut self, provider: &str, now: Instant) {
        if self.config.is_none() {
            return;
        }
        self.global.on_first_attempt(now);
        if let Some(budget) = self.provider(provider, now) {
            budget.on_first_attempt(now);
        }
    }

    /// Draws on the provider's budget and the global one, or on neither; says whether the retry may be made.
    pub fn may_retry(&mut self, provider: &str, cost: RetryCost, now: Instant) -> bool {
        if self.config.is_none() {
            return true;
        }
        if self.global.balance_milli(now) < cost.milli() {
            return false;
        }
        let drawn = self.provider(provider, now).is_none_or(|budget| budget.draw(cost, now));
        drawn && self.global.draw(cost, now)
    }

    /// Thousandths of a retry that `provider` could be sent now; what a state table shows.
    #[must_use]
    pub fn balance_milli(&self, provider: &str, now: Instant) -> u64 {
        let global = self.global.clone().balance_milli(now);
        let own = self.names.find(provider).and_then(|slot| self.providers.get(slot.index as usize));
        own.map_or(global, |budget| budget.clone().balance_milli(now).min(global))
    }

    /// Providers that are known, in the order of their names.
    pub(crate) fn providers(&self) -> impl Iterator<Item = &str> {
        self.names.in_order().map(|(name, _)| name)
    }

    /// The balance of the global budget.
    pub(crate) fn global_milli(&self, now: Instant) -> u64 {
        self.global.clone().balance_milli(now)
    }

    fn provider(&mut self, provider: &str, now: Instant) -> Option<&mut RetryBudget> {
        let providers = &self.providers;
        let idle = |index: usize| providers.get(index).is_none_or(|budget| budget.is_forgotten(now));
        let entered = self.names.enter(provider, now, &idle)?;
        let index = entered.slot().index as usize;
        if let Entered::Fresh(_) = entered {
            let fresh = RetryBudget::new(self.config.unwrap_or_default(), now);
            match self.providers.get_mut(index) {
                Some(budget) => *budget = fresh,
                None => self.providers.push(fresh),
            }
        }
        self.providers.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    fn budget() -> RetryBudget {
        RetryBudget::new(RetryBudgetConfig::default(), Instant(0))
    }

    #[test]
    fn a_fresh_isolate_has_ten_retries_and_no_more() {
        let mut budget = budget();
        assert_eq!((0..20).filter(|_| budget.draw(RetryCost::Plain, Instant(5))).count(), 10);
    }

    #[test]
    fn five_first_attempts_pay_for_one_retry() {
        let config = RetryBudgetConfig { min_per_second_milli: 0, ..RetryBudgetConfig::default() };
        let mut budget = RetryBudget::new(config, Instant(0));
        for _ in 0..4 {
            budget.on_first_attempt(Instant(0));
        }
        assert!(!budget.draw(RetryCost::Plain, Instant(0)));
        budget.on_first_attempt(Instant(0));
        assert!(budget.draw(RetryCost::Plain, Instant(0)));
        assert!(!budget.draw(RetryCost::Plain, Instant(0)));
    }

    #[test]
    fn a_retry_that_may_be_paid_twice_costs_double() {
        let mut budget = budget();
        assert_eq!((0..20).filter(|_| budget.draw(RetryCost::Ambiguous, Instant(5))).count(), 5);
    }

    #[test]
    fn what_was_drawn_is_forgotten_after_the_window_and_not_before() {
        let mut budget = budget();
        while budget.draw(RetryCost::Plain, Instant(0)) {}
        assert!(!budget.draw(RetryCost::Plain, Instant(9_999)));
        assert!(budget.draw(RetryCost::Plain, Instant(10_000)));
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_refills_nothing() {
        let mut budget = budget();
        while budget.draw(RetryCost::Plain, Instant(50_000)) {}
        assert!(!budget.draw(RetryCost::Plain, Instant(50_000)));
        assert!(!budget.draw(RetryCost::Plain, Instant(1)));
        assert!(budget.draw(RetryCost::Plain, Instant(10_001)), "a window of the new clock has passed");
    }

    #[test]
    fn a_provider_cannot_spend_what_belongs_to_another_but_all_share_the_global_budget() {
        let mut budgets = RetryBudgets::new(Some(RetryBudgetConfig::default()), 8);
        for _ in 0..100 {
            budgets.on_first_attempt("busy", Instant(0)); // 20 of its own and the floor of 10; 40 for all
        }
        assert_eq!((0..50).filter(|_| budgets.may_retry("busy", RetryCost::Plain, Instant(0))).count(), 30);
        assert_eq!((0..50).filter(|_| budgets.may_retry("quiet", RetryCost::Plain, Instant(0))).count(), 10);
        assert!(!budgets.may_retry("third", RetryCost::Plain, Instant(0)), "the global budget is spent");
    }

    #[test]
    fn invented_provider_names_do_not_grow_the_table() {
        let mut budgets = RetryBudgets::new(Some(RetryBudgetConfig::default()), 4);
        for n in 0..10_000 {
            budgets.on_first_attempt(&n.to_string(), Instant(n));
        }
        assert!(budgets.providers.len() <= 4);
    }

    #[test]
    fn without_a_budget_every_retry_is_allowed() {
        let mut budgets = RetryBudgets::new(None, 1);
        assert!((0..10_000).all(|_| budgets.may_retry("p", RetryCost::Ambiguous, Instant(0))));
    }
}
