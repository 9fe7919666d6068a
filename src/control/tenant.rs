//! Tenants: what each may have in flight and use in a minute, so that a flood waits behind its own limit.
//!
//! Rates are token buckets that hold a minute's worth. Tokens are reserved by estimate before anything is sent and
//! settled by what was used; an estimate that was too low leaves a debt. Tenants that do not fit into the table share
//! one entry, with the default limits between them: inventing names gains nothing.

use super::config::TenantLimits;
use super::names::{Entered, Names, Slot};
use super::terms::{Priority, Reason};
use super::vendor::Cost;
use crate::order::Order;
use crate::prelude::*;
use crate::time::{Instant, Millis};

/// A token bucket of a minute's worth; levels are in 60,000ths, so that refilling is exact.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_minute: u64,
    level: i64,
    at: Instant,
}

const SCALE: i64 = 60_000;

impl Rate {
    fn new(per_minute: u64, now: Instant) -> Self {
        Self { per_minute, level: scaled(per_minute), at: now }
    }

    fn refill(&mut self, now: Instant) {
        let gained =
            i64::try_from(now.since(self.at).0.min(60_000).saturating_mul(self.per_minute)).unwrap_or(i64::MAX);
        self.level = self.level.saturating_add(gained).min(scaled(self.per_minute));
        self.at = now;
    }

    /// When `amount` can be taken; `None`: now. More than a minute's worth goes when the bucket is full.
    fn when(&mut self, amount: u64, now: Instant) -> Option<Instant> {
        self.refill(now);
        let missing = scaled(amount.min(self.per_minute)).saturating_sub(self.level);
        let missing = u64::try_from(missing).ok().filter(|missing| *missing > 0)?;
        Some(now.plus(Millis(missing.div_ceil(self.per_minute.max(1)))))
    }

    fn take(&mut self, amount: u64) {
        self.level = self.level.saturating_sub(scaled(amount));
    }

    fn give_back(&mut self, amount: u64) {
        self.level = self.level.saturating_add(scaled(amount)).min(scaled(self.per_minute));
    }
}

fn scaled(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX).saturating_mul(SCALE)
}

/// What a tenant has at one target.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    target: u32,
    active: u32,
    /// Where its next call stands in the queue's virtual time.
    tags: [u64; 2],
}

#[derive(Debug)]
pub(crate) struct Tenant {
    limits: TenantLimits,
    active: u32,
    requests: Option<Rate>,
    tokens: Option<Rate>,
    lanes: Vec<Lane>,
    /// Its calls that wait, wherever.
    pub(crate) waits: usize,
    /// Calls that wait for this tenant's own limits, by age, for each priority.
    pub(crate) waiting: [Order; 2],
}

impl Tenant {
    fn new(limits: TenantLimits, now: Instant) -> Self {
        Self {
            limits,
            active: 0,
            requests: limits.requests_per_minute.map(|rate| Rate::new(rate, now)),
            tokens: limits.tokens_per_minute.map(|rate| Rate::new(rate, now)),
            lanes: Vec::new(),
            waits: 0,
            waiting: [Order::default(), Order::default()],
        }
    }

    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// Why a call cannot go yet, and when it can if only time is in the way. `capacity` is the target's concurrency
    /// limit, if it has one.
    pub(crate) fn blocked(
        &mut self,
        target: Slot,
        capacity: Option<u32>,
        cost: Cost,
        now: Instant,
    ) -> Option<(Reason, Option<Instant>)> {
        if self.limits.concurrency.is_some_and(|most| self.active >= most) {
            return Some((Reason::TenantConcurrency, None));
        }
        if let (Some(share), Some(capacity)) = (self.limits.share_per_mille, capacity) {
            let most = (u64::from(capacity).saturating_mul(u64::from(share)) / 1_000).max(1);
            let active = self.lanes.iter().find(|lane| lane.target == target.index).map_or(0, |lane| lane.active);
            if u64::from(active) >= most {
                return Some((Reason::TenantShare, None));
            }
        }
        if let Some(at) = self.requests.as_mut().and_then(|rate| rate.when(1, now)) {
            return Some((Reason::TenantRequests, Some(at)));
        }
        let tokens = cost.input.saturating_add(cost.output);
        let at = self.tokens.as_mut().and_then(|rate| rate.when(tokens, now))?;
        Some((Reason::TenantTokens, Some(at)))
    }

    /// Lets a call through to its target: it counts from now on.
    pub(crate) fn enter(&mut self, target: Slot, cost: Cost) {
        self.active = self.active.saturating_add(1);
        if let Some(rate) = &mut self.requests {
            rate.take(1);
        }
        if let Some(rate) = &mut self.tokens {
            rate.take(cost.input.saturating_add(cost.output));
        }
        if let Some(lane) = self.lane(target) {
            lane.active = lane.active.saturating_add(1);
        }
    }

    /// A call that was let through is over. `used`: what it used of its estimate; `None`: it was never sent.
    pub(crate) fn exit(&mut self, target: Slot, cost: Cost, used: Option<u64>) {
        self.active = self.active.saturating_sub(1);
        let estimate = cost.input.saturating_add(cost.output);
        let used_tokens = used.unwrap_or(0);
        if let Some(rate) = &mut self.tokens {
            rate.give_back(estimate.saturating_sub(used_tokens));
            rate.take(used_tokens.saturating_sub(estimate));
        }
        if let (Some(rate), None) = (&mut self.requests, used) {
            rate.give_back(1);
        }
        if let Some(lane) = self.lane(target) {
            lane.active = lane.active.saturating_sub(1);
        }
    }

    /// The place of its next call in a queue whose virtual time is `clock`: start-time fair queueing by tokens.
    pub(crate) fn tag(&mut self, target: Slot, priority: Priority, cost: Cost, clock: u64) -> u64 {
        let weight = u64::from(self.limits.weight.max(1));
        let work = cost.input.saturating_add(cost.output).max(100).saturating_mul(1_000);
        let work = work.checked_div(weight).unwrap_or(work);
        let Some(tag) = self.lane(target).and_then(|lane| lane.tags.get_mut(priority as usize)) else { return clock };
        let start = (*tag).max(clock);
        *tag = start.saturating_add(work);
        start
    }

    /// Whether its calls take turns already, so that a new one has some of its own before it.
    pub(crate) fn is_behind(&mut self, target: Slot, priority: Priority, clock: u64) -> bool {
        let tag = self.lane(target).and_then(|lane| lane.tags.get(priority as usize));
        tag.is_some_and(|tag| *tag > clock)
    }

    /// Its lane at a target, made if need be: there are few, and those without a call are forgotten.
    fn lane(&mut self, target: Slot) -> Option<&mut Lane> {
        let place = self.lanes.iter().position(|lane| lane.target == target.index);
        if place.is_none() {
            if self.lanes.len() >= 16 {
                self.lanes.retain(|lane| lane.active > 0);
            }
            self.lanes.push(Lane { target: target.index, ..Lane::default() });
        }
        let last = self.lanes.len().saturating_sub(1);
        self.lanes.get_mut(place.unwrap_or(last))
    }

    fn is_idle(&self) -> bool {
        self.active == 0 && self.waits == 0
    }
}

/// All tenants that are known. Slot 0 is the one that those share who do not fit.
#[derive(Debug)]
pub(crate) struct Tenants {
    default: TenantLimits,
    named: Vec<(String, TenantLimits)>,
    names: Names,
    list: Vec<Tenant>,
}

impl Tenants {
    pub(crate) fn new(default: TenantLimits, named: &[(String, TenantLimits)], cap: usize) -> Self {
        let mut table = Names::new(cap.saturating_add(1));
        table.enter("", Instant(0), &|_| false);
        Self { default, named: named.to_vec(), names: table, list: vec![Tenant::new(default, Instant(0))] }
    }

    /// The tenant of a name. A new one makes an idle one forgotten that was not seen for a minute, so that its rates
    /// are full again; without such a one it shares slot 0.
    pub(crate) fn enter(&mut self, name: &str, now: Instant) -> Slot {
        let list = &self.list;
        let names = &self.names;
        let idle = |index: usize| {
            index != 0 && now.since(names.used(index)) >= Millis(60_000) && list.get(index).is_none_or(Tenant::is_idle)
        };
        let full = self.names.len() >= self.names.cap() && self.names.find(name).is_none();
        let victim = if full { self.names.oldest(&idle) } else { None };
        if full && victim.is_none() {
            return Slot::default();
        }
        let entered = self.names.enter(name, now, &|index| victim == Some(index));
        let Some(entered) = entered else { return Slot::default() };
        if let Entered::Fresh(slot) = entered {
            let own = self.named.iter().find(|(own, _)| own == name);
            let limits = own.map_or(self.default, |(_, limits)| *limits);
            let fresh = Tenant::new(limits, now);
            match self.list.get_mut(slot.index as usize) {
                Some(tenant) => *tenant = fresh,
                None => self.list.push(fresh),
            }
        }
        entered.slot()
    }

    pub(crate) fn get(&mut self, slot: Slot) -> Option<&mut Tenant> {
        self.list.get_mut(slot.index as usize)
    }

    /// The calls of a tenant that wait for its own limits.
    pub(crate) fn line(&mut self, slot: Slot, priority: Priority) -> Option<&mut Order> {
        self.get(slot)?.waiting.get_mut(priority as usize)
    }

    /// Tenants by name, for what is shown.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&str, &Tenant)> {
        self.names.in_order().filter_map(|(name, index)| Some((name, self.list.get(index)?)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    const TARGET: Slot = Slot { index: 0, generation: 0 };

    fn limited(limits: TenantLimits) -> Tenant {
        Tenant::new(limits, Instant(0))
    }

    fn tokens(input: u64) -> Cost {
        Cost { requests: 1, input, output: 0 }
    }

    #[test]
    fn h3_five_calls_at_once_cannot_use_more_tokens_than_the_limit() {
        let mut tenant = limited(TenantLimits { tokens_per_minute: Some(100), ..TenantLimits::default() });
        let mut through = 0;
        for _ in 0..5 {
            if tenant.blocked(TARGET, None, tokens(40), Instant(0)).is_none() {
                tenant.enter(TARGET, tokens(40));
                through += 1;
            }
        }
        assert_eq!(through, 2);
        let (reason, at) = tenant.blocked(TARGET, None, tokens(40), Instant(0)).unwrap();
        assert_eq!((reason, at), (Reason::TenantTokens, Some(Instant(12_000))), "20 tokens at 100 a minute");
    }

    #[test]
    fn an_estimate_that_was_too_low_leaves_a_debt_and_one_too_high_is_given_back() {
        let mut tenant = limited(TenantLimits { tokens_per_minute: Some(100), ..TenantLimits::default() });
        tenant.enter(TARGET, tokens(10));
        tenant.exit(TARGET, tokens(10), Some(130));
        assert_eq!(tenant.blocked(TARGET, None, tokens(10), Instant(0)).unwrap().1, Some(Instant(24_000)));
        let mut tenant = limited(TenantLimits { tokens_per_minute: Some(100), ..TenantLimits::default() });
        tenant.enter(TARGET, tokens(100));
        tenant.exit(TARGET, tokens(100), Some(20));
        assert_eq!(tenant.blocked(TARGET, None, tokens(80), Instant(0)), None);
    }

    #[test]
    fn a_call_that_was_never_sent_costs_nothing() {
        let limits = TenantLimits { requests_per_minute: Some(1), concurrency: Some(1), ..TenantLimits::default() };
        let mut tenant = limited(limits);
        tenant.enter(TARGET, tokens(1));
        assert_eq!(tenant.blocked(TARGET, None, tokens(1), Instant(0)), Some((Reason::TenantConcurrency, None)));
        tenant.exit(TARGET, tokens(1), None);
        assert_eq!(tenant.blocked(TARGET, None, tokens(1), Instant(0)), None);
    }

    #[test]
    fn an_attacker_who_invents_names_shares_one_entry_and_forgets_nobody_recent() {
        let mut tenants = Tenants::new(TenantLimits::default(), &[], 100);
        let honest = tenants.enter("honest", Instant(0));
        for n in 0..100_000 {
            tenants.enter(&n.to_string(), Instant(n / 10));
        }
        assert!(tenants.list.len() <= 101);
        assert_eq!(tenants.enter("honest", Instant(10_000)), honest);
        assert_eq!(tenants.enter("one more", Instant(10_000)).index, 0);
    }
}
