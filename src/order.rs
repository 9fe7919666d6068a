//! Numbers in the order of their keys: who is next, who ends first, whose call is whose.
//!
//! One sorted vector for all of them instead of a tree for each kind, which would be half of the wasm. Keys come mostly in
//! rising order and leave mostly at the front, and both ends are cheap: a push, and a step of `head`. Elsewhere it is a
//! move of memory, 24 bytes for each one behind it: about 10 µs among ten thousand.

use crate::prelude::*;

/// What orders the numbers; the second part tells equals apart.
pub(crate) type Key = (u64, u64);

/// Numbers by key, each key once.
#[derive(Debug, Default)]
pub(crate) struct Order {
    list: Vec<(Key, u32)>,
    /// Those before it have left.
    head: usize,
}

impl Order {
    fn live(&self) -> &[(Key, u32)] {
        self.list.get(self.head..).unwrap_or(&[])
    }

    /// Where a key is, or belongs, in the whole list.
    fn place(&self, key: Key) -> Result<usize, usize> {
        let found = self.live().binary_search_by(|(other, _)| other.cmp(&key));
        found.map(|at| at.saturating_add(self.head)).map_err(|at| at.saturating_add(self.head))
    }

    #[inline(never)]
    pub(crate) fn insert(&mut self, key: Key, number: u32) {
        match self.place(key) {
            Ok(at) => {
                if let Some(entry) = self.list.get_mut(at) {
                    entry.1 = number;
                }
            }
            Err(at) => self.list.insert(at, (key, number)),
        }
    }

    /// Takes a key out; whether it was there.
    #[inline(never)]
    pub(crate) fn remove(&mut self, key: Key) -> bool {
        let Ok(at) = self.place(key) else { return false };
        if at > self.head {
            self.list.remove(at);
        } else {
            self.head = self.head.saturating_add(1);
            if self.head > self.list.len() / 2 {
                self.list.drain(..self.head);
                self.head = 0;
            }
        }
        true
    }

    #[inline(never)]
    pub(crate) fn get(&self, key: Key) -> Option<u32> {
        let at = self.place(key).ok()?;
        self.list.get(at).map(|(_, number)| *number)
    }

    pub(crate) fn first(&self) -> Option<(Key, u32)> {
        self.live().first().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.live().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.live().iter().map(|(_, number)| *number)
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
            }
        }
    }
}
