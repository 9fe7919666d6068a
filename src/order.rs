//! Numbers in the order of their keys: who is next, who ends first, whose call is whose.
//!
//! Sorted runs of at most 512, in order, instead of a tree for each kind, which would be half of the wasm: what comes or
//! leaves anywhere moves 12 KB of its own run at most, so that it is the same among a hundred and among a hundred thousand.

use crate::prelude::*;

/// What orders the numbers; the second part tells equals apart.
pub(crate) type Key = (u64, u64);

/// Entries in a run; one that is full is split, or followed by a fresh one.
const FULL: usize = if cfg!(test) { 8 } else { 512 };
/// A run with no more than this is small. No two small ones lie side by side, so that a few survivors of many are a few runs.
const SMALL: usize = FULL / 4;

type Run = Vec<(Key, u32)>;

/// Numbers by key, each key once.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// None is empty.
    runs: Vec<Run>,
    len: usize,
}

impl Order {
    /// The run that a key is in, or belongs to, and its place there.
    #[inline(never)]
    fn place(&self, key: Key) -> (usize, Result<usize, usize>) {
        let after = self.runs.partition_point(|run| run.first().is_some_and(|(first, _)| *first <= key));
        let at = after.saturating_sub(1);
        (at, self.runs.get(at).map_or(Err(0), |run| run.binary_search_by(|(other, _)| other.cmp(&key))))
    }

    #[inline(never)]
    pub(crate) fn insert(&mut self, key: Key, number: u32) {
        let (mut at, found) = self.place(key);
        let mut place = match found {
            Ok(place) => {
                if let Some(entry) = self.runs.get_mut(at).and_then(|run| run.get_mut(place)) {
                    entry.1 = number;
                }
                return;
            }
            Err(place) => place,
        };
        self.len = self.len.saturating_add(1);
        if self.runs.get(at).is_none_or(|run| run.len() >= FULL) {
            (at, place) = self.make_room(at, place);
        }
        if let Some(run) = self.runs.get_mut(at) {
            run.insert(place, (key, number));
        }
    }

    /// Splits a full run, and says where the place is then.
    fn make_room(&mut self, at: usize, place: usize) -> (usize, usize) {
        let Some(run) = self.runs.get_mut(at) else {
            self.runs.push(Run::new());
            return (0, 0);
        };
        // Keys mostly rise: what comes behind a full run begins the next one.
        let from = if place >= run.len() { place } else { run.len() / 2 };
        let (rest, next) = (run.split_off(from), at.saturating_add(1));
        if !rest.is_empty() || self.runs.get(next).is_none_or(|run| run.len() >= FULL) {
            self.runs.insert(next, rest);
        }
        if place < from { (at, place) } else { (next, place.saturating_sub(from)) }
    }

    /// Takes a key out; whether it was there.
    #[inline(never)]
    pub(crate) fn remove(&mut self, key: Key) -> bool {
        let (at, Ok(place)) = self.place(key) else { return false };
        let Some(run) = self.runs.get_mut(at) else { return false };
        run.remove(place);
        if run.is_empty() {
            self.runs.remove(at);
        } else if run.len() <= SMALL {
            if run.capacity() / 4 > run.len() {
                run.shrink_to(run.len().saturating_mul(2));
            }
            self.merge(at);
            self.merge(at.saturating_sub(1));
        }
        self.len = self.len.saturating_sub(1);
        true
    }

    /// Takes the next run into the one at `at`, if both are small.
    fn merge(&mut self, at: usize) {
        let next = at.saturating_add(1);
        if let Some([run, other]) = self.runs.get_mut(at..=next)
            && run.len().max(other.len()) <= SMALL
        {
            run.append(other);
            self.runs.remove(next);
        }
    }

    #[inline(never)]
    pub(crate) fn get(&self, key: Key) -> Option<u32> {
        let (at, Ok(place)) = self.place(key) else { return None };
        self.runs.get(at)?.get(place).map(|(_, number)| *number)
    }

    pub(crate) fn first(&self) -> Option<(Key, u32)> {
        self.runs.first()?.first().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flatten().map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_tree_would_hold(steps in proptest::collection::vec((0u8..4, 0u64..40, any::<u32>()), 0..400)) {
            let (mut order, mut tree) = (Order::default(), BTreeMap::new());
            for (what, key, number) in steps {
                let key = (key / 2, key % 2);
                match what {
                    0 | 1 => {
                        order.insert(key, number);
                        tree.insert(key, number);
                    }
                    2 => prop_assert_eq!(order.remove(key), tree.remove(&key).is_some()),
                    _ => {
                        let first = tree.pop_first();
                        prop_assert_eq!(order.first(), first);
                        if let Some((key, _)) = first {
                            prop_assert!(order.remove(key));
                        }
                    }
                }
                prop_assert_eq!(order.get(key), tree.get(&key).copied());
                prop_assert_eq!(order.len(), tree.len());
                prop_assert!(order.numbers().eq(tree.values().copied()));
                prop_assert!(order.runs.windows(2).all(|two| two[0].len().max(two[1].len()) > SMALL));
            }
        }
    }

    fn room(order: &Order) -> usize {
        order.runs.iter().map(Run::capacity).sum()
    }

    #[test]
    fn a_few_survivors_of_many_hold_no_more_than_a_few_need() {
        let mut order = Order::default();
        for peak in 0..20 {
            (0..10_000).for_each(|key| order.insert((peak * 10_000 + key, 0), 0));
            (0..10_000).filter(|key| key % 1_000 != 0).for_each(|key| assert!(order.remove((peak * 10_000 + key, 0))));
        }
        assert_eq!(order.len(), 200);
        assert!(order.runs.len() <= 2 * 200 / SMALL, "{} runs", order.runs.len());
        assert!(room(&order) <= FULL * order.runs.len(), "{} places", room(&order));
        let lone = order.first().unwrap().0;
        for key in (0..200_000).filter(|key| *key != lone.0) {
            order.remove((key, 0));
        }
        assert_eq!((order.len(), order.runs.len()), (1, 1));
        assert!(room(&order) <= 4, "{} places", room(&order));
    }
}
