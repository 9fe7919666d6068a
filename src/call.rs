//! One logical request, as a state machine without I/O.
//!
//! ```text
//!            Start
//!              │
//!              ▼            permit                     head 2xx               whole, good
//!        ┌─ Admitting ───────────────► Head ─────────────────────► Body ─────────────────────► Done: Deliver
//!        │     ▲                        │ │ error head, read it ──►  │
//!        │     │ slept                  │ └──────► Stream (held) ──► │ ──► Stream (committed) ─► Done
//!        │     │                        ▼ transport error, timeout   ▼ broken, in-band error
//!        │     └─────────────────── Backoff ◄── retry ────────── Judging
//!        ▼                                                          │ final
//!   Done: Fail (refused)                                            └─► Done: Return (its answer) or Fail
//! ```
//!
//! The driver's contract: give [`Call::handle`] what happened, do what the returned [`Action`] says, and arm one timer
//! for its `wake`; when that timer fires, say [`Input::Timer`]. A spurious or late timer is harmless. From any state
//! [`Input::Cancelled`] ends the call as cancelled. After a final action nothing more is expected of the call.

use crate::backoff::Backoff;
use crate::body::JsonWalk;
use crate::class::{Classification, Delivery, ErrorClass, Scope};
use crate::classify::{self, CustomRule, Signal, TransportError, providers};
use crate::control::{Admission, Ask, CallId, Control, Outcome, Permit, RetryCost};
use crate::headers::Headers;
use crate::ledger::{AttemptRecord, CallFacts, CallRecord, Decision, Status, clean};
use crate::limits;
use crate::policy::Policy;
use crate::protocol::Protocol;
use crate::time::{Instant, Millis};
use crate::usage;
use std::borrow::Cow;
use std::rc::Rc;

mod decide;
mod record;

pub use decide::Final;

/// What a call knows of itself before it begins.
#[derive(Clone, Debug)]
pub struct CallSpec {
    /// What its records share.
    pub facts: CallFacts,
    /// Provider name or host, as classified.
    pub protocol: Protocol,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Whether the request can be sent more than once.
    pub replayable: bool,
    /// Interactive before batch.
    pub batch: bool,
    /// The limits it runs under.
    pub policy: Policy,
    /// The user's own rules for its provider.
    pub rules: Rc<[CustomRule]>,
    /// When it began.
    pub started_at: Instant,
    /// When its caller must have an answer.
    pub deadline: Instant,
    /// Attempts that earlier calls of the same logical request have made.
    pub earlier_attempts: u32,
    /// How often a retry of a layer above has joined.
    pub joined: u32,
    /// Whether the driver has a hook that may overrule each classification.
    pub judged_by_user: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The call begins.
    Start,
    /// The response head of the attempt is there.
    Head {
        /// HTTP status.
        status: u16,
        /// Its headers.
        headers: Headers<'a>,
    },
    /// The body was read: to its end, or to what the action allowed.
    Body {
        /// Its bytes, or their beginning.
        bytes: &'a [u8],
        /// Whether `bytes` is all of it.
        complete: bool,
    },
    /// The attempt's request or body failed at the transport.
    Transport(TransportError<'a>),
    /// The timer armed for the last action fired.
    Timer,
    /// The user's hook has judged.
    Judged(Option<&'a Classification>),
    /// The caller gave up.
    Cancelled,
    /// The permit this call waits for may be there.
    Woken,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send an attempt; its permit names key and bucket.
    Send,
    /// Read the whole body, at most `cap` bytes.
    ReadBody {
        /// Bytes to read at most.
        cap: u64,
    },
    /// Nothing new; keep doing what was asked for.
    Continue,
    /// End what the attempt is doing (abort it), then wait.
    Sleep,
    /// Wait for a permit.
    Wait,
    /// Ask the user's hook about [`Call::verdict`].
    Judge,
    /// Done: give the caller the answer that was read.
    Deliver,
    /// Done as far as retries go: pass the stream on and say how it ends.
    DeliverStream,
    /// Done: give the caller the failed answer as it came.
    Return,
    /// Done: there is no answer; see [`Call::ending`].
    Fail,
    /// Done: the caller gave up.
    Reject,
}

#[derive(Debug)]
enum State {
    Admitting,
    Head,
    Body { status: u16, headers: String },
    Stream { bytes: u64 },
    Judging,
    Backoff { until: Instant },
    Done,
}
