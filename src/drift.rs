//! Vendor drift: error bodies that no rule knows, by their shape.
//!
//! A vendor that invents an error falls to the bare rule of its status, silently. Here such an answer's fingerprint
//! (member names and codes, no texts; [`crate::classify::fingerprint`]) is counted and told of, so that a user sees the
//! change and can add a rule as data.

use crate::prelude::*;

/// Shapes that are kept; when there are more, the rarest makes room.
const KEPT: usize = 64;

/// Shapes seen, with how often.
#[derive(Debug, Default)]
pub struct Drift {
    seen: Vec<(String, u64)>,
}

impl Drift {
    /// Counts a shape. Says the count when it is worth telling: at the first, the tenth, the hundredth time.
    pub fn on_unknown(&mut self, fingerprint: &str) -> Option<u64> {
        if let Some((_, count)) = self.seen.iter_mut().find(|(known, _)| known == fingerprint) {
            *count = count.saturating_add(1);
            return is_round(*count).then_some(*count);
        }
        if self.seen.len() >= KEPT {
            let rarest = self.seen.iter().enumerate().min_by_key(|(_, (_, count))| *count).map(|(at, _)| at);
            if let Some(at) = rarest {
                self.seen.swap_remove(at);
            }
        }
        self.seen.push((fingerprint.to_owned(), 1));
        Some(1)
    }
}

/// Whether a number is a power of ten.
fn is_round(mut n: u64) -> bool {
    while n >= 10 && n % 10 == 0 {
        n /= 10;
    }
    n == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_told_of_at_powers_of_ten() {
        let mut drift = Drift::default();
        let told: Vec<u64> = (0..1_000).filter_map(|_| drift.on_unknown("503 {error:s}")).collect();
        assert_eq!(told, [1, 10, 100, 1_000]);
        assert_eq!(drift.on_unknown("503 {other:s}"), Some(1));
    }

    #[test]
    fn an_attacker_who_invents_shapes_fills_nothing() {
        let mut drift = Drift::default();
        for _ in 0..50 {
            drift.on_unknown("real");
        }
        for n in 0..10_000 {
            drift.on_unknown(&n.to_string());
        }
        assert_eq!(drift.seen.len(), KEPT);
        assert!(drift.seen.iter().any(|(shape, count)| shape == "real" && *count == 50));
    }
}
