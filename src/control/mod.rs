//! What outlives a call: retry budgets, breakers, buckets and their keys, vendor state, tenants, queues and leases.
//!
//! Everything is synchronous and keyed by plain ids; `now` is the last argument. The caller's part of the contract:
//! [`Control::admit`] before each attempt, [`Control::settle`] after it (a permit that is never settled comes back at
//! its lease's end), [`Control::take_woken`] and [`Control::take_notice`] drained after each of them, and
//! [`Control::leave`] when a call that waits gives up. Spurious calls are harmless, and the clock may stand still or go
//! back: nothing is released early by it, and nothing is kept for longer than its own length on the new clock.

mod admission;
mod breaker;
mod concurrency;
mod config;
mod feasibility;
mod hold;
mod lease;
mod names;
mod notice;
mod pace;
mod preflight;
mod queue;
mod retry_budget;
mod settle;
mod state;
mod target;
mod tenant;
mod terms;
mod vendor;

use crate::class::ErrorClass;
use crate::prelude::*;
use crate::time::Instant;
use alloc::collections::VecDeque;
pub use breaker::{Breaker, BreakerConfig, Change, Gate, Signal};
pub use concurrency::ConcurrencyConfig;
pub use config::{ConfigError, ControlConfig, PoolConfig, TenantLimits};
pub use feasibility::Feasibility;
pub use lease::PermitCounts;
use lease::{Lease, Leases};
use names::{Entered, Names, Slot};
use notice::Notices;
pub use notice::{Notice, NoticeKind};
use preflight::{Preflight, Said};
use queue::Waiters;
pub use retry_budget::{RetryBudget, RetryBudgetConfig, RetryBudgets, RetryCost};
use target::{Bucket, Key, Target};
use tenant::Tenants;
pub use terms::{
    Admission, Ask, BucketId, CallId, KeyId, LimitKind, LimitWindow, Outcome, Permit, PermitId, Priority, Reason,
    TooSlow, VendorLimit,
};
pub use vendor::{Known, Vendor};

/// The state that all calls of a keel share.
#[derive(Debug)]
pub struct Control {
    config: ControlConfig,
    budget: RetryBudgets,
    breakers: Breakers,
    targets: Targets,
    keys: Vec<Key>,
    tenants: Tenants,
    leases: Leases,
    waiters: Waiters,
    notices: Notices,
    /// Calls whose turn has come, by number.
    woken: VecDeque<u64>,
    asked: u64,
    /// Whether anybody says on whose behalf it asks.
    named_tenants: bool,
    buckets_made: u64,
    /// Room to build a target's name in, so that an ask allocates nothing.
    scratch: String,
}

/// Breakers by `provider` and `provider/model`.
#[derive(Debug)]
struct Breakers {
    names: Names,
    list: Vec<Breaker>,
}

/// Targets by provider, account and model.
#[derive(Debug)]
struct Targets {
    names: Names,
    list: Vec<Target>,
}

impl Control {
    /// A control plane that knows nobody yet. Does no I/O and reads no clock.
    pub fn new(config: ControlConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self::of_checked(config))
    }

    /// One of settings that were checked already. Those that are not make it do what nobody meant, and no more than that.
    #[must_use]
    pub fn of_checked(config: ControlConfig) -> Self {
        let mut keys = Vec::new();
        for (pool, of) in config.pools.iter().enumerate() {
            for id in &of.keys {
                keys.push(Key::new(id, pool));
            }
        }
        Self {
            budget: RetryBudgets::new(config.retry_budget, config.max_targets),
            breakers: Breakers { names: Names::new(config.max_targets.saturating_mul(2)), list: Vec::new() },
            targets: Targets { names: Names::new(config.max_targets), list: Vec::new() },
            keys,
            tenants: Tenants::new(config.default_tenant, &config.tenants, config.max_tenants),
            leases: Leases::default(),
            waiters: Waiters::default(),
            notices: Notices::default(),
            woken: VecDeque::new(),
            asked: 0,
            named_tenants: false,
            buckets_made: 0,
            scratch: String::new(),
            config,
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &ControlConfig {
        &self.config
    }

    /// Counts the first attempt of a logical request, which pays for its share of a retry.
    pub fn on_first_attempt(&mut self, provider: &str, now: Instant) {
        self.budget.on_first_attempt(provider, now);
    }

    /// Draws a retry from the budget; says whether it may be made.
    pub fn may_retry(&mut self, provider: &str, cost: RetryCost, now: Instant) -> bool {
        self.budget.may_retry(provider, cost, now)
    }

    /// What changed since the last time, one change at a time.
    pub fn take_notice(&mut self) -> Option<Notice> {
        self.notices.take()
    }

    /// How many permits were given, and what became of them.
    #[must_use]
    pub fn permits(&self) -> PermitCounts {
        self.leases.counts()
    }

    /// How many calls wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Whether an attempt of `output_tokens` can end before `deadline`, by what is known of the fastest bucket of the
    /// target. `None`: it was never heard of. [`Control::admit`] asks the same of each bucket, and takes one that can.
    #[must_use]
    pub fn feasible(
        &self,
        provider: &str,
        model: &str,
        account: Option<&str>,
        output_tokens: u64,
        deadline: Instant,
        now: Instant,
    ) -> Option<Feasibility> {
        let mut name = String::new();
        let account = account.filter(|account| !account.is_empty() || !self.config.pools.is_empty());
        target_name(&mut name, provider, model, account);
        let slot = self.targets.names.find(&name)?;
        let target = self.targets.list.get(slot.index as usize)?;
        let each = target.buckets.iter().map(|bucket| bucket.speed.feasible(output_tokens, deadline, now));
        each.min_by_key(|feasible| (!feasible.fits, feasible.estimate))
    }

    /// Whether any pool serves a provider.
    #[must_use]
    pub fn has_pool(&self, provider: &str) -> bool {
        self.config.pools.iter().any(|pool| pool.provider == provider)
    }

    /// Whether the pools hold a bucket, or a key, that a call which just failed could be sent with at once: one that
    /// does not cool, with a key that is not disabled. `failed` is the bucket that it must not be.
    #[must_use]
    pub fn has_alternative(&self, provider: &str, model: &str, failed: Option<BucketId>, now: Instant) -> bool {
        let mut name = String::new();
        target_name(&mut name, provider, model, None);
        let Some(target) = self.targets.names.find(&name).and_then(|slot| self.targets.list.get(slot.index as usize))
        else {
            return false;
        };
        target.buckets.iter().any(|bucket| {
            let keys = self.keys.iter().filter(|key| Some(key.pool) == bucket.pool && key.disabled.is_none());
            let open = !bucket.preflight.is_refused(now);
            Some(bucket.id) != failed && open && bucket.cooling_until(now).0.is_none() && keys.count() > 0
        })
    }

    /// The public name of a bucket, e.g. `openai/org-a/gpt-5`.
    #[must_use]
    pub fn bucket(&self, id: BucketId) -> Option<&str> {
        let mut buckets = self.targets.list.iter().flat_map(|target| target.buckets.iter());
        buckets.find(|bucket| bucket.id == id).map(|bucket| &*bucket.name)
    }

    /// The bucket that by what was known when this permit was given would answer too late: one that was left for the
    /// permit's own, or that itself where there was no better one.
    #[must_use]
    pub fn too_slow(&mut self, permit: PermitId) -> Option<TooSlow<'_>> {
        let lease = self.leases.get(permit)?;
        let (remaining, (index, speed)) = (lease.granted_at.until(lease.until), lease.too_slow?);
        let bucket = self.targets.list.get(lease.target.index as usize)?.buckets.get(index)?;
        Some(TooSlow { left: (index != lease.bucket).then_some(&*bucket.name), speed, remaining })
    }

    /// How many requests the bucket of a permit may have in flight now; `None`: there is no limit.
    #[must_use]
    pub fn concurrency_limit(&mut self, permit: PermitId) -> Option<u32> {
        let (config, lease) = (self.config.concurrency?, *self.leases.get(permit)?);
        self.bucket_of(&lease)?.concurrency.limit(&config)
    }

    /// The id of a configured key.
    #[must_use]
    pub fn key(&self, key: KeyId) -> Option<&str> {
        self.keys.get(key.0 as usize).map(|key| &*key.id)
    }

    /// Enables a key that was disabled; false if there is none of that id.
    pub fn enable_key(&mut self, id: &str, now: Instant) -> bool {
        let Some(key) = self.keys.iter_mut().find(|key| &*key.id == id) else { return false };
        if key.disabled.take().is_some() {
            self.notices.tell(NoticeKind::KeyEnabled, now, id, None, None);
            let pool = Some(key.pool);
            for index in 0..self.targets.list.len() {
                let Some(target) = self.targets.list.get_mut(index) else { continue };
                let mut opened = false;
                for bucket in target.buckets.iter_mut().filter(|bucket| bucket.pool == pool) {
                    bucket.preflight.ask_again();
                    opened = true;
                }
                let slot = self.targets.names.slot(index).filter(|_| opened);
                if let Some(slot) = slot {
                    self.pump(slot, now);
                }
            }
        }
        true
    }

    /// Disables a key; whether it was in use.
    fn disable_key(&mut self, key: KeyId, class: ErrorClass, now: Instant) -> bool {
        let Some(key) = self.keys.get_mut(key.0 as usize) else { return false };
        let news = key.disabled.replace(class).is_none();
        if news {
            self.notices.tell(NoticeKind::KeyDisabled, now, &key.id, Some(class), None);
        }
        news
    }

    /// The target of an ask; `None` if the table is full of what must not be forgotten.
    fn enter_target(&mut self, provider: &str, model: &str, account: Option<&str>, now: Instant) -> Option<Entered> {
        // Without pools there is nothing that a caller without an account could mean but the one bucket.
        let account = account.filter(|account| !account.is_empty() || !self.config.pools.is_empty());
        let mut name = core::mem::take(&mut self.scratch);
        target_name(&mut name, provider, model, account);
        let list = &self.targets.list;
        let idle = |index: usize| list.get(index).is_none_or(|target| target.is_idle(now));
        let entered = self.targets.names.enter(&name, now, &idle);
        self.scratch = name;
        if let Some(Entered::Fresh(slot)) = entered {
            let breakers = (
                self.breakers.enter(provider, "", &self.config, now),
                self.breakers.enter(provider, model, &self.config, now),
            );
            let buckets = self.make_buckets(provider, model, account);
            let target = Target::new(provider, model, breakers, buckets);
            match self.targets.list.get_mut(slot.index as usize) {
                Some(old) => *old = target,
                None => self.targets.list.push(target),
            }
        }
        entered
    }

    fn make_buckets(&mut self, provider: &str, model: &str, account: Option<&str>) -> Vec<Bucket> {
        let mut wanted = Vec::new();
        if account.is_none() {
            let pools = self.config.pools.iter().enumerate();
            for (index, pool) in pools {
                if pool.serves(provider, model) {
                    wanted.push((pool.organisation.as_str(), Some(index), pool.weight, pool.preflight));
                }
            }
        }
        if wanted.is_empty() {
            wanted.push((account.unwrap_or(""), None, 1, false));
        }
        let mut buckets = Vec::with_capacity(wanted.len());
        for (account, pool, weight, preflight) in wanted {
            self.buckets_made = self.buckets_made.saturating_add(1);
            let mut name = String::new();
            for part in [provider, account, model].into_iter().filter(|part| !part.is_empty()) {
                if !name.is_empty() {
                    name.push('/');
                }
                name.push_str(part);
            }
            let preflight = if preflight { Preflight::Due } else { Preflight::Off };
            buckets.push(Bucket::new(BucketId(self.buckets_made), name.into(), pool, weight, preflight));
        }
        buckets
    }

    /// The breaker settings that hold for a target.
    fn breaker_config(&self, slot: Slot) -> Option<BreakerConfig> {
        let target = self.targets.list.get(slot.index as usize)?;
        self.config.breaker_of(&target.provider)
    }

    /// What both breakers of a target say: shut if one is, a probe if one wants one.
    fn gate(&mut self, slot: Slot, now: Instant) -> Gate {
        let Some(config) = self.breaker_config(slot) else { return Gate::Pass };
        let Some((provider, model)) = self.breaker_slots(slot, now) else { return Gate::Pass };
        let mut said = Gate::Pass;
        for slot in [provider, model] {
            match self.breakers.get(slot).map(|breaker| breaker.gate(&config, now)) {
                Some(shut @ Gate::Shut { .. }) => return shut,
                Some(Gate::Probe) => said = Gate::Probe,
                Some(Gate::Pass) | None => {}
            }
        }
        said
    }

    /// Makes the holder of permit `number` the probe of each breaker that wants one.
    fn take_probe(&mut self, slot: Slot, number: u64, deadline: Instant, now: Instant) -> bool {
        let Some(config) = self.breaker_config(slot) else { return false };
        let Some((provider, model)) = self.breaker_slots(slot, now) else { return false };
        let mut probe = false;
        for slot in [provider, model] {
            let Some(breaker) = self.breakers.get(slot) else { continue };
            if breaker.gate(&config, now) != Gate::Probe {
                continue;
            }
            breaker.take_probe(number, &config, deadline, now);
            probe = true;
            let subject = self.breakers.names.name(slot.index as usize);
            self.notices.tell(NoticeKind::BreakerHalfOpen, now, subject, None, None);
        }
        probe
    }

    /// What was offered has been taken: the lease of a probe or a preflight runs from its grant on, up to its deadline.
    fn extend_probe(&mut self, lease: &Lease) {
        if let Some(bucket) = self.bucket_of(lease) {
            bucket.preflight.extend(lease.number, lease.granted_at, lease.until);
        }
        if !lease.probe {
            return;
        }
        let Some(config) = self.breaker_config(lease.target) else { return };
        let Some(target) = self.targets.list.get(lease.target.index as usize) else { return };
        for slot in [target.provider_breaker, target.model_breaker] {
            if let Some(breaker) = self.breakers.get(slot) {
                breaker.extend_probe(lease.number, lease.granted_at.plus(config.probe_lease).min(lease.until));
            }
        }
    }

    /// A probe or a preflight that told nothing frees its place.
    fn release_probe(&mut self, lease: &Lease, now: Instant) {
        if let Some(bucket) = self.bucket_of(lease) {
            bucket.preflight.on_end(lease.number, Said::Nothing, now);
        }
        if lease.probe {
            self.signal(lease, Signal::Nothing, Signal::Nothing, now);
        }
    }

    /// The breakers of a target, entered again if they were forgotten meanwhile.
    fn breaker_slots(&mut self, slot: Slot, now: Instant) -> Option<(Slot, Slot)> {
        let target = self.targets.list.get_mut(slot.index as usize)?;
        if !self.breakers.names.holds(target.provider_breaker) {
            target.provider_breaker = self.breakers.enter(&target.provider, "", &self.config, now);
        }
        if !self.breakers.names.holds(target.model_breaker) {
            target.model_breaker = self.breakers.enter(&target.provider, &target.model, &self.config, now);
        }
        Some((target.provider_breaker, target.model_breaker))
    }

    pub(crate) fn bucket_of(&mut self, lease: &Lease) -> Option<&mut Bucket> {
        self.target_of(lease.target)?.buckets.get_mut(lease.bucket)
    }
}

impl Breakers {
    fn get(&mut self, slot: Slot) -> Option<&mut Breaker> {
        if !self.names.holds(slot) {
            return None;
        }
        self.list.get_mut(slot.index as usize)
    }

    fn enter(&mut self, provider: &str, model: &str, config: &ControlConfig, now: Instant) -> Slot {
        let nowhere = Slot { index: u32::MAX, generation: 0 };
        let Some(breaker) = &config.breaker_of(provider) else { return nowhere };
        let mut name = String::from(provider);
        if !model.is_empty() {
            name.push('/');
            name.push_str(model);
        }
        let list = &self.list;
        let idle = |index: usize| list.get(index).is_none_or(|known| known.is_idle(breaker, now));
        let Some(entered) = self.names.enter(&name, now, &idle) else { return nowhere };
        let slot = entered.slot();
        if let Entered::Fresh(_) = entered {
            match self.list.get_mut(slot.index as usize) {
                Some(old) => *old = Breaker::new(now),
                None => self.list.push(Breaker::new(now)),
            }
        }
        slot
    }
}

/// Provider, account and model with separators that no name has.
fn target_name(name: &mut String, provider: &str, model: &str, account: Option<&str>) {
    name.clear();
    name.push_str(provider);
    name.push('\u{1}');
    name.push_str(model);
    if let Some(account) = account {
        name.push('\u{1}');
        name.push_str(account);
    }
}
