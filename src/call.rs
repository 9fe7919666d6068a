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
use crate::class::{Classification, ErrorClass};
use crate::classify::{CustomRule, TransportError};
use crate::control::{BucketId, CallId, Control, Permit};
use crate::drift::Drift;
use crate::headers::Headers;
use crate::json::{Outline, Value};
use crate::ledger::{AttemptRecord, CallFacts, Status};
use crate::policy::Policy;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::time::{Instant, Millis};
use alloc::borrow::Cow;
use alloc::rc::Rc;

mod admitting;
mod answer;
mod decide;
mod flight;
mod judging;
mod reading;
mod streaming;

use reading::Reading;
use streaming::Streaming;

pub use decide::{Facts, Final, decide};

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
    /// Whether it may be: a model call may, and what has an idempotent method (RFC 9110, section 9.2.2). An order that
    /// went through a `fetch` that was made global may not.
    pub repeatable: bool,
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
    /// What the last of them failed with.
    pub earlier_class: Option<ErrorClass>,
    /// Their packed records.
    pub earlier_records: String,
    /// What its method says of an answer.
    pub method: Method,
    /// How often a retry of a layer above has joined.
    pub joined: u32,
    /// Whether the driver has a hook that may overrule each classification.
    pub judged_by_user: bool,
    /// Whose key it brings: a keyed hash, or empty. `None`: one of the configured pools serves it.
    pub account: Option<String>,
}

/// What an HTTP method says of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The answer to what is asked: the usual case.
    #[default]
    Asks,
    /// It reads what is there (GET): a stored failure that is read is no failure of reading it.
    Reads,
    /// The answer has no body (HEAD, OPTIONS).
    Bodiless,
}

/// The rule of a verdict that the user's hook gave.
pub const USER_RULE: &str = "user.classify";

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
        /// Its bytes, or their beginning; what is left if parts were given before.
        bytes: &'a [u8],
        /// Whether that is all of it.
        complete: bool,
    },
    /// The next part of a body that is too large to be given at once.
    BodyPart(&'a [u8]),
    /// What has come of a body that is still being read; said before [`Input::Timer`], or what ends the reading.
    Progress {
        /// How much.
        bytes: u64,
        /// When its last byte came.
        last_byte: Option<Instant>,
        /// When its last byte came that is not blank.
        last_content: Option<Instant>,
    },
    /// The next chunk of a stream.
    Chunk(&'a [u8]),
    /// The stream's body has ended, without an error of the connection.
    StreamEnd,
    /// The reader of the answer was slow: nothing was read for so long.
    Idle(Millis),
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
    /// Read the stream, and hold what comes until told otherwise.
    ReadStream,
    /// The commit point: give the caller all that was held, and pass on what comes.
    Commit,
    /// Done: the stream has failed in the caller's hands. Pass on the first [`Call::pass`] bytes of the chunk at hand,
    /// then [`Call::tail`], then an error.
    Break,
    /// Done: give the caller the failed answer as it came.
    Return,
    /// Done: there is no answer; see [`Call::ending`].
    Fail,
    /// Done: the caller gave up.
    Reject,
}

/// What a call works with besides itself: the state it shares, randomness, and where its records go.
#[derive(Debug)]
pub struct World<'w> {
    /// What outlives a call.
    pub control: &'w mut Control,
    /// Seeded by the host.
    pub rng: &'w mut fastrand::Rng,
    /// Packed records, in the order in which things ended.
    pub outbox: &'w mut String,
    /// Counts the errors that no rule knows.
    pub drift: &'w mut Drift,
}

/// How a call ended without an answer, or with a failed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// What the failure is.
    pub class: ErrorClass,
    /// Why the call ended: a limit of ours, or the failure's own reason.
    pub reason: Cow<'static, str>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// How long until trying again makes sense, if that is known.
    pub retry_after: Option<Millis>,
    /// When that is.
    pub retry_at: Option<Instant>,
}

/// How much before its time a host's timer may fire and still count as having fired.
const TIMER_SLACK: Millis = Millis(1);
/// A bucket cools for exactly the hint; what a wait adds to it must not turn a hint that fits into one that does not.
const COOLING_SLACK: Millis = Millis(2_000);
/// Bytes of a failed answer that are read before it is judged; a longer one is judged by its beginning.
const ERROR_BODY_CAP: u64 = 1_048_576;
#[derive(Debug)]
enum State {
    Admitting { until: Instant },
    Head,
    Body(Box<Reading>),
    Stream(Box<Streaming>),
    Judging(Box<Judgement>),
    Backoff { until: Instant },
    Done,
}

/// A failure between its classification and the decision.
#[derive(Debug)]
struct Judgement {
    verdict: Classification,
    /// Whether the driver holds an answer that it can give to the caller as it came.
    answered: bool,
    /// The stream that failed before its commit point, if it was one.
    streaming: Option<Box<Streaming>>,
}

/// One logical request. See the module's documentation for its states and the driver's contract.
#[derive(Debug)]
pub struct Call {
    id: CallId,
    spec: CallSpec,
    state: State,
    attempts: u32,
    /// Boxed, as `ending` is: a call that waits has neither, and a hundred thousand may wait.
    attempt: Option<Box<AttemptRecord>>,
    permit: Option<Permit>,
    attempt_until: Instant,
    first_byte_until: Instant,
    /// A timer that fires while the head is waited for, and changes nothing: the gap of a body that begins before it can't
    /// end earlier, so that the driver need not move its timer when the body begins.
    glance_at: Instant,
    queued_since: Instant,
    queue: Millis,
    backoff: Millis,
    waits: Backoff,
    ending: Option<Box<Ending>>,
    failed_attempts: String,
    tail: Vec<u8>,
    pass: u64,
    /// Buckets that failed this call, the last one first.
    avoid: Vec<BucketId>,
    /// Whether the driver still holds the answer of the attempt before, which can be given to the caller.
    answer_kept: bool,
    /// What the last failed attempt was.
    last_class: Option<ErrorClass>,
    now: Instant,
}

impl Call {
    /// A call that has not begun; give it [`Input::Start`].
    #[must_use]
    pub fn new(id: CallId, spec: CallSpec) -> Self {
        let now = spec.started_at;
        let last_class = spec.earlier_class;
        let mut spec = spec;
        let failed_attempts = core::mem::take(&mut spec.earlier_records);
        let waits = Backoff::new(spec.policy.base, spec.policy.cap, spec.policy.jitter);
        Self {
            id,
            attempts: spec.earlier_attempts,
            spec,
            state: State::Done,
            attempt: None,
            permit: None,
            attempt_until: Instant::NEVER,
            first_byte_until: Instant::NEVER,
            glance_at: Instant::NEVER,
            queued_since: now,
            queue: Millis::ZERO,
            backoff: Millis::ZERO,
            waits,
            ending: None,
            failed_attempts,
            tail: Vec::new(),
            pass: 0,
            avoid: Vec::new(),
            answer_kept: false,
            last_class,
            now,
        }
    }

    /// Takes what happened and says what to do.
    ///
    /// `now` may stand still or go back; the call's own time never does. A timer that fires counts as proof that the
    /// time it was armed for has come.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, world: &mut World<'_>) -> Action {
        self.now = self.now.max(now);
        match (input, &mut self.state) {
            (Input::Start, State::Done) if self.ending.is_none() => self.start(world),
            (Input::Cancelled, state) if !matches!(state, State::Done) => self.cancel(world),
            (Input::Woken, State::Admitting { .. }) => self.admit(world),
            (Input::Timer, State::Admitting { until }) => {
                self.now = self.now.max(*until);
                self.admit(world)
            }
            (Input::Timer, State::Backoff { until }) => {
                self.now = self.now.max(*until);
                self.queued_since = self.now;
                self.admit(world)
            }
            (Input::Timer, State::Head | State::Body(_) | State::Stream(_)) => self.timed_out(world),
            (Input::Head { status, headers }, State::Head) => self.on_head(status, headers, world),
            (Input::BodyPart(part), State::Body(reading)) => {
                reading.take(part);
                Action::Continue
            }
            (Input::Progress { bytes, last_byte, last_content }, State::Body(reading)) => {
                reading.on_progress(last_byte, last_content, self.now);
                if let Some(attempt) = &mut self.attempt {
                    attempt.bytes = bytes;
                }
                Action::Continue
            }
            (Input::Body { bytes, complete }, State::Body(reading)) => {
                let empty = Reading::new(0, Headers::EMPTY, self.now);
                let mut reading = core::mem::replace(&mut **reading, empty);
                // A body that is here in one piece is looked over at once, which is several times faster than the walk that
                // can stop anywhere.
                let outline = if reading.bytes == 0 { Value::parse(bytes).map(Outline::of) } else { None };
                reading.take_last(bytes, outline.as_ref().is_some_and(Outline::is_whole_container));
                let seen = if reading.kept.is_empty() { bytes } else { &reading.kept };
                self.on_body(&reading, seen, outline.as_ref(), complete, world)
            }
            (Input::Chunk(chunk), State::Stream(streaming)) => {
                let verdict = streaming.guard.on_chunk(chunk, self.now);
                self.on_stream(verdict, world)
            }
            (Input::StreamEnd, State::Stream(streaming)) => {
                let verdict = streaming.guard.on_end(self.now);
                self.on_stream(verdict, world)
            }
            (Input::Idle(idle), State::Stream(streaming)) => {
                streaming.guard.on_idle(idle);
                Action::Continue
            }
            (Input::Transport(error), State::Stream(_)) => self.on_stream_reset(error, world),
            (Input::Transport(error), State::Head | State::Body(_)) => self.on_transport(error, world),
            (Input::Judged(overruled), State::Judging(_)) => self.on_judged(overruled, world),
            _ => Action::Continue,
        }
    }

    /// When the timer of the last action has to fire. [`Instant::NEVER`] after a final action.
    #[must_use]
    pub fn wake(&self) -> Instant {
        match &self.state {
            State::Head if self.now < self.glance_at => self.head_until().min(self.glance_at),
            State::Head => self.head_until(),
            State::Body(reading) => reading.next_look(&self.spec.policy).min(self.attempt_until),
            State::Stream(streaming) => {
                streaming.guard.next_deadline().map_or(self.attempt_until, |(at, _)| at.min(self.attempt_until))
            }
            State::Admitting { until } | State::Backoff { until } => *until,
            State::Judging(_) | State::Done => Instant::NEVER,
        }
    }

    /// How it ended, after [`Action::Return`], [`Action::Fail`] or [`Action::Reject`].
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_deref()
    }

    /// What its records share.
    #[must_use]
    pub fn facts(&self) -> &CallFacts {
        &self.spec.facts
    }

    /// The permit of the attempt under way.
    #[must_use]
    pub fn permit(&self) -> Option<&Permit> {
        self.permit.as_ref()
    }

    /// Attempts made so far, over all joined retries.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// When its caller must have an answer.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.spec.deadline
    }

    /// The packed records of the attempts that failed, for the error that the caller gets.
    #[must_use]
    pub fn failed_attempts(&self) -> &str {
        &self.failed_attempts
    }

    /// What ends a broken stream: the protocol's own error event, or nothing if the upstream sent one.
    #[must_use]
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// How many bytes of the last chunk of a failed stream are still the caller's.
    #[must_use]
    pub fn pass(&self) -> u64 {
        self.pass
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The verdict that waits for the user's hook, after [`Action::Judge`].
    #[must_use]
    pub fn verdict(&self) -> Option<&Classification> {
        match &self.state {
            State::Judging(judgement) => Some(&judgement.verdict),
            _ => None,
        }
    }

    /// Ends a call that its host abandoned without a word (a killed Worker request), as `lost`.
    pub fn abandon(&mut self, now: Instant, world: &mut World<'_>) {
        self.now = self.now.max(now);
        if !matches!(self.state, State::Done) {
            self.end_early(Status::Lost, ErrorClass::Unknown, "lost", world);
        }
    }
}
