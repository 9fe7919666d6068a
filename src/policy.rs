//! The limits that one call runs under, with their defaults and where these come from.
//!
//! The numbers argue from what others chose and what went wrong with it (`docs/decisions`): most clients either have no
//! total at all, or clear their timer at the response head.

use crate::backoff::Jitter;
use crate::stream::CommitOn;
use crate::time::Millis;

/// Limits of one logical request. Times are durations; the call turns them into instants when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Attempts of one logical request at most, the first included. Range 1..=20.
    pub max_attempts: u32,
    /// First step of the exponential backoff.
    pub base: Millis,
    /// Longest backoff.
    pub cap: Millis,
    /// Longest wait, hinted or not, that is slept through; a longer hint ends the call with the time to come back.
    pub max_wait: Millis,
    /// How backoff is spread.
    pub jitter: Jitter,
    /// Whether an attempt that the provider may have carried out is repeated.
    pub retry_ambiguous: bool,
    /// From the call's start to its end, everything included.
    pub total: Millis,
    /// One attempt, head and body together.
    pub attempt: Millis,
    /// From sending to the response head.
    pub first_byte: Millis,
    /// Whether `first_byte` was asked for by the user. The default is meant for streams: the head of an answer that is
    /// not streamed comes when the whole answer is written, which a reasoning model may take minutes for.
    pub first_byte_always: bool,
    /// From sending to the first content of a stream; keep-alives don't count.
    pub first_token: Millis,
    /// Longest silence between two chunks of a stream.
    pub chunk_gap: Millis,
    /// Longest time a stream may send nothing but keep-alives.
    pub content_gap: Millis,
    /// Time that must be left for a retry to be begun.
    pub min_attempt: Millis,
    /// When a streamed answer is given to the caller.
    pub commit_on: CommitOn,
    /// Bytes of a stream that are held at most before it is given on.
    pub max_held: u64,
    /// Bytes of a body that are read at most before it is given on unread.
    pub max_body: u64,
}

impl Policy {
    /// For a person who waits at a screen.
    pub const INTERACTIVE: Self = Self {
        total: Millis(60_000),
        attempt: Millis(45_000),
        first_byte: Millis(15_000),
        first_token: Millis(20_000),
        chunk_gap: Millis(15_000),
        content_gap: Millis(30_000),
        max_wait: Millis(10_000),
        cap: Millis(4_000),
        ..Self::STANDARD
    };

    /// The default. Total 600 s as the SDKs' own; gaps long enough for reasoning models (opencode settled at 5 min
    /// after 60 s and 2 min had cut off good answers); 500 ms to 8 s of backoff as in the SDKs, but fully jittered; 60 s
    /// is the wall that most clients have for a hint.
    pub const STANDARD: Self = Self {
        max_attempts: 3,
        base: Millis(500),
        cap: Millis(8_000),
        max_wait: Millis(60_000),
        jitter: Jitter::Full,
        retry_ambiguous: true,
        total: Millis(600_000),
        attempt: Millis(600_000),
        first_byte: Millis(60_000),
        first_byte_always: false,
        first_token: Millis(300_000),
        chunk_gap: Millis(120_000),
        content_gap: Millis(300_000),
        min_attempt: Millis(1_000),
        commit_on: CommitOn::FirstContent,
        max_held: 1_048_576,
        max_body: 33_554_432,
    };

    /// For batch work: patient, and never in a hurry to come back.
    pub const BACKGROUND: Self = Self {
        max_attempts: 5,
        base: Millis(1_000),
        cap: Millis(60_000),
        max_wait: Millis(300_000),
        total: Millis(3_600_000),
        attempt: Millis(900_000),
        first_byte: Millis(120_000),
        first_token: Millis(600_000),
        chunk_gap: Millis(300_000),
        content_gap: Millis(600_000),
        ..Self::STANDARD
    };
}

impl Default for Policy {
    fn default() -> Self {
        Self::STANDARD
    }
}
