//! What is asked of the control plane and what it answers: plain values, keyed by plain ids.

use super::feasibility::Feasibility;
use crate::class::{ErrorClass, Scope};
use crate::time::{Instant, Millis};

/// The caller's own number of a call; must be unique among the calls that wait or hold a permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A bucket, as long as it is remembered. `BucketId(0)` stands for one that is not tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketId(pub u64);

/// A configured key: its place among all keys of all pools, in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u32);

/// A permit to make one attempt. `PermitId(0)` is one that is not tracked; settling it does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId(pub u64);

/// Who goes first when not everybody can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody is waiting for the answer.
    #[default]
    Interactive,
    /// Nobody is. Goes after interactive work, but never waits for ever: at least each tenth turn is batch work's.
    Batch,
}

/// A request for a permit. Asked again with the same `call` it keeps its place in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Who asks.
    pub call: CallId,
    /// The provider's name, or the host of an unknown one.
    pub provider: &'a str,
    /// The model, as the request names it; empty if it names none.
    pub model: &'a str,
    /// `None`: one of the configured pools serves it. `Some`: the caller brought a key of its own, and this tells its
    /// bucket from others (a hash of the key, never the key; may be empty).
    pub account: Option<&'a str>,
    /// The tenant; empty if there is none.
    pub tenant: &'a str,
    /// Interactive or batch.
    pub priority: Priority,
    /// Input tokens, estimated; 0 if nothing is known.
    pub input_tokens: u64,
    /// The most output tokens that the request allows (`max_tokens`); 0 if nothing is known. Providers reserve it.
    pub output_tokens: u64,
    /// When the caller must have its answer. The permit's lease ends then at the latest.
    pub deadline: Instant,
    /// The least time that an attempt is worth starting with. A wait that leaves less is not begun.
    pub min_attempt: Millis,
    /// Buckets to leave for others, best avoided first: those that failed this call. Used only if there is no other.
    pub avoid: &'a [BucketId],
}

/// The answer to an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Go, and settle the permit whatever happens.
    Granted(Permit),
    /// Not yet. Ask again at `until`, or as soon as the call comes out of `take_woken`, whichever is first.
    Wait {
        /// When to ask again at the latest; always ahead of `now` and never past the deadline.
        until: Instant,
        /// What it waits for.
        reason: Reason,
    },
    /// No. A refusal of ours: it must not be settled, and counts as nobody's failure.
    Refused {
        /// What it is like, for the caller: the class of the failure that closed the way, or `rate_limited`.
        class: ErrorClass,
        /// Why.
        reason: Reason,
        /// When asking again could help, if that is known.
        retry_after: Option<Millis>,
    },
}

/// Why a call waits or was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The breaker of the provider or the model is open.
    BreakerOpen,
    /// Every bucket cools.
    BucketCooling,
    /// Every bucket has as many requests in flight as it can bear.
    ConcurrencyLimit,
    /// The estimated tokens, or one more request, do not fit what the vendor has left.
    NotEnoughHeadroom,
    /// No time for an attempt before the deadline.
    NotEnoughTimeBudget,
    /// The tenant has as many calls in flight as it may.
    TenantConcurrency,
    /// The tenant's requests of this minute are used up.
    TenantRequests,
    /// The tenant's tokens of this minute are used up.
    TenantTokens,
    /// The tenant has its share of the bucket.
    TenantShare,
    /// Others are first.
    Queued,
    /// Too many wait already.
    QueueFull,
    /// It waited for as long as it may.
    QueueTimeout,
    /// Every key that could serve the request is disabled.
    KeysDisabled,
    /// Another call goes first, to see whether the bucket answers.
    Preflight,
    /// That call was refused, so this one was not begun.
    PreflightFailed,
}

impl Reason {
    /// The public name, e.g. `breaker_open`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BreakerOpen => "breaker_open",
            Self::BucketCooling => "bucket_cooling",
            Self::ConcurrencyLimit => "concurrency_limit",
            Self::NotEnoughHeadroom => "not_enough_headroom",
            Self::NotEnoughTimeBudget => "not_enough_time_budget",
            Self::TenantConcurrency => "tenant_concurrency",
            Self::TenantRequests => "tenant_requests",
            Self::TenantTokens => "tenant_tokens",
            Self::TenantShare => "tenant_share",
            Self::Queued => "queued",
            Self::QueueFull => "queue_full",
            Self::QueueTimeout => "queue_timeout",
            Self::KeysDisabled => "keys_disabled",
            Self::Preflight => "preflight",
            Self::PreflightFailed => "preflight_failed",
        }
    }
}

/// The right to make one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// What to settle.
    pub id: PermitId,
    /// The bucket that it counts against.
    pub bucket: BucketId,
    /// The key to send, if a pool serves the request.
    pub key: Option<KeyId>,
    /// Whether it is the one probe of a half-open breaker.
    pub probe: bool,
    /// When the permit comes back by itself.
    pub lease_until: Instant,
}

/// A bucket whose answer would most likely come after the deadline (`infeasible_before_deadline`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSlow<'a> {
    /// The name of the one that was left for another; `None`: the attempt goes there all the same, since all are so slow.
    pub left: Option<&'a str>,
    /// How long an attempt there is expected to take, and what that is made from.
    pub speed: Feasibility,
    /// How long there was until the deadline.
    pub remaining: Millis,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome<'a> {
    /// `None`: it succeeded. An error event inside a 200 is a failure like any other.
    pub class: Option<ErrorClass>,
    /// What the failure speaks of; `None` means the request.
    pub scope: Option<Scope>,
    /// How long the provider says to wait.
    pub wait_hint: Option<Millis>,
    /// What the response's headers said of the bucket.
    pub limits: &'a [VendorLimit],
    /// Tokens that the provider counted; `None` if it did not say.
    pub used_tokens: Option<u64>,
    /// From the start of the attempt to its first content.
    pub first_token: Option<Millis>,
    /// From the start of the attempt to its end.
    pub latency: Millis,
    /// Tokens that were generated.
    pub output_tokens: Option<u64>,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitKind {
    /// Requests.
    Requests,
    /// Tokens, input and output together.
    Tokens,
    /// Input tokens.
    InputTokens,
    /// Output tokens.
    OutputTokens,
}

/// The time that a limit is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitWindow {
    /// A minute.
    Minute,
    /// A day.
    Day,
    /// The headers do not say.
    #[default]
    Unknown,
}

impl VendorLimit {
    /// A limit of which nothing is stated.
    pub const EMPTY: Self =
        Self { kind: LimitKind::Requests, window: LimitWindow::Unknown, limit: None, remaining: None, reset_at: None };
}

/// One limit as a response's headers state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorLimit {
    /// What is counted.
    pub kind: LimitKind,
    /// Over what time.
    pub window: LimitWindow,
    /// The whole of it, if stated.
    pub limit: Option<u64>,
    /// What is left, if stated.
    pub remaining: Option<u64>,
    /// When it is whole again, if stated.
    pub reset_at: Option<Instant>,
}
