//! Permits as leases: what is in flight, and when it comes back by itself.
//!
//! A host can kill a request without running its `finally`. So a permit has an end, and what is held under it returns
//! then. A lapsed lease is still known for a while: its late outcome returns nothing, but teaches as any other.

use super::feasibility::Feasibility;
use super::names::Slot;
use super::terms::{CallId, KeyId, PermitId};
use super::vendor::Cost;
use crate::order::Order;
use crate::prelude::*;
use crate::time::{Instant, Millis};
use alloc::collections::VecDeque;

/// How late the end of an attempt may be said: the timer that ends a call at its deadline fires when the lease ends, and
/// another call may come in between. Only then is a holder taken for gone.
const LATE: Millis = Millis(1_000);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    /// Counts up with each permit: tells older from newer.
    pub(crate) number: u64,
    pub(crate) target: Slot,
    pub(crate) bucket: usize,
    pub(crate) tenant: Slot,
    pub(crate) key: Option<KeyId>,
    pub(crate) cost: Cost,
    pub(crate) granted_at: Instant,
    pub(crate) until: Instant,
    pub(crate) probe: bool,
    /// The bucket that would take too long: one that was left, or its own.
    pub(crate) too_slow: Option<(usize, Feasibility)>,
    /// Whether its call has failed before.
    pub(crate) again: bool,
    /// The waiter that it is kept for, until it asks again.
    pub(crate) offered: Option<CallId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Live,
    Lapsed,
    Settled,
}

#[derive(Debug)]
struct Record {
    generation: u32,
    state: State,
    lease: Lease,
}

/// How many permits there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermitCounts {
    /// Given, offers included.
    pub given: u64,
    /// Returned by their holder.
    pub returned: u64,
    /// Come back at their lease's end.
    pub expired: u64,
    /// Held now.
    pub held: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Leases {
    records: Vec<Record>,
    free: VecDeque<u64>,
    by_end: Order,
    counts: PermitCounts,
    /// Lapsed in the last moment, oldest first: whether their holders are gone is not known yet.
    lapsed: Vec<(u64, Instant, Slot, usize)>,
}

impl Leases {
    pub(crate) fn counts(&self) -> PermitCounts {
        self.counts
    }

    /// The number that the next permit gets.
    pub(crate) fn next_number(&self) -> u64 {
        self.counts.given.saturating_add(1)
    }

    /// Enters a lease; its `number` must be [`Self::next_number`].
    pub(crate) fn give(&mut self, lease: Lease) -> PermitId {
        self.counts.given = self.counts.given.saturating_add(1);
        self.counts.held = self.counts.held.saturating_add(1);
        // The oldest free record first, so that a lapsed lease is remembered for as long as may be.
        let reuse = if self.free.len() > 32 { self.free.pop_front() } else { None };
        let reuse = reuse.and_then(|index| u32::try_from(index).ok());
        let index = if let Some(index) = reuse {
            if let Some(record) = self.records.get_mut(index as usize) {
                record.generation = record.generation.wrapping_add(1);
                record.state = State::Live;
                record.lease = lease;
            }
            index
        } else {
            let index = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
            self.records.push(Record { generation: 0, state: State::Live, lease });
            index
        };
        self.by_end.insert((lease.until.0, lease.number), index);
        self.id(index)
    }

    fn id(&self, index: u32) -> PermitId {
        let generation = self.records.get(index as usize).map_or(0, |record| record.generation);
        PermitId((u64::from(generation) << 32) | u64::from(index).saturating_add(1))
    }

    fn record(&mut self, id: PermitId) -> Option<(u32, &mut Record)> {
        let index = u32::try_from((id.0 & 0xffff_ffff).checked_sub(1)?).ok()?;
        let record = self.records.get_mut(index as usize)?;
        (u64::from(record.generation) == id.0 >> 32).then_some((index, record))
    }

    /// A lease that is held.
    pub(crate) fn get(&mut self, id: PermitId) -> Option<&Lease> {
        let (_, record) = self.record(id)?;
        (record.state == State::Live).then_some(&record.lease)
    }

    /// Moves the end of a lease and marks it as taken by its waiter.
    pub(crate) fn accept(&mut self, id: PermitId, until: Instant) -> Option<Lease> {
        let (index, record) = self.record(id)?;
        if record.state != State::Live {
            return None;
        }
        let (before, number) = (record.lease.until, record.lease.number);
        record.lease.until = until;
        record.lease.offered = None;
        let lease = record.lease;
        self.by_end.remove((before.0, number));
        self.by_end.insert((until.0, number), index);
        Some(lease)
    }

    /// Takes the outcome of a permit, once. The flag says whether it was still held.
    pub(crate) fn settle(&mut self, id: PermitId) -> Option<(Lease, bool)> {
        let (index, record) = self.record(id)?;
        let held = record.state == State::Live;
        if record.state == State::Settled {
            return None;
        }
        record.state = State::Settled;
        let lease = record.lease;
        self.lapsed.retain(|(number, ..)| *number != lease.number);
        if held {
            self.by_end.remove((lease.until.0, lease.number));
            self.free.push_back(index.into());
            self.counts.returned = self.counts.returned.saturating_add(1);
            self.counts.held = self.counts.held.saturating_sub(1);
        }
        Some((lease, held))
    }

    /// The next lease whose end has come.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Lease> {
        let ((end, number), index) = self.by_end.first()?;
        if end > now.0 {
            return None;
        }
        self.by_end.remove((end, number));
        let record = self.records.get_mut(index as usize)?;
        record.state = State::Lapsed;
        self.free.push_back(index.into());
        self.counts.expired = self.counts.expired.saturating_add(1);
        self.counts.held = self.counts.held.saturating_sub(1);
        let lease = record.lease;
        if lease.offered.is_none() {
            self.lapsed.push((number, now, lease.target, lease.bucket));
        }
        Some(lease)
    }

    /// Target and bucket of the next lease that lapsed and whose holder has said nothing since.
    pub(crate) fn lost(&mut self, now: Instant) -> Option<(Slot, usize)> {
        let (_, at, target, bucket) = *self.lapsed.first()?;
        if at.plus(LATE) > now && at <= now {
            return None;
        }
        self.lapsed.remove(0);
        Some((target, bucket))
    }

    /// When the next lease ends.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.by_end.first().map(|((end, _), _)| Instant(end))
    }
}
