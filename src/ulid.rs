//! Identifiers: ULIDs (<https://github.com/ulid/spec>), 48 bits of time and 80 of randomness, which sort by time.

use crate::prelude::*;
use crate::random::word;
use crate::text::push_ascii;
use crate::time::Instant;

/// Crockford's base 32.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A ULID of 26 characters.
#[must_use]
pub fn ulid(now: Instant, rng: &mut fastrand::Rng) -> String {
    // 10 digits of time and 16 of randomness; two words of 40 random bits, since wasm has no wider integers.
    let mut digits = [b'0'; 26];
    let words = [(now.0 & 0xFFFF_FFFF_FFFF, 10), (word(rng) >> 24, 8), (word(rng) >> 24, 8)];
    let mut rest = digits.as_mut_slice();
    for (mut bits, places) in words {
        let Some((own, after)) = rest.split_at_mut_checked(places) else { break };
        for digit in own.iter_mut().rev() {
            *digit = usize::try_from(bits & 31).ok().and_then(|d| ALPHABET.get(d)).copied().unwrap_or(b'0');
            bits >>= 5;
        }
        rest = after;
    }
    let mut out = String::new();
    push_ascii(&mut out, &digits);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ulid_has_26_characters_and_sorts_by_time() {
        let mut rng = fastrand::Rng::with_seed(1);
        let early = ulid(Instant(1_795_996_800_000), &mut rng);
        let later = ulid(Instant(1_795_996_800_001), &mut rng);
        assert_eq!(early.len(), 26);
        assert!(early < later && early.starts_with("01"), "{early} {later}");
        assert_ne!(ulid(Instant(5), &mut rng), ulid(Instant(5), &mut rng));
    }
}
