//! What an attempt's end teaches: the second half of [`Control`].

use super::breaker::{Change, Signal};
use super::lease::Lease;
use super::names::Slot;
use super::notice::{Notice, NoticeKind};
use super::preflight::{LASTING, PASSING, Said};
use super::terms::{Outcome, PermitId, VendorLimit};
use super::vendor::Cost;
use super::{Control, Target};
use crate::class::{ErrorClass, Scope};
use crate::time::{Instant, Millis};

impl Control {
    /// Returns a permit and takes in how its attempt ended. A second call for the same permit does nothing; one after
    /// the lease's end returns nothing but still teaches.
    pub fn settle(&mut self, permit: PermitId, outcome: &Outcome<'_>, now: Instant) {
        // Before the sweep: an attempt that ends with its deadline gives its permit back, it has not lost it.
        let settled = self.leases.settle(permit);
        self.sweep(now);
        let Some((lease, held)) = settled else { return };
        self.learn(&lease, outcome, now);
        if held {
            // A cancelled attempt has used what was estimated, for all that anybody knows.
            let estimate = lease.cost.input.saturating_add(lease.cost.output);
            self.give_back(&lease, Some(outcome.used_tokens.unwrap_or(estimate)), now);
        }
    }

    /// Takes in the head of an answer before its body has ended: the vendor's limits, and that the upstream is there.
    pub fn on_head(&mut self, permit: PermitId, limits: &[VendorLimit], healthy: bool, now: Instant) {
        let Some(lease) = self.leases.get(permit).copied() else { return };
        if let Some(bucket) = self.target_of(lease.target).and_then(|target| target.buckets.get_mut(lease.bucket)) {
            bucket.vendor.read(lease.number, limits, now);
        }
        if healthy && lease.probe {
            self.signal(&lease, Signal::Answered, Signal::Answered, now);
        }
        if healthy && self.on_preflight(&lease, Said::Well, now) {
            self.pump(lease.target, now);
        }
    }

    /// Gives back what a lease held. `used`: tokens; `None`: nothing was sent.
    pub(crate) fn give_back(&mut self, lease: &Lease, used: Option<u64>, now: Instant) {
        if let Some(target) = self.target_of(lease.target) {
            if let Some(bucket) = target.buckets.get_mut(lease.bucket) {
                bucket.concurrency.on_returned();
                bucket.reserved = bucket.reserved.minus(lease.cost);
            }
            let held = now.since(lease.granted_at).0;
            let smoothed = target.held.0.saturating_mul(7).saturating_add(held) / 8;
            target.held = Millis(if target.held == Millis::ZERO { held } else { smoothed });
        }
        if let Some(tenant) = self.tenants.get(lease.tenant) {
            tenant.exit(lease.target, lease.cost, used);
        }
        self.pump_tenant(lease.tenant, now);
        self.pump(lease.target, now);
    }

    fn learn(&mut self, lease: &Lease, outcome: &Outcome<'_>, now: Instant) {
        if let (Some(class), Some(key)) = (outcome.class, lease.key) {
            let names_key = !matches!(outcome.scope, Some(Scope::Request | Scope::Model));
            let refused = names_key && matches!(class, ErrorClass::AuthError | ErrorClass::PermissionError);
            if refused && self.disable_key(key, class, now) && !self.has_other_key(lease) {
                self.wake_everybody(lease.target, false);
            }
        }
        if !self.targets.names.holds(lease.target) {
            return; // forgotten since
        }
        let several = self.target_of(lease.target).is_some_and(|target| target.buckets.len() > 1);
        let (provider, model) = signals(outcome, lease.probe, several);
        self.signal(lease, provider, model, now);
        self.learn_bucket(lease, outcome, now);
        self.on_preflight(lease, self.said(lease, outcome), now);
    }

    /// What an attempt's end says to those who wait for a preflight.
    fn said(&self, lease: &Lease, outcome: &Outcome<'_>) -> Said {
        let Some(class) = outcome.class else { return Said::Well };
        let of_request = matches!(outcome.scope, None | Some(Scope::Request));
        match class {
            ErrorClass::AuthError | ErrorClass::PermissionError if self.has_other_key(lease) => Said::Nothing,
            ErrorClass::AuthError | ErrorClass::PermissionError | ErrorClass::NotFound if !of_request => {
                Said::Refused(class, LASTING)
            }
            ErrorClass::QuotaExhausted => Said::Refused(class, LASTING),
            _ if class.is_health_failure() => Said::Refused(class, PASSING),
            // A rate limit cools the bucket, and the next call asks once that is over.
            _ => Said::Nothing,
        }
    }

    /// Whether the key of a lease was disabled, and its pool has another that is not.
    fn has_other_key(&self, lease: &Lease) -> bool {
        let Some(own) = lease.key.and_then(|key| self.keys.get(key.0 as usize)) else { return false };
        own.disabled.is_some() && self.keys.iter().any(|key| key.pool == own.pool && key.disabled.is_none())
    }

    /// Tells a bucket's preflight; says whether it has just passed.
    fn on_preflight(&mut self, lease: &Lease, said: Said, now: Instant) -> bool {
        let target = self.targets.list.get_mut(lease.target.index as usize);
        let Some(bucket) = target.and_then(|target| target.buckets.get_mut(lease.bucket)) else { return false };
        let cooling = bucket.cooling(now);
        let said = match said {
            Said::Refused(class, length) => Said::Refused(class, length.max(cooling)),
            other => other,
        };
        let Some(passed) = bucket.preflight.on_end(lease.number, said, now) else { return false };
        let (kind, class, until) = match said {
            Said::Refused(class, length) => (NoticeKind::PreflightFailed, Some(class), Some(now.plus(length))),
            _ => (NoticeKind::PreflightPassed, None, None),
        };
        self.notices.tell(kind, now, &bucket.name, class, until);
        if !passed {
            self.wake_everybody(lease.target, false);
        }
        passed
    }

    fn learn_bucket(&mut self, lease: &Lease, outcome: &Outcome<'_>, now: Instant) {
        let newest = self.leases.counts().given;
        let (base, cap) = (self.config.failure_cooling, self.config.max_failure_cooling);
        let quota = self.config.quota_cooling;
        let concurrency = self.config.concurrency;
        let Some(target) = self.targets.list.get_mut(lease.target.index as usize) else { return };
        if outcome.class.is_none() {
            target.lasted.add(now.since(lease.granted_at).0);
        }
        let Some(bucket) = target.buckets.get_mut(lease.bucket) else { return };
        if outcome.class.is_none() {
            bucket.speed.on_success(outcome.first_token, outcome.latency, outcome.output_tokens, now);
        }
        let read = bucket.vendor.read(lease.number, outcome.limits, now) || bucket.vendor.has_read(lease.number);
        if !read {
            bucket.vendor.spend(match outcome.used_tokens {
                Some(used) => Cost { input: used, output: 0, ..lease.cost },
                None => lease.cost,
            });
        }
        let Some(class) = outcome.class else {
            let (limit, pace) = concurrency.map_or((false, false), |config| {
                (bucket.concurrency.on_success(&config, now), bucket.pace.on_success(config.calm, now))
            });
            let kinds = [
                (bucket.heal(now), NoticeKind::BucketRecovered),
                (limit, NoticeKind::ConcurrencyLifted),
                (pace, NoticeKind::PaceLifted),
            ];
            for (_, kind) in kinds.into_iter().filter(|(happened, _)| *happened) {
                self.notices.tell(kind, now, &bucket.name, None, None);
            }
            return;
        };
        let mut cooled = false;
        match class {
            ErrorClass::RateLimited => bucket.vendor.last_429_at = Some(now),
            ErrorClass::Overloaded => bucket.vendor.last_overload_at = Some(now),
            _ => {}
        }
        let pushed_back = matches!(class, ErrorClass::RateLimited | ErrorClass::Overloaded);
        let unwell = class.is_health_failure() && class != ErrorClass::Overloaded;
        let (mut reduced, mut slowed) = (false, false);
        if let (true, Some(config)) = (pushed_back, &concurrency) {
            reduced = bucket.concurrency.on_rejected(lease.number, newest, config, now);
            if config.adaptive && class == ErrorClass::RateLimited && bucket.vendor.limits().is_empty() {
                slowed = bucket.pace.on_rejected(lease.number, newest, now);
            }
        }
        match outcome.wait_hint {
            // A pool goes on with another organisation meanwhile. Who brought a key of its own has nowhere else to go: each
            // call is told by the provider itself, at no cost, and the first after a payment goes through.
            _ if class == ErrorClass::QuotaExhausted && bucket.pool.is_some() => {
                bucket.cool(class, outcome.wait_hint.unwrap_or(quota), now);
                cooled = true;
            }
            Some(hint) if pushed_back || class.is_health_failure() => {
                bucket.cool(class, hint, now);
                cooled = hint > Millis::ZERO;
            }
            // Without a hint only a bucket that has others beside it cools: elsewhere backoff, breaker and the
            // concurrency limit pace the retries, and one stray failure must not stop everybody.
            None if bucket.pool.is_some() && (class == ErrorClass::RateLimited || unwell) => {
                cooled = bucket.fail(class, base, cap, now);
            }
            _ => {}
        }
        let until = Some(now.plus(bucket.cooling(now))).filter(|until| *until > now);
        let limit = concurrency.and_then(|config| bucket.concurrency.limit(&config)).map(u64::from);
        let (pool, name) = (bucket.pool, &*bucket.name);
        let kinds = [
            (cooled, NoticeKind::BucketCooling, None),
            (class == ErrorClass::QuotaExhausted, NoticeKind::QuotaExhausted, None),
            (reduced, NoticeKind::ConcurrencyReduced, limit),
            (slowed, NoticeKind::PaceReduced, bucket.pace.per_minute()),
        ];
        for (_, kind, value) in kinds.into_iter().filter(|(happened, _, _)| *happened) {
            let until = until.filter(|_| value.is_none());
            self.notices.push(Notice { kind, at: now, subject: name.into(), class: Some(class), until, value });
        }
        // The bill is the organisation's: all its models are out.
        if let (ErrorClass::QuotaExhausted, Some(Scope::Key), Some(pool)) = (class, outcome.scope, pool) {
            let length = outcome.wait_hint.unwrap_or(quota);
            let others = self.targets.list.iter_mut().flat_map(|target| target.buckets.iter_mut());
            for other in others.filter(|other| other.pool == Some(pool)) {
                let before = other.cooling(now);
                other.cool(class, length, now);
                if other.cooling(now) > before {
                    let until = Some(other.cools_until());
                    self.notices.tell(NoticeKind::BucketCooling, now, &other.name, Some(class), until);
                }
            }
        }
    }

    /// Tells both breakers of a target.
    pub(crate) fn signal(&mut self, lease: &Lease, provider: Signal, model: Signal, now: Instant) {
        let Some(mut config) = self.breaker_config(lease.target) else { return };
        let Some(target) = self.target_of(lease.target) else { return };
        // Two failures far apart say something if they are of two calls; the retries of one are no second witness. For a
        // pool's bucket its own cooling sees to that.
        if lease.again || target.buckets.get(lease.bucket).is_some_and(|bucket| bucket.pool.is_some()) {
            config.sparse_span = Millis::MAX;
        }
        let provider_breaker = target.provider_breaker;
        let slots = [(provider_breaker, provider), (target.model_breaker, model)];
        let (mut opened, mut everywhere) = (false, false);
        for (slot, signal) in slots {
            let Some(breaker) = self.breakers.get(slot) else { continue };
            let change = breaker.on_outcome(lease.number, lease.granted_at, signal, &config, now);
            let Some(change) = change else { continue };
            let class = match signal {
                Signal::Failed { class, .. } => Some(class),
                _ => None,
            };
            let (kind, until) = match change {
                Change::Opened(until) => (NoticeKind::BreakerOpened, Some(until)),
                Change::Closed => (NoticeKind::BreakerClosed, None),
            };
            if kind == NoticeKind::BreakerOpened {
                opened = true;
                everywhere = everywhere || slot == provider_breaker;
            }
            let subject = self.breakers.names.name(slot.index as usize);
            self.notices.tell(kind, now, subject, class, until);
        }
        if opened {
            self.wake_everybody(lease.target, everywhere);
        }
    }

    /// Lets all that wait for a target, or for any model of its provider, ask again, to be told that there is no way: also
    /// those behind their tenants' limits.
    fn wake_everybody(&mut self, target: Slot, whole_provider: bool) {
        let provider = |slot: Slot| self.targets.list.get(slot.index as usize).map(|target| &*target.provider);
        let own = provider(target).filter(|_| whole_provider);
        for waiter in self.waiters.everybody() {
            if waiter.target == target || own.is_some_and(|own| provider(waiter.target) == Some(own)) {
                self.woken.push_back(waiter.call.0);
            }
        }
    }

    pub(crate) fn target_of(&mut self, slot: Slot) -> Option<&mut Target> {
        self.targets.list.get_mut(slot.index as usize)
    }
}

/// What an outcome means to the breakers of the provider and of the model.
fn signals(outcome: &Outcome<'_>, probe: bool, several: bool) -> (Signal, Signal) {
    let Some(class) = outcome.class else { return (Signal::Answered, Signal::Answered) };
    if !class.is_health_failure() {
        let signal = match class {
            ErrorClass::Cancelled | ErrorClass::Unknown => Signal::Nothing,
            _ => Signal::Refused,
        };
        return (signal, signal);
    }
    let failed = Signal::Failed { class, hint: outcome.wait_hint };
    match outcome.scope {
        Some(Scope::Provider) if probe => (failed, failed),
        Some(Scope::Provider) => (failed, Signal::Nothing),
        // One organisation's trouble among several cools its bucket, and is not the model's.
        Some(Scope::Bucket | Scope::Key) if several && !probe => (Signal::Nothing, Signal::Nothing),
        _ => (Signal::Refused, failed),
    }
}
