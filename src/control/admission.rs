//! Who may go: the first half of [`Control`].
//!
//! An ask passes the breakers (shut means no, at once), then its tenant's limits, then the buckets of its target; what
//! does not pass the last two waits there, unless its deadline comes first. A waiter asks again by its own timer; when
//! a place is free, it is kept for the first in line, whose call comes out of [`Control::take_woken`].

use super::Control;
use super::breaker::Gate;
use super::lease::Lease;
use super::names::{Entered, Slot};
use super::notice::NoticeKind;
use super::queue::{AVOIDED, Stage, Waiter, poll_interval};
use super::target::{Blocked, pick_key};
use super::terms::{Admission, Ask, BucketId, CallId, Permit, PermitId, Priority, Reason};
use super::vendor::Cost;
use crate::class::ErrorClass;
use crate::time::{Instant, Millis};

/// How long after its promised time a waiter that does not ask again counts as gone.
const GRACE: Millis = Millis(30_000);
/// A turn that comes so much earlier than was said is not worth a call.
const SLACK: Millis = Millis(10);
/// Waiters of a tenant that are looked at when its first cannot go for a reason that others do not share.
const LOOK_AHEAD: usize = 8;

impl Control {
    /// Asks for a permit to make one attempt.
    ///
    /// Ask again at [`Admission::Wait`]'s `until`, or when the call comes out of [`Self::take_woken`]: the place in the
    /// queue is kept. [`Self::leave`] gives it up.
    pub fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        self.sweep(now);
        let entered = self.enter_target(ask.provider, ask.model, ask.account, now);
        let Some(slot) = entered.map(Entered::slot) else {
            if self.latest(ask, now) < now {
                return refused(ErrorClass::Timeout, Reason::NotEnoughTimeBudget, None);
            }
            let (id, bucket, lease_until) = (PermitId(0), BucketId(0), ask.deadline);
            return Admission::Granted(Permit { id, bucket, key: None, probe: false, lease_until });
        };
        if let Some(index) = self.waiters.find(ask.call) {
            if self.waiters.get(index).is_some_and(|waiter| waiter.target == slot) {
                return self.ask_again(index, ask, now);
            }
            self.drop_waiter(index, now); // it wants something else now
        }
        let latest = self.latest(ask, now);
        if latest < now {
            return refused(ErrorClass::Timeout, Reason::NotEnoughTimeBudget, None);
        }
        if let Some(target) = self.target_of(slot) {
            target.on_ask(ask.priority, now);
        }
        let gate = self.gate(slot, now);
        if let Gate::Shut { class, retry_after } = gate {
            return refused(class, Reason::BreakerOpen, Some(retry_after));
        }
        let tenant = self.tenants.enter(ask.tenant, now);
        self.named_tenants |= !ask.tenant.is_empty();
        let cost = Cost { requests: 1, input: ask.input_tokens, output: ask.output_tokens };
        let mut avoid = [BucketId(0); AVOIDED];
        for (place, id) in avoid.iter_mut().zip(ask.avoid) {
            *place = *id;
        }
        let waiter = Waiter {
            call: ask.call,
            tenant,
            target: slot,
            cost,
            priority: ask.priority,
            deadline: ask.deadline,
            latest,
            avoid,
            stage: Stage::Queue,
            key: (0, self.asked),
            asks_at: now,
            gone_at: ask.deadline,
        };
        self.asked = self.asked.saturating_add(1);
        if let Some((reason, at)) = self.tenant_blocked(&waiter, now) {
            return self.wait(Waiter { stage: Stage::Tenant, ..waiter }, ErrorClass::RateLimited, reason, at, now);
        }
        let blocked = self.pump(slot, now);
        let alone = self.target_of(slot).is_some_and(|target| target.queue.is_empty());
        let blocked = if alone {
            match self.grant(&waiter, now) {
                Ok(permit) => {
                    if let Some(tenant) = self.tenants.get(tenant) {
                        tenant.enter(slot, cost);
                    }
                    return Admission::Granted(permit);
                }
                Err(blocked) => blocked,
            }
        } else {
            let at = self.estimate(&waiter, now);
            let queued = Blocked { reason: Reason::Queued, class: ErrorClass::RateLimited, at };
            let shared = blocked.filter(|blocked| !waiter.is_told_at_once(blocked.reason));
            shared.map_or(queued, |blocked| Blocked { at: blocked.at.max(at), ..blocked })
        };
        let answer = self.wait(waiter, blocked.class, blocked.reason, blocked.at, now);
        if !alone {
            self.pump(slot, now); // it may be ahead of those who waited before it
        }
        self.offered(ask.call, ask.deadline, now).unwrap_or(answer)
    }

    /// Gives up the place of a call that waits, and a permit that was kept for it.
    pub fn leave(&mut self, call: CallId, now: Instant) {
        if let Some(index) = self.waiters.find(call) {
            self.drop_waiter(index, now);
        }
    }

    /// A call that waits and should ask again now.
    #[must_use = "a call that is taken and not woken loses its turn"]
    pub fn take_woken(&mut self) -> Option<CallId> {
        loop {
            let call = CallId(self.woken.pop_front()?);
            if self.waiters.find(call).is_some() {
                return Some(call); // others have come by themselves, or are gone
            }
        }
    }

    /// Lets come back what has come to its end: leases, offers, and waiters that were not heard of. Every ask does so;
    /// call it from a timer if there may be none.
    pub fn sweep(&mut self, now: Instant) {
        while let Some(lease) = self.leases.expire(now) {
            self.release_probe(&lease, now);
            if let Some(index) = lease.offered.and_then(|call| self.waiters.find(call)) {
                self.waiters.remove(index);
                self.count_wait(lease.tenant, false);
                self.give_back(&lease, None, now);
            } else {
                let estimate = lease.cost.input.saturating_add(lease.cost.output);
                self.give_back(&lease, Some(estimate), now);
            }
        }
        while let Some((target, bucket)) = self.leases.lost(now) {
            let target = self.targets.list.get(target.index as usize);
            let bucket = target.and_then(|target| target.buckets.get(bucket));
            let subject = bucket.map_or("", |bucket| &bucket.name);
            self.notices.tell(NoticeKind::PermitLost, now, subject, None, None);
        }
        while let Some(index) = self.waiters.gone(now) {
            self.drop_waiter(index, now);
        }
    }

    /// When [`Self::sweep`] will next have something to do; `None`: not before the next ask.
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        let ends = [self.leases.next_end(), self.waiters.next_end()];
        ends.into_iter().flatten().min()
    }

    fn latest(&self, ask: &Ask<'_>, now: Instant) -> Instant {
        let latest = ask.deadline.minus(ask.min_attempt);
        if ask.deadline < now.plus(ask.min_attempt) {
            return Instant(0);
        }
        self.config.max_queue_wait.map_or(latest, |most| latest.min(now.plus(most)))
    }

    fn ask_again(&mut self, index: u32, ask: &Ask<'_>, now: Instant) -> Admission {
        let Some(waiter) = self.waiters.get(index).copied() else {
            return refused(ErrorClass::Unknown, Reason::QueueTimeout, None);
        };
        if let Some(permit) = self.offered(waiter.call, ask.deadline, now) {
            return permit;
        }
        if let Gate::Shut { class, retry_after } = self.gate(waiter.target, now) {
            self.drop_waiter(index, now);
            return refused(class, Reason::BreakerOpen, Some(retry_after));
        }
        self.pump_tenant(waiter.tenant, now);
        let blocked = self.pump(waiter.target, now);
        if let Some(permit) = self.offered(waiter.call, ask.deadline, now) {
            return permit;
        }
        let Some(waiter) = self.waiters.get(index).copied() else {
            return refused(ErrorClass::Timeout, Reason::QueueTimeout, None);
        };
        if let Some(refusal) = self.refusal(&waiter, now) {
            self.drop_waiter(index, now);
            return refusal;
        }
        let (class, reason, at) = match waiter.stage {
            Stage::Tenant => match self.tenant_blocked_alone(&waiter, now) {
                Some((reason, at)) => (ErrorClass::RateLimited, reason, at),
                None => (ErrorClass::RateLimited, Reason::Queued, None),
            },
            // What the first in line waits for; a refusal that it waits out, and others do not, is none of theirs.
            _ => blocked
                .filter(|blocked| !waiter.is_told_at_once(blocked.reason))
                .map_or((ErrorClass::RateLimited, Reason::Queued, None), |b| (b.class, b.reason, b.at)),
        };
        if waiter.latest <= now {
            self.drop_waiter(index, now);
            let timed_out = ask.deadline.minus(ask.min_attempt) > now;
            let reason = if timed_out { Reason::QueueTimeout } else { reason };
            return refused(class, reason, at.map(|at| now.until(at)));
        }
        if let Some(at) = at.filter(|at| *at > waiter.latest) {
            self.drop_waiter(index, now);
            return refused(class, reason, retry_after(at, now));
        }
        let first = self.is_first(index, &waiter);
        let until = self.until(&waiter, if first { at } else { None }, now);
        self.waiters.told(index, until);
        self.waiters.expect(index, until.plus(GRACE).min(waiter.deadline));
        Admission::Wait { until, reason: if first { reason } else { Reason::Queued } }
    }

    /// Queues a call, or refuses it if its turn cannot come in time.
    fn wait(
        &mut self,
        mut waiter: Waiter,
        class: ErrorClass,
        reason: Reason,
        at: Option<Instant>,
        now: Instant,
    ) -> Admission {
        if let Some(target) = self.targets.list.get(waiter.target.index as usize) {
            waiter.latest = waiter.latest.min(waiter.deadline.minus(target.needs()));
        }
        if let Some(refusal) = self.refusal(&waiter, now) {
            return refusal;
        }
        if waiter.latest <= now || at.is_some_and(|at| at > waiter.latest) {
            return refused(class, reason, at.and_then(|at| retry_after(at, now)));
        }
        let most = self.config.max_queued;
        // A named tenant has half of the queue at most, so that there is room for the others.
        let own = self.tenants.get(waiter.tenant).map_or(0, |tenant| tenant.waits);
        let too_many = self.named_tenants && own > 0 && own >= most.div_ceil(2);
        if self.waiters.len() >= most || too_many {
            return refused(class, Reason::QueueFull, at.and_then(|at| retry_after(at, now)));
        }
        let until = self.until(&waiter, at, now);
        waiter.asks_at = until;
        waiter.gone_at = until.plus(GRACE).min(waiter.deadline);
        let index = self.waiters.insert(waiter);
        self.count_wait(waiter.tenant, true);
        match waiter.stage {
            Stage::Tenant => {
                if let Some(line) = self.tenants.line(waiter.tenant, waiter.priority) {
                    line.insert(waiter.key, index);
                }
            }
            _ => self.enter_queue(index),
        }
        Admission::Wait { until, reason }
    }

    /// Whether a waiter's own way is barred by a preflight that was refused, wherever it stands in line.
    fn refusal(&mut self, waiter: &Waiter, now: Instant) -> Option<Admission> {
        let concurrency = self.config.concurrency.as_ref();
        let target = self.targets.list.get_mut(waiter.target.index as usize)?;
        let nearest = target.nearest(concurrency, &self.keys, waiter, now)?;
        let Blocked { reason, class, at } = nearest;
        waiter.is_told_at_once(reason).then(|| refused(class, reason, at.and_then(|at| retry_after(at, now))))
    }

    fn count_wait(&mut self, tenant: Slot, begins: bool) {
        if let Some(tenant) = self.tenants.get(tenant) {
            tenant.waits = if begins { tenant.waits.saturating_add(1) } else { tenant.waits.saturating_sub(1) };
        }
    }

    fn until(&self, waiter: &Waiter, at: Option<Instant>, now: Instant) -> Instant {
        let poll = now.plus(poll_interval(self.waiters.len()));
        at.unwrap_or(poll).min(waiter.latest).max(now.plus(Millis(1))).min(waiter.deadline)
    }

    fn is_first(&mut self, index: u32, waiter: &Waiter) -> bool {
        match waiter.stage {
            Stage::Tenant => self
                .tenants
                .line(waiter.tenant, waiter.priority)
                .is_some_and(|line| line.first().is_some_and(|(_, first)| first == index)),
            _ => self.target_of(waiter.target).is_some_and(|target| target.queue.first() == Some(index)),
        }
    }

    /// When a call that comes now may have its turn, by what waits and what is known; `None`: nothing is known, or its
    /// tenant has nothing else in the queue, so that it is among the next.
    fn estimate(&mut self, waiter: &Waiter, now: Instant) -> Option<Instant> {
        let config = self.config.concurrency;
        let target = self.targets.list.get_mut(waiter.target.index as usize)?;
        let clock = target.queue.clock(waiter.priority);
        if !self.tenants.get(waiter.tenant)?.is_behind(waiter.target, waiter.priority, clock) {
            return None;
        }
        let capacity = config.and_then(|config| target.capacity(&config)).map(u64::from);
        let (ahead, cost) = target.queue.ahead(waiter.priority);
        let by_turns = capacity.map(|capacity| {
            let turns = (ahead as u64).checked_div(capacity.max(1)).unwrap_or(0);
            now.plus(target.held.times(turns))
        });
        let alone = target.buckets.len() == 1;
        let mut bucket = target.buckets.first_mut().filter(|_| alone);
        let cost = cost.plus(waiter.cost);
        let by_headroom = bucket.as_mut().and_then(|bucket| bucket.vendor.when(cost, bucket.reserved, 0, now));
        let by_pace = bucket.map(|bucket| now.plus(bucket.pace.takes(cost.requests)));
        by_turns.max(by_headroom).max(by_pace).filter(|at| *at > now)
    }

    fn tenant_blocked(&mut self, waiter: &Waiter, now: Instant) -> Option<(Reason, Option<Instant>)> {
        // Within a tenant and a priority it is first come, first served.
        let others = self.tenants.line(waiter.tenant, waiter.priority).is_some_and(|line| !line.is_empty());
        let alone = self.tenant_blocked_alone(waiter, now);
        if others { alone.or(Some((Reason::Queued, None))) } else { alone }
    }

    fn tenant_blocked_alone(&mut self, waiter: &Waiter, now: Instant) -> Option<(Reason, Option<Instant>)> {
        let config = self.config.concurrency;
        let capacity = config.and_then(|config| self.target_of(waiter.target)?.capacity(&config));
        self.tenants.get(waiter.tenant)?.blocked(waiter.target, capacity, waiter.cost, now)
    }

    /// Moves a waiter that passed its tenant's limits into its target's queue.
    fn enter_queue(&mut self, index: u32) {
        let Some(waiter) = self.waiters.get_mut(index) else { return };
        waiter.stage = Stage::Queue;
        let Some(target) = self.targets.list.get_mut(waiter.target.index as usize) else { return };
        let Some(tenant) = self.tenants.get(waiter.tenant) else { return };
        tenant.enter(waiter.target, waiter.cost);
        let start = tenant.tag(waiter.target, waiter.priority, waiter.cost, target.queue.clock(waiter.priority));
        waiter.key = (start, waiter.key.1);
        target.queue.insert(waiter.priority, waiter.key, index, waiter.cost);
    }

    /// Lets through what waits for a tenant's own limits and may go now.
    pub(crate) fn pump_tenant(&mut self, tenant: Slot, now: Instant) {
        for priority in [Priority::Interactive, Priority::Batch] {
            loop {
                let Some(line) = self.tenants.line(tenant, priority) else { return };
                let mut heads = [0_u32; LOOK_AHEAD];
                let mut count: usize = 0;
                for (place, index) in heads.iter_mut().zip(line.numbers()) {
                    *place = index;
                    count = count.saturating_add(1);
                }
                let free = heads.iter().take(count).copied().find_map(|index| {
                    let waiter = self.waiters.get(index).copied()?;
                    self.tenant_blocked_alone(&waiter, now).is_none().then_some((index, waiter))
                });
                let Some((index, waiter)) = free else { break };
                if let Some(line) = self.tenants.line(tenant, priority) {
                    line.remove(waiter.key);
                }
                self.enter_queue(index);
                self.pump(waiter.target, now);
            }
        }
    }

    /// Offers places to those first in line, until there is none; says what the next one waits for.
    pub(crate) fn pump(&mut self, slot: Slot, now: Instant) -> Option<Blocked> {
        let blocked = self.offer_all(slot, now)?;
        if let Some(at) = blocked.at {
            self.remind(slot, at);
        }
        Some(blocked)
    }

    /// Calls who has become the first in line and does not know yet when its time comes.
    fn remind(&mut self, slot: Slot, at: Instant) {
        let Some(index) = self.target_of(slot).and_then(|target| target.queue.first()) else { return };
        let Some(waiter) = self.waiters.get_mut(index).filter(|waiter| waiter.asks_at > at.plus(SLACK)) else { return };
        waiter.asks_at = at;
        self.woken.push_back(waiter.call.0);
    }

    fn offer_all(&mut self, slot: Slot, now: Instant) -> Option<Blocked> {
        loop {
            let index = self.target_of(slot)?.queue.first()?;
            let waiter = self.waiters.get(index).copied()?;
            let gate = self.gate(slot, now);
            if let Gate::Shut { class, retry_after } = gate {
                return Some(Blocked { reason: Reason::BreakerOpen, class, at: Some(now.plus(retry_after)) });
            }
            if let Err(blocked) = self.offer(index, &waiter, now) {
                // Batch work whose turn it is must not hold up what may use the margin that it leaves.
                let other = self.target_of(slot)?.queue.first_of(Priority::Interactive);
                if waiter.priority == Priority::Interactive {
                    return Some(blocked);
                }
                let Some(other) = other else { return Some(blocked) };
                let Some(waiter) = self.waiters.get(other).copied() else { return Some(blocked) };
                if let Err(blocked) = self.offer(other, &waiter, now) {
                    return Some(blocked);
                }
            }
        }
    }

    /// Keeps a place for a waiter, and calls it.
    fn offer(&mut self, index: u32, waiter: &Waiter, now: Instant) -> Result<(), Blocked> {
        if waiter.deadline <= now {
            // The sweep is about to find it; a place given to it would be lost.
            return Err(Blocked { reason: Reason::Queued, class: ErrorClass::RateLimited, at: None });
        }
        let until = now.plus(self.config.offer).min(waiter.deadline);
        let permit = self.grant_as(waiter, until, Some(waiter.call), now)?;
        if let Some(target) = self.target_of(waiter.target) {
            target.queue.remove(waiter.priority, waiter.key, waiter.cost);
            target.queue.on_turn(waiter.priority, waiter.key);
        }
        if let Some(waiter) = self.waiters.get_mut(index) {
            waiter.stage = Stage::Offered(permit.id);
        }
        // The offer has an end of its own; the waiter goes with it.
        self.waiters.expect(index, until.plus(GRACE));
        self.woken.push_back(waiter.call.0);
        Ok(())
    }

    /// Hands over the permit that was kept for a call.
    fn offered(&mut self, call: CallId, deadline: Instant, now: Instant) -> Option<Admission> {
        let index = self.waiters.find(call)?;
        let Stage::Offered(id) = self.waiters.get(index)?.stage else { return None };
        if !self.is_still_open(id, now) {
            let (lease, _) = self.leases.settle(id)?;
            self.release_probe(&lease, now);
            self.enter_queue(index);
            self.give_back(&lease, None, now);
            return None;
        }
        self.waiters.remove(index);
        let lease = self.leases.accept(id, deadline)?;
        self.count_wait(lease.tenant, false);
        self.extend_probe(&lease);
        let bucket = self.target_of(lease.target)?.buckets.get(lease.bucket)?.id;
        let Lease { key, probe, .. } = lease;
        Some(Admission::Granted(Permit { id, bucket, key, probe, lease_until: deadline }))
    }

    /// Whether the bucket and the key of an offer are still what they were when it was made.
    fn is_still_open(&mut self, id: PermitId, now: Instant) -> bool {
        let Some(lease) = self.leases.get(id).copied() else { return false };
        let key = lease.key.and_then(|key| self.keys.get(key.0 as usize));
        let enabled = key.is_none_or(|key| key.disabled.is_none());
        let bucket = self.target_of(lease.target).and_then(|target| target.buckets.get_mut(lease.bucket));
        enabled && bucket.is_some_and(|bucket| bucket.cooling(now) == Millis::ZERO && !bucket.preflight.is_refused(now))
    }

    fn grant(&mut self, waiter: &Waiter, now: Instant) -> Result<Permit, Blocked> {
        self.grant_as(waiter, waiter.deadline, None, now)
    }

    /// Gives a permit whose lease ends at `until`: for a call at hand its deadline, for an `offered` one the offer's end.
    fn grant_as(
        &mut self,
        waiter: &Waiter,
        until: Instant,
        offered: Option<CallId>,
        now: Instant,
    ) -> Result<Permit, Blocked> {
        let number = self.leases.next_number();
        let nowhere = Blocked { reason: Reason::Queued, class: ErrorClass::Unknown, at: None };
        let target = self.targets.list.get_mut(waiter.target.index as usize).ok_or(nowhere)?;
        let concurrency = self.config.concurrency.as_ref();
        let (picked, too_slow) = target.pick(concurrency, &self.keys, waiter, now)?;
        let bucket = target.buckets.get_mut(picked).ok_or(nowhere)?;
        bucket.concurrency.on_sent();
        bucket.reserved = bucket.reserved.plus(waiter.cost);
        bucket.pace.on_sent();
        bucket.preflight.on_sent(number, until, now);
        bucket.speed.on_sent(now);
        let (id, pool) = (bucket.id, bucket.pool);
        let key = pool.and_then(|pool| pick_key(&mut self.keys, pool, number));
        let probe = self.take_probe(waiter.target, number, until, now);
        let permit = self.leases.give(Lease {
            number,
            target: waiter.target,
            bucket: picked,
            tenant: waiter.tenant,
            key,
            cost: waiter.cost,
            granted_at: now,
            until,
            probe,
            too_slow,
            again: waiter.avoid.iter().any(|bucket| *bucket != BucketId(0)),
            offered,
        });
        Ok(Permit { id: permit, bucket: id, key, probe, lease_until: until })
    }

    /// Takes a waiter out, wherever it stands, and gives back what it held.
    fn drop_waiter(&mut self, index: u32, now: Instant) {
        let Some(waiter) = self.waiters.remove(index) else { return };
        self.count_wait(waiter.tenant, false);
        match waiter.stage {
            Stage::Tenant => {
                if let Some(line) = self.tenants.line(waiter.tenant, waiter.priority) {
                    line.remove(waiter.key);
                }
            }
            Stage::Queue => {
                if let Some(target) = self.target_of(waiter.target) {
                    target.queue.remove(waiter.priority, waiter.key, waiter.cost);
                }
                if let Some(tenant) = self.tenants.get(waiter.tenant) {
                    tenant.exit(waiter.target, waiter.cost, None);
                }
                self.pump_tenant(waiter.tenant, now);
                self.pump(waiter.target, now);
            }
            Stage::Offered(id) => {
                if let Some((lease, true)) = self.leases.settle(id) {
                    self.release_probe(&lease, now);
                    self.give_back(&lease, None, now);
                }
            }
        }
    }
}

fn retry_after(at: Instant, now: Instant) -> Option<Millis> {
    (at != Instant::NEVER).then(|| now.until(at))
}

fn refused(class: ErrorClass, reason: Reason, retry_after: Option<Millis>) -> Admission {
    Admission::Refused { class, reason, retry_after }
}
