//! A bounded table of names: who is known, and who may be forgotten.
//!
//! Tenants, models and providers are named by whoever sends requests, so every table that grows with names has a cap.
//! When a new name comes to a full table the least recently used *idle* entry makes room; if none is idle the name is
//! not entered, and the caller falls back to something shared. Only slot numbers leave this file; what belongs to a
//! slot lives with its owner.

use crate::prelude::*;
use crate::text::hex_digit;
use crate::time::Instant;

/// Longest name that is kept as it came, in bytes. A longer one is cut and told apart by a hash.
pub(crate) const MAX_NAME: usize = 128;

/// A slot of a table together with its generation: a slot that was given to another name no longer matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

#[derive(Debug)]
struct Entry {
    name: Box<str>,
    used: Instant,
    generation: u32,
}

/// Names to slots, at most `cap` of them.
#[derive(Debug)]
pub(crate) struct Names {
    /// Entries by name. A sorted list of numbers, not a map: it costs 6 KB of wasm less, and a new name moves a few
    /// kilobytes at most.
    sorted: Vec<u32>,
    entries: Vec<Entry>,
    cap: usize,
}

/// What became of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// It was known already.
    Known(Slot),
    /// It is new; whatever the owner keeps at the slot must be made afresh.
    Fresh(Slot),
}

impl Entered {
    pub(crate) fn slot(self) -> Slot {
        match self {
            Self::Known(slot) | Self::Fresh(slot) => slot,
        }
    }
}

impl Names {
    pub(crate) fn new(cap: usize) -> Self {
        Self { sorted: Vec::new(), entries: Vec::new(), cap: cap.max(1) }
    }

    /// The slot of `name`, entered if there is room. `idle(index)` says whether an entry may be forgotten.
    pub(crate) fn enter(&mut self, name: &str, now: Instant, idle: &dyn Fn(usize) -> bool) -> Option<Entered> {
        let shortened;
        let name = if name.len() > MAX_NAME {
            shortened = shorten(name);
            shortened.as_str()
        } else {
            name
        };
        if let Ok(index) = self.place(name) {
            let entry = self.entries.get_mut(index as usize)?;
            entry.used = entry.used.max(now);
            return Some(Entered::Known(Slot { index, generation: entry.generation }));
        }
        let index = if self.entries.len() < self.cap {
            let index = u32::try_from(self.entries.len()).ok()?;
            self.entries.push(Entry { name: name.into(), used: now, generation: 0 });
            index
        } else {
            let oldest = self.oldest(idle)?;
            let entry = self.entries.get_mut(oldest)?;
            let generation = entry.generation.wrapping_add(1);
            self.sorted.retain(|index| *index as usize != oldest);
            *entry = Entry { name: name.into(), used: now, generation };
            u32::try_from(oldest).ok()?
        };
        let at = self.sorted.partition_point(|other| self.name(*other as usize) < name);
        self.sorted.insert(at, index);
        self.slot(index as usize).map(Entered::Fresh)
    }

    /// The idle entry that was used least recently.
    pub(crate) fn oldest(&self, idle: &dyn Fn(usize) -> bool) -> Option<usize> {
        let entries = self.entries.iter().enumerate().filter(|(index, _)| idle(*index));
        entries.min_by_key(|(_, entry)| entry.used).map(|(index, _)| index)
    }

    pub(crate) fn cap(&self) -> usize {
        self.cap
    }

    /// The slot of a name that is known.
    pub(crate) fn find(&self, name: &str) -> Option<Slot> {
        let index = if name.len() > MAX_NAME { self.place(&shorten(name)) } else { self.place(name) }.ok()?;
        self.slot(index as usize)
    }

    /// Whether the slot still belongs to the name that it was given to.
    pub(crate) fn holds(&self, slot: Slot) -> bool {
        self.entries.get(slot.index as usize).is_some_and(|entry| entry.generation == slot.generation)
    }

    /// The entry of a name, or where it would be.
    fn place(&self, name: &str) -> Result<u32, usize> {
        let found = self.sorted.binary_search_by(|index| self.name(*index as usize).cmp(name));
        found.and_then(|place| self.sorted.get(place).copied().ok_or(place))
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        self.entries.get(index).map_or("", |entry| &entry.name)
    }

    pub(crate) fn used(&self, index: usize) -> Instant {
        self.entries.get(index).map_or(Instant(0), |entry| entry.used)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn slot(&self, index: usize) -> Option<Slot> {
        let generation = self.entries.get(index)?.generation;
        Some(Slot { index: u32::try_from(index).ok()?, generation })
    }

    /// Slots in the order of their names: a stable order for what is shown.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&str, usize)> {
        self.sorted.iter().map(|index| (self.name(*index as usize), *index as usize))
    }
}

/// A name that fits: its first bytes, and a hash of all of it. The hash is FNV-1a: it only has to tell honest names
/// apart; whoever makes two names collide shares one entry with himself.
fn shorten(name: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut end = MAX_NAME.saturating_sub(17);
    while end > 0 && !name.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    let mut short = String::with_capacity(MAX_NAME);
    short.push_str(name.get(..end).unwrap_or(""));
    short.push('~');
    for nibble in 0..16u32 {
        let digit = (hash >> 60_u32.saturating_sub(nibble.saturating_mul(4))) & 15;
        short.push(char::from(hex_digit(u8::try_from(digit).unwrap_or(0))));
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER_IDLE: &dyn Fn(usize) -> bool = &|_| false;

    #[test]
    fn a_full_table_forgets_the_least_recently_used_idle_name_only() {
        let mut names = Names::new(2);
        let a = names.enter("a", Instant(1), NEVER_IDLE).unwrap().slot();
        names.enter("b", Instant(2), NEVER_IDLE).unwrap();
        assert_eq!(names.enter("c", Instant(3), NEVER_IDLE), None, "nobody is idle, nobody makes room");
        names.enter("a", Instant(4), NEVER_IDLE).unwrap();
        let Some(Entered::Fresh(c)) = names.enter("c", Instant(5), &|_| true) else {
            panic!("b should have made room")
        };
        assert_eq!((names.find("b"), names.find("a"), c.index), (None, Some(a), 1));
        assert!(names.holds(a));
    }

    #[test]
    fn a_slot_of_a_forgotten_name_no_longer_matches() {
        let mut names = Names::new(1);
        let old = names.enter("a", Instant(1), NEVER_IDLE).unwrap().slot();
        let new = names.enter("b", Instant(2), &|_| true).unwrap().slot();
        assert!(!names.holds(old) && names.holds(new));
    }

    #[test]
    fn a_name_of_a_megabyte_is_kept_in_128_bytes_and_told_apart_from_its_neighbour() {
        let mut names = Names::new(8);
        let long = "é".repeat(500_000);
        let other = long.clone() + "x";
        let a = names.enter(&long, Instant(1), NEVER_IDLE).unwrap().slot();
        let b = names.enter(&other, Instant(1), NEVER_IDLE).unwrap().slot();
        assert_ne!(a, b);
        assert_eq!(names.find(&long), Some(a));
        assert!(names.name(0).len() <= MAX_NAME);
    }
}
