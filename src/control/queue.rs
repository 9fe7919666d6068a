//! Who waits, and whose turn it is.
//!
//! Each target has a queue for each priority, ordered by start-time fair queueing: a tenant's next call stands where its
//! last one ended in virtual time, so tenants take turns by tokens and weight, however many calls one of them brings.
//! Interactive work goes first, but each tenth turn is batch work's. Nobody is called: a freed place is kept for the
//! first in line for a moment, and whoever does not come for it has left. All of it is O(log n) in those who wait.

use super::names::Slot;
use super::terms::{BucketId, CallId, PermitId, Priority, Reason};
use super::vendor::Cost;
use crate::order::{Key, Order};
use crate::prelude::*;
use crate::time::{Instant, Millis};

/// Interactive turns in a row after which a batch call goes first.
const TURNS: u32 = 9;
/// Buckets to avoid that are remembered while waiting.
pub(crate) const AVOIDED: usize = 4;

/// Where a waiter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Behind its tenant's own limits.
    Tenant,
    /// In its target's queue.
    Queue,
    /// Its turn has come: the permit is kept for it.
    Offered(PermitId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) call: CallId,
    pub(crate) tenant: Slot,
    pub(crate) target: Slot,
    pub(crate) cost: Cost,
    pub(crate) priority: Priority,
    pub(crate) deadline: Instant,
    /// The last moment at which an attempt is worth starting.
    pub(crate) latest: Instant,
    pub(crate) avoid: [BucketId; AVOIDED],
    pub(crate) stage: Stage,
    /// Its place in the map of its stage.
    pub(crate) key: Key,
    /// When it will ask again, as it was told.
    pub(crate) asks_at: Instant,
    /// When it counts as gone.
    pub(crate) gone_at: Instant,
}

impl Waiter {
    /// Who has not begun does not wait for a bucket that refused its preflight; who has failed there itself may.
    pub(crate) fn is_told_at_once(&self, reason: Reason) -> bool {
        let [failed, ..] = self.avoid;
        reason == Reason::PreflightFailed && failed == BucketId(0)
    }
}

/// All that wait, by number and by call.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    list: Vec<Option<Waiter>>,
    free: Vec<u32>,
    by_call: Order,
    by_end: Order,
}

impl Waiters {
    pub(crate) fn len(&self) -> usize {
        self.by_call.len()
    }

    pub(crate) fn find(&self, call: CallId) -> Option<u32> {
        self.by_call.get((call.0, 0))
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Waiter> {
        self.list.get(index as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Waiter> {
        self.list.get_mut(index as usize)?.as_mut()
    }

    /// Everybody who waits, in no order.
    pub(crate) fn everybody(&self) -> impl Iterator<Item = &Waiter> {
        self.list.iter().flatten()
    }

    pub(crate) fn insert(&mut self, waiter: Waiter) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            u32::try_from(self.list.len().saturating_sub(1)).unwrap_or(u32::MAX)
        });
        self.by_call.insert((waiter.call.0, 0), index);
        self.by_end.insert((waiter.gone_at.0, waiter.call.0), index);
        if let Some(place) = self.list.get_mut(index as usize) {
            *place = Some(waiter);
        }
        index
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Waiter> {
        let waiter = self.list.get_mut(index as usize)?.take()?;
        self.by_call.remove((waiter.call.0, 0));
        self.by_end.remove((waiter.gone_at.0, waiter.call.0));
        self.free.push(index);
        Some(waiter)
    }

    /// It was told when to ask again.
    pub(crate) fn told(&mut self, index: u32, asks_at: Instant) {
        if let Some(waiter) = self.get_mut(index) {
            waiter.asks_at = asks_at;
        }
    }

    /// It was heard of: it is gone if it stays silent until then.
    pub(crate) fn expect(&mut self, index: u32, gone_at: Instant) {
        let Some(waiter) = self.list.get_mut(index as usize).and_then(Option::as_mut) else { return };
        self.by_end.remove((waiter.gone_at.0, waiter.call.0));
        waiter.gone_at = gone_at;
        self.by_end.insert((gone_at.0, waiter.call.0), index);
    }

    /// The next one that is gone.
    pub(crate) fn gone(&self, now: Instant) -> Option<u32> {
        let ((end, _), index) = self.by_end.first()?;
        (end <= now.0).then_some(index)
    }

    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.by_end.first().map(|((end, _), _)| Instant(end))
    }
}

/// The queue of one target.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    lines: [Order; 2],
    clocks: [u64; 2],
    /// Interactive turns since batch work last had one.
    run: u32,
    /// What those that wait will take, by priority.
    costs: [Cost; 2],
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.iter().all(Order::is_empty)
    }

    /// How many, and what of, go before a newcomer of this priority.
    pub(crate) fn ahead(&self, priority: Priority) -> (usize, Cost) {
        let [interactive, batch] = &self.lines;
        let [cost, more] = self.costs;
        match priority {
            Priority::Interactive => (interactive.len(), cost),
            Priority::Batch => (interactive.len().saturating_add(batch.len()), cost.plus(more)),
        }
    }

    pub(crate) fn clock(&self, priority: Priority) -> u64 {
        self.clocks.get(priority as usize).copied().unwrap_or(0)
    }

    pub(crate) fn insert(&mut self, priority: Priority, key: Key, index: u32, cost: Cost) {
        if let Some(sum) = self.costs.get_mut(priority as usize) {
            *sum = sum.plus(cost);
        }
        if let Some(line) = self.lines.get_mut(priority as usize) {
            line.insert(key, index);
        }
    }

    pub(crate) fn remove(&mut self, priority: Priority, key: Key, cost: Cost) {
        let removed = self.lines.get_mut(priority as usize).is_some_and(|line| line.remove(key));
        if let (true, Some(sum)) = (removed, self.costs.get_mut(priority as usize)) {
            *sum = sum.minus(cost);
        }
    }

    /// Whose turn it is.
    pub(crate) fn first(&self) -> Option<u32> {
        let [interactive, batch] = &self.lines;
        let batch_turn = interactive.is_empty() || (self.run >= TURNS && !batch.is_empty());
        let line = if batch_turn { batch } else { interactive };
        line.first().map(|(_, index)| index)
    }

    /// The next in line of a priority.
    pub(crate) fn first_of(&self, priority: Priority) -> Option<u32> {
        self.lines.get(priority as usize)?.first().map(|(_, index)| index)
    }

    /// Somebody had a turn.
    pub(crate) fn on_turn(&mut self, priority: Priority, key: Key) {
        if let Some(clock) = self.clocks.get_mut(priority as usize) {
            *clock = (*clock).max(key.0);
        }
        let [_, batch] = &self.lines;
        self.run = match priority {
            Priority::Interactive if !batch.is_empty() => self.run.saturating_add(1),
            _ => 0,
        };
    }
}

/// How long a waiter that is not next sleeps at most: everybody asks now and then, so that nobody depends on somebody
/// else's timer, and less often the more there are.
pub(crate) fn poll_interval(waiting: usize) -> Millis {
    Millis(1_000_u64.saturating_add(waiting as u64 / 50))
}
