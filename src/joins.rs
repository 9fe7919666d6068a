//! Layers don't multiply: a retry made by an SDK above joins the logical request that it repeats.
//!
//! An SDK says on which retry it is (`x-stainless-retry-count`, `amz-sdk-request: attempt=2`), but sends no idempotency
//! key, so the same bytes to the same URL soon after are what tells. A joined call goes on with the attempts that are
//! left, not with a fresh set: three layers of three tries would otherwise make 27 requests of one.

use crate::class::ErrorClass;
use crate::prelude::*;
use crate::time::{Instant, Millis};

/// Entries kept at most; the oldest goes first.
const KEPT: usize = 256;
/// How long after its end a call can be joined. An SDK's own wait is 0.5 to 8 s, or a hint of up to 60 s.
const JOINABLE_FOR: Millis = Millis(75_000);

/// What is remembered of a call that ended without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its logical request.
    pub logical_request_id: String,
    /// Attempts made for it so far.
    pub attempts: u32,
    /// How many retries of a layer above have joined it already.
    pub joined: u32,
    /// When its caller had to have an answer.
    pub deadline: Instant,
    /// What it failed with.
    pub class: Option<ErrorClass>,
    /// The packed records of its failed attempts.
    pub records: String,
}

/// Recently ended calls of SDKs that retry by themselves.
#[derive(Debug, Default)]
pub struct Joins {
    /// The oldest first.
    ended: Vec<(u128, Instant, Ended)>,
}

impl Joins {
    /// Remembers a call that ended without success at `now`.
    pub fn on_end(&mut self, fingerprint: u128, ended: Ended, now: Instant) {
        if self.ended.len() >= KEPT {
            self.ended.remove(0);
        }
        self.ended.push((fingerprint, now.plus(JOINABLE_FOR), ended));
    }

    /// Takes the latest ended call that a retry with this fingerprint repeats, if there is one.
    pub fn join(&mut self, fingerprint: u128, now: Instant) -> Option<Ended> {
        self.ended.retain(|(_, until, _)| *until >= now);
        let at = self.ended.iter().rposition(|(key, _, _)| *key == fingerprint)?;
        Some(self.ended.remove(at).2)
    }

    /// Calls that can still be joined.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ended.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(id: &str) -> Ended {
        Ended {
            logical_request_id: id.into(),
            attempts: 3,
            joined: 0,
            deadline: Instant(600_000),
            class: None,
            records: String::new(),
        }
    }

    #[test]
    fn a_retry_joins_the_latest_call_of_the_same_bytes_once() {
        let mut joins = Joins::default();
        joins.on_end(7, ended("a"), Instant(0));
        joins.on_end(7, ended("b"), Instant(1));
        joins.on_end(8, ended("c"), Instant(2));
        assert_eq!(joins.join(7, Instant(10)).map(|e| e.logical_request_id).as_deref(), Some("b"));
        assert_eq!(joins.join(7, Instant(10)).map(|e| e.logical_request_id).as_deref(), Some("a"));
        assert_eq!(joins.join(7, Instant(10)), None);
    }

    #[test]
    fn what_is_long_past_is_not_joined_and_not_kept() {
        let mut joins = Joins::default();
        joins.on_end(7, ended("a"), Instant(0));
        assert_eq!(joins.join(7, Instant(75_001)), None);
        for key in 0..10_000 {
            joins.on_end(key, ended("x"), Instant(0));
        }
        assert_eq!(joins.len(), 256);
    }
}
