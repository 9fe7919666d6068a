//! Targets and their buckets: where a request can go, and which of the ways is open.
//!
//! A target is a provider and a model, served by the pools of that provider or by a key that the caller brought. Each
//! organisation of a pool is one bucket, since that is what the provider counts: two keys of one organisation are one
//! rate limit. The least recently used healthy bucket is picked, so that load is spread while all are well, instead of
//! wearing down one after the other.

use super::concurrency::{Concurrency, ConcurrencyConfig};
use super::feasibility::{Feasibility, Percentiles, Speed};
use super::hold::Hold;
use super::names::Slot;
use super::pace::Pace;
use super::preflight::{Met, Preflight};
use super::queue::{Queue, Waiter};
use super::terms::{BucketId, KeyId, Priority, Reason};
use super::vendor::{Cost, Vendor};
use crate::class::ErrorClass;
use crate::prelude::*;
use crate::time::{Instant, Millis};

/// Batch work leaves a tenth of the limits alone for this long after interactive work was last seen.
const INTERACTIVE_MEMORY: Millis = Millis(60_000);
/// That tenth.
const BATCH_MARGIN_PER_MILLE: u64 = 100;
/// Rank of an open bucket that would answer too late; 1 is that of one that failed this call.
const SLOW: u8 = 2;
/// Longest cooling that a hint can cause: a month, the longest quota that providers have.
const LONGEST_HINT: Millis = Millis(31 * 86_400_000);

/// What a provider counts its limits against.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) id: BucketId,
    pub(crate) name: Box<str>,
    /// The pool whose keys serve it; `None`: the caller's own key.
    pub(crate) pool: Option<usize>,
    pub(crate) weight: u32,
    turns_left: u32,
    /// Cooling as the provider said, and what for.
    hold: Hold,
    pub(crate) class: ErrorClass,
    /// Cooling after failures, which a success ends.
    failing: Hold,
    failures: u32,
    pub(crate) vendor: Vendor,
    pub(crate) concurrency: Concurrency,
    /// What is in flight by estimate.
    pub(crate) reserved: Cost,
    pub(crate) preflight: Preflight,
    pub(crate) speed: Speed,
    pub(crate) pace: Pace,
}

impl Bucket {
    pub(crate) fn new(id: BucketId, name: Box<str>, pool: Option<usize>, weight: u32, preflight: Preflight) -> Self {
        Self {
            id,
            name,
            pool,
            weight,
            turns_left: weight,
            hold: Hold::default(),
            class: ErrorClass::Unknown,
            failing: Hold::default(),
            failures: 0,
            vendor: Vendor::default(),
            concurrency: Concurrency::default(),
            reserved: Cost::default(),
            preflight,
            speed: Speed::default(),
            pace: Pace::default(),
        }
    }

    /// How long it still cools.
    pub(crate) fn cooling(&mut self, now: Instant) -> Millis {
        self.hold.left(now).max(self.failing.left(now))
    }

    /// Cools for what the provider said.
    pub(crate) fn cool(&mut self, class: ErrorClass, length: Millis, now: Instant) {
        let length = length.min(LONGEST_HINT);
        if length >= self.hold.left(now) {
            self.class = class;
        }
        self.hold.extend(length, now);
    }

    /// Cools after a failure without a hint: 2, 4, 8 … 60 s. One step for all that was in flight at once.
    pub(crate) fn fail(&mut self, class: ErrorClass, base: Millis, cap: Millis, now: Instant) -> bool {
        if self.failing.left(now) > Millis::ZERO {
            return false;
        }
        let growth = 1_u64.checked_shl(self.failures).unwrap_or(u64::MAX);
        self.failures = self.failures.saturating_add(1);
        self.failing.extend(base.times(growth).min(cap), now);
        self.class = class;
        true
    }

    /// A success ends its cooling after failures; whether it still cooled for those.
    pub(crate) fn heal(&mut self, now: Instant) -> bool {
        let before = self.cooling(now);
        self.failures = 0;
        self.failing.clear();
        before > self.cooling(now)
    }

    pub(crate) fn cools_until(&self) -> Instant {
        self.hold.until().max(self.failing.until())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.concurrency.in_flight() == 0
    }
}

/// Why no bucket is open, the nearest one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) reason: Reason,
    pub(crate) class: ErrorClass,
    /// When time alone opens it; `None`: when somebody else is done.
    pub(crate) at: Option<Instant>,
}

/// A configured key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) id: Box<str>,
    pub(crate) pool: usize,
    pub(crate) disabled: Option<ErrorClass>,
    used: u64,
}

impl Key {
    pub(crate) fn new(id: &str, pool: usize) -> Self {
        Self { id: id.into(), pool, disabled: None, used: 0 }
    }
}

/// The least recently used key of a pool that is not disabled.
pub(crate) fn pick_key(keys: &mut [Key], pool: usize, number: u64) -> Option<KeyId> {
    let usable = keys.iter_mut().enumerate().filter(|(_, key)| key.pool == pool && key.disabled.is_none());
    let (index, key) = usable.min_by_key(|(_, key)| key.used)?;
    key.used = number;
    u32::try_from(index).ok().map(KeyId)
}

/// A provider and a model.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) provider: Box<str>,
    pub(crate) model: Box<str>,
    pub(crate) provider_breaker: Slot,
    pub(crate) model_breaker: Slot,
    pub(crate) buckets: Vec<Bucket>,
    /// Buckets by recency, the least recently used first.
    order: Vec<usize>,
    pub(crate) queue: Queue,
    interactive_at: Instant,
    /// How long a permit is held, smoothed; zero while nothing is known.
    pub(crate) held: Millis,
    /// How long successful attempts took.
    pub(crate) lasted: Percentiles,
}

impl Target {
    pub(crate) fn new(provider: &str, model: &str, breakers: (Slot, Slot), buckets: Vec<Bucket>) -> Self {
        let order = (0..buckets.len()).collect();
        Self {
            provider: provider.into(),
            model: model.into(),
            provider_breaker: breakers.0,
            model_breaker: breakers.1,
            buckets,
            order,
            queue: Queue::default(),
            interactive_at: Instant(0),
            held: Millis::ZERO,
            lasted: Percentiles::default(),
        }
    }

    pub(crate) fn on_ask(&mut self, priority: Priority, now: Instant) {
        if priority == Priority::Interactive {
            self.interactive_at = now;
        }
    }

    /// How long an attempt needs that had to wait for its turn: what 99 of 100 took. A turn is not spent on a call that
    /// will not live to see its answer; one that need not wait may try its luck.
    pub(crate) fn needs(&self) -> Millis {
        Millis(self.lasted.at(990).unwrap_or(0))
    }

    /// Whether it may be forgotten: nothing in flight, nobody waiting, nothing cooling.
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        self.queue.is_empty() && self.buckets.iter().all(|bucket| bucket.is_idle() && bucket.cools_until() <= now)
    }

    /// The sum of the buckets' concurrency limits; `None` if one of them has none.
    pub(crate) fn capacity(&self, config: &ConcurrencyConfig) -> Option<u32> {
        self.buckets.iter().try_fold(0_u32, |sum, bucket| Some(sum.saturating_add(bucket.concurrency.limit(config)?)))
    }

    /// Whether it leaves a margin to interactive work.
    fn yields(&self, waiter: &Waiter, now: Instant) -> bool {
        waiter.priority == Priority::Batch
            && self.interactive_at > Instant(0)
            && now.since(self.interactive_at) < INTERACTIVE_MEMORY
    }

    /// What the nearest bucket waits for; `None` if one is open.
    pub(crate) fn nearest(
        &mut self,
        config: Option<&ConcurrencyConfig>,
        keys: &[Key],
        waiter: &Waiter,
        now: Instant,
    ) -> Option<Blocked> {
        let yields = self.yields(waiter, now);
        let mut nearest = None;
        for bucket in &mut self.buckets {
            nearest = Some(nearer(nearest, bucket.open(config, keys, waiter.cost, yields, now).err()?, waiter));
        }
        nearest
    }

    /// The least recently used bucket that is open, or what the nearest one waits for. Those that would most likely
    /// answer after the deadline come last, and before them those that failed this call. With it comes the
    /// first that was passed over for being so slow, or itself where all are.
    pub(crate) fn pick(
        &mut self,
        config: Option<&ConcurrencyConfig>,
        keys: &[Key],
        waiter: &Waiter,
        now: Instant,
    ) -> Result<(usize, Option<(usize, Feasibility)>), Blocked> {
        let yields = self.yields(waiter, now);
        let mut best: Option<(u8, usize, usize, Feasibility)> = None;
        let mut passed_over = None;
        let mut nearest = None;
        for (place, index) in self.order.iter().copied().enumerate() {
            let Some(bucket) = self.buckets.get_mut(index) else { continue };
            if let Err(blocked) = bucket.open(config, keys, waiter.cost, yields, now) {
                nearest = Some(nearer(nearest, blocked, waiter));
                continue;
            }
            let mut rank = u8::from(waiter.avoid.contains(&bucket.id));
            let speed = bucket.speed.feasible(waiter.cost.output, waiter.deadline, now);
            if !speed.fits {
                rank = rank.saturating_add(SLOW);
                passed_over = passed_over.or(Some((index, speed)));
            }
            if best.is_none_or(|(least, ..)| rank < least) {
                best = Some((rank, place, index, speed));
            }
            if rank == 0 {
                break;
            }
        }
        let Some((rank, place, index, speed)) = best else {
            let nobody =
                Blocked { reason: Reason::KeysDisabled, class: ErrorClass::AuthError, at: Some(Instant::NEVER) };
            return Err(nearest.unwrap_or(nobody));
        };
        if let Some(bucket) = self.buckets.get_mut(index) {
            bucket.turns_left = bucket.turns_left.saturating_sub(1);
            if bucket.turns_left == 0 {
                bucket.turns_left = bucket.weight.max(1);
                self.order.remove(place);
                self.order.push(index);
            }
        }
        Ok((index, if rank < SLOW { passed_over } else { Some((index, speed)) }))
    }
}

impl Bucket {
    fn open(
        &mut self,
        config: Option<&ConcurrencyConfig>,
        keys: &[Key],
        cost: Cost,
        yields: bool,
        now: Instant,
    ) -> Result<(), Blocked> {
        let cooling = self.cooling(now);
        let met = self.preflight.meet(self.concurrency.in_flight(), now);
        if let Met::Refused(class, left) = met {
            let at = Some(now.plus(left.max(cooling)));
            return Err(Blocked { reason: Reason::PreflightFailed, class, at });
        }
        if cooling > Millis::ZERO {
            return Err(Blocked { reason: Reason::BucketCooling, class: self.class, at: Some(now.plus(cooling)) });
        }
        if let Some(pool) = self.pool {
            let mut own = keys.iter().filter(|key| key.pool == pool);
            if own.all(|key| key.disabled.is_some()) {
                let class = ErrorClass::AuthError;
                return Err(Blocked { reason: Reason::KeysDisabled, class, at: Some(Instant::NEVER) });
            }
        }
        if met == Met::Asking {
            return Err(Blocked { reason: Reason::Preflight, class: ErrorClass::RateLimited, at: None });
        }
        if let Some(config) = config {
            let tenth = self.concurrency.limit(config).map_or(0, |limit| (limit / 10).max(1));
            if !self.concurrency.has_room(config, if yields { tenth } else { 0 }) {
                return Err(Blocked { reason: Reason::ConcurrencyLimit, class: ErrorClass::RateLimited, at: None });
            }
        }
        if let Some(at) = self.pace.when(now) {
            return Err(Blocked { reason: Reason::NotEnoughHeadroom, class: ErrorClass::RateLimited, at: Some(at) });
        }
        let margin = if yields { BATCH_MARGIN_PER_MILLE } else { 0 };
        match self.vendor.when(cost, self.reserved, margin, now) {
            None => Ok(()),
            at => Err(Blocked { reason: Reason::NotEnoughHeadroom, class: ErrorClass::RateLimited, at }),
        }
    }
}

/// The one that opens first, and before it any that is worth this call's wait. What waits for somebody else may open any
/// moment.
fn nearer(before: Option<Blocked>, next: Blocked, waiter: &Waiter) -> Blocked {
    let rank = |blocked: &Blocked| {
        let at = blocked.at.unwrap_or(Instant(0));
        (waiter.is_told_at_once(blocked.reason) || at > waiter.latest, at)
    };
    match before {
        Some(before) if rank(&before) <= rank(&next) => before,
        _ => next,
    }
}
