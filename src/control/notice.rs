//! What changed between calls and a person may want to know: transitions, drained one at a time.

use crate::class::ErrorClass;
use crate::prelude::*;
use crate::time::Instant;

/// Notices kept for a host that does not drain them; older ones make room.
const KEPT: usize = 256;

/// What changed. `docs/ledger.md` says of each what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// A breaker opened, or opened again.
    BreakerOpened,
    /// A caller became the probe of a breaker.
    BreakerHalfOpen,
    /// A breaker closed.
    BreakerClosed,
    /// A bucket began to cool, or cools for longer.
    BucketCooling,
    /// It was answered well before that was over.
    BucketRecovered,
    /// A quota is used up: somebody has to look at it.
    QuotaExhausted,
    /// A key was disabled until a person enables it.
    KeyDisabled,
    /// A person enabled it.
    KeyEnabled,
    /// The vendor pushed back, and the concurrency limit fell.
    ConcurrencyReduced,
    /// It has not for minutes, and the adaptive limit is gone.
    ConcurrencyLifted,
    /// A vendor that tells of its limit by 429 alone did so: requests are spread at a pace from now on.
    PaceReduced,
    /// It has not for minutes, and they no longer are.
    PaceLifted,
    /// A permit came back because its lease ended, not because its holder returned it.
    PermitLost,
    /// The first call through a bucket was answered well: the others begin.
    PreflightPassed,
    /// It was refused: the others do not begin there.
    PreflightFailed,
    /// An SDK above retries too.
    DoubledRetryLayer,
    /// An error answer came that no rule knows.
    UnknownErrorShape,
}

impl NoticeKind {
    /// The public name, e.g. `breaker_opened`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BreakerOpened => "breaker_opened",
            Self::BreakerHalfOpen => "breaker_half_open",
            Self::BreakerClosed => "breaker_closed",
            Self::BucketCooling => "bucket_cooling",
            Self::BucketRecovered => "bucket_recovered",
            Self::QuotaExhausted => "quota_exhausted",
            Self::KeyDisabled => "key_disabled",
            Self::KeyEnabled => "key_enabled",
            Self::ConcurrencyReduced => "concurrency_reduced",
            Self::ConcurrencyLifted => "concurrency_lifted",
            Self::PaceReduced => "pace_reduced",
            Self::PaceLifted => "pace_lifted",
            Self::PermitLost => "permit_lost",
            Self::PreflightPassed => "preflight_passed",
            Self::PreflightFailed => "preflight_failed",
            Self::DoubledRetryLayer => "doubled_retry_layer",
            Self::UnknownErrorShape => "unknown_error_shape",
        }
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What changed.
    pub kind: NoticeKind,
    /// When.
    pub at: Instant,
    /// Of what: a bucket, a breaker (`provider` or `provider/model`) or a key id.
    pub subject: String,
    /// The class of the failure that caused it.
    pub class: Option<ErrorClass>,
    /// Until when it lasts, if that is known.
    pub until: Option<Instant>,
    /// The new value, for a limit.
    pub value: Option<u64>,
}

/// The queue of notices.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    queue: Vec<Notice>,
}

impl Notices {
    #[inline(never)]
    pub(crate) fn push(&mut self, notice: Notice) {
        if self.queue.len() >= KEPT {
            self.queue.remove(0);
        }
        self.queue.push(notice);
    }

    /// A notice without a value.
    #[inline(never)]
    pub(crate) fn tell(
        &mut self,
        kind: NoticeKind,
        at: Instant,
        subject: &str,
        class: Option<ErrorClass>,
        until: Option<Instant>,
    ) {
        self.push(Notice { kind, at, subject: subject.into(), class, until, value: None });
    }

    pub(crate) fn take(&mut self) -> Option<Notice> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }
}
