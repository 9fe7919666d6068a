//! What changed between calls and a person may want to know: transitions, drained one at a time.

use crate::class::ErrorClass;
use crate::prelude::*;
use crate::time::Instant;

/// Notices kept for a host that does not drain them; older ones make room.
const KEPT: usize = 256;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What changed. `docs/ledger.md` says of each what it is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum NoticeKind {
            $($(#[$doc])* $kind,)*
        }

        impl NoticeKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The public name, e.g. `breaker_opened`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// A breaker opened, or opened again.
    BreakerOpened = "breaker_opened",
    /// A caller became the probe of a breaker.
    BreakerHalfOpen = "breaker_half_open",
    /// A breaker closed.
    BreakerClosed = "breaker_closed",
    /// A bucket began to cool, or cools for longer.
    BucketCooling = "bucket_cooling",
    /// It was answered well before that was over.
    BucketRecovered = "bucket_recovered",
    /// A quota is used up: somebody has to look at it.
    QuotaExhausted = "quota_exhausted",
    /// A key was disabled until a person enables it.
    KeyDisabled = "key_disabled",
    /// A person enabled it.
    KeyEnabled = "key_enabled",
    /// The vendor pushed back, and the concurrency limit fell.
    ConcurrencyReduced = "concurrency_reduced",
    /// It has not for minutes, and the adaptive limit is gone.
    ConcurrencyLifted = "concurrency_lifted",
    /// A vendor that tells of its limit by 429 alone did so: requests are spread at a pace from now on.
    PaceReduced = "pace_reduced",
    /// It has not for minutes, and they no longer are.
    PaceLifted = "pace_lifted",
    /// A permit came back because its lease ended, not because its holder returned it.
    PermitLost = "permit_lost",
    /// The first call through a bucket was answered well: the others begin.
    PreflightPassed = "preflight_passed",
    /// It was refused: the others do not begin there.
    PreflightFailed = "preflight_failed",
    /// An SDK above retries too.
    DoubledRetryLayer = "doubled_retry_layer",
    /// An error answer came that no rule knows.
    UnknownErrorShape = "unknown_error_shape",
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
