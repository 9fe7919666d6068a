//! Random numbers. fastrand's methods take any kind of range and carry the text of a panic for an empty one, which is more
//! code than the numbers are.

/// 64 random bits.
pub(crate) fn word(rng: &mut fastrand::Rng) -> u64 {
    let mut bytes = [0; 8];
    rng.fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}

/// A number from 0 to `most`, both included. Its bias is below `most` in 2^64.
pub(crate) fn up_to(rng: &mut fastrand::Rng, most: u64) -> u64 {
    let scaled = u128::from(word(rng)).saturating_mul(u128::from(most).saturating_add(1)) >> 64;
    u64::try_from(scaled).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_up_to_the_most_is_drawn_and_no_other() {
        let mut rng = fastrand::Rng::with_seed(1);
        for most in [0, 1, 2, 6] {
            let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| up_to(&mut rng, most)).collect();
            assert!(drawn.into_iter().eq(0..=most), "{most}");
        }
        assert!((0..64).any(|_| up_to(&mut rng, u64::MAX) > u64::MAX / 2));
    }
}
