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
use crate::class::{Classification, Delivery, ErrorClass, Scope};
use crate::classify::fingerprint::fingerprint;
use crate::classify::{self, CustomRule, Signal, TransportError, providers};
use crate::control::{
    Admission, Ask, BucketId, CallId, Control, LimitKind, LimitWindow, Outcome, Permit, Priority, Reason, RetryCost,
    VendorLimit,
};
use crate::drift::Drift;
use crate::headers::Headers;
use crate::json::{Outline, Value};
use crate::ledger::{AttemptRecord, CallFacts, CallRecord, Decision, Status, clean, pack_notice};
use crate::limits::{self, Axis, Window};
use crate::policy::Policy;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::text::push_number;
use crate::time::{Instant, Millis};
use crate::ulid::ulid;
use crate::usage;
use alloc::borrow::Cow;
use alloc::rc::Rc;

mod decide;
mod flight;
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
    attempt: Option<AttemptRecord>,
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
    ending: Option<Ending>,
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
        self.ending.as_ref()
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

    fn start(&mut self, world: &mut World<'_>) -> Action {
        if self.spec.earlier_attempts == 0 {
            world.control.on_first_attempt(&self.spec.facts.provider, self.now);
        } else {
            // The layer above retries: that is a retry like any other, and is paid for.
            let class = self.last_class.unwrap_or(ErrorClass::Unknown);
            if self.attempts >= self.spec.policy.max_attempts {
                return self.refuse(class, Final::AttemptsExhausted.reason(), None, world);
            }
            if !world.control.may_retry(&self.spec.facts.provider, RetryCost::Plain, self.now) {
                return self.refuse(class, Final::RetryBudgetExhausted.reason(), None, world);
            }
        }
        if self.now >= self.spec.deadline {
            return self.refuse(ErrorClass::Timeout, Final::DeadlineExceeded.reason(), None, world);
        }
        self.admit(world)
    }

    fn admit(&mut self, world: &mut World<'_>) -> Action {
        let facts = &self.spec.facts;
        let ask = Ask {
            call: self.id,
            provider: &facts.provider,
            model: &facts.model,
            account: self.spec.account.as_deref(),
            tenant: &facts.tenant,
            priority: if self.spec.batch { Priority::Batch } else { Priority::Interactive },
            input_tokens: facts.input_token_estimate.unwrap_or(0),
            output_tokens: facts.max_output_tokens.unwrap_or(0),
            deadline: self.spec.deadline,
            min_attempt: if self.attempts == self.spec.earlier_attempts {
                Millis::ZERO
            } else {
                self.spec.policy.min_attempt
            },
            avoid: &self.avoid,
        };
        match world.control.admit(&ask, self.now) {
            Admission::Granted(permit) => {
                self.permit = Some(permit);
                self.send(world)
            }
            Admission::Wait { until, reason } => {
                let wait = self.now.until(until);
                // A wait that would not be slept through after an answer is not begun here either.
                if reason == Reason::BucketCooling && wait > self.spec.policy.max_wait.plus(COOLING_SLACK) {
                    world.control.leave(self.id, self.now);
                    return self.refuse(ErrorClass::RateLimited, reason.name(), Some(wait), world);
                }
                self.state = State::Admitting { until };
                Action::Wait
            }
            Admission::Refused { class, reason, retry_after } => self.refuse(class, reason.name(), retry_after, world),
        }
    }

    fn send(&mut self, world: &mut World<'_>) -> Action {
        let policy = &self.spec.policy;
        let queue = self.now.since(self.queued_since);
        self.queue = self.queue.plus(queue);
        self.attempts = self.attempts.saturating_add(1);
        self.attempt_until = self.now.plus(policy.attempt).min(self.spec.deadline);
        self.first_byte_until = if self.spec.stream || policy.first_byte_always {
            self.now.plus(policy.first_byte)
        } else {
            Instant::NEVER
        };
        self.glance_at = self.now.plus(policy.chunk_gap.min(policy.content_gap));
        let bucket = self
            .permit
            .and_then(|permit| world.control.bucket(permit.bucket))
            .map_or_else(|| self.spec.facts.provider.clone(), clean);
        let passed_over = self.permit.and_then(|permit| world.control.passed_over(permit.id));
        let passed_over = passed_over.map(|other| (clean(other.bucket), other.estimate, other.remaining));
        self.answer_kept = false;
        self.attempt = Some(AttemptRecord {
            attempt_id: ulid(self.now, world.rng),
            attempt_no: self.attempts,
            bucket,
            client_timeout: self.now.until(self.attempt_until),
            started_at: self.now,
            finished_at: self.now,
            queue,
            passed_over,
            ..AttemptRecord::default()
        });
        self.state = State::Head;
        Action::Send
    }

    fn on_head(&mut self, status: u16, headers: Headers<'_>, world: &mut World<'_>) -> Action {
        let provider = &self.spec.facts.provider;
        if let Some(attempt) = &mut self.attempt {
            attempt.http_status = Some(status);
            attempt.first_byte = Some(self.now.since(attempt.started_at));
            attempt.delivery = Delivery::Answered;
            attempt.provider_request_id =
                providers::request_id(provider, headers, b"").map_or_else(String::new, |id| clean(&id));
        }
        if let Some(permit) = &self.permit {
            let mut reported = [VendorLimit::EMPTY; limits::MAX_LIMITS];
            let count = vendor_limits(provider, headers, self.now, &mut reported);
            world.control.on_head(permit.id, reported.get(..count).unwrap_or(&[]), false, self.now);
        }
        if status == 200 && self.is_streamed(headers.get("content-type").unwrap_or("")) {
            return self.begin_stream(headers);
        }
        self.state = State::Body(Box::new(Reading::new(status, headers, self.now)));
        if matches!(status, 101 | 204 | 205 | 304) || (status < 400 && self.spec.method == Method::Bodiless) {
            return self.succeed(world);
        }
        Action::ReadBody { cap: self.read_cap() }
    }

    /// How many bytes of the body at hand are read at most; 0 if none is being read.
    #[must_use]
    pub fn read_cap(&self) -> u64 {
        let State::Body(reading) = &self.state else { return 0 };
        let most = self.spec.policy.max_body;
        if reading.status >= 400 { ERROR_BODY_CAP.min(most) } else { most }
    }

    fn on_body(
        &mut self,
        reading: &Reading,
        bytes: &[u8],
        outline: Option<&Outline<'_>>,
        complete: bool,
        world: &mut World<'_>,
    ) -> Action {
        let headers = Headers(&reading.headers);
        let signal = Signal {
            provider: &self.spec.facts.provider,
            protocol: self.spec.protocol,
            url: "",
            status: Some(reading.status),
            headers,
            body: bytes,
            stream: false,
            error: None,
            custom: &self.spec.rules,
            now: self.now,
        };
        let stored = self.spec.method == Method::Reads && reading.status < 400;
        let verdict = if stored { None } else { classify::classify_outlined(&signal, outline) };
        if let Some(attempt) = &mut self.attempt {
            attempt.bytes = reading.bytes;
            attempt.delivery = classify::delivery(Some(reading.status), None);
            if attempt.provider_request_id.is_empty() && verdict.is_some() {
                attempt.provider_request_id =
                    providers::request_id(signal.provider, headers, bytes).map_or_else(String::new, |id| clean(&id));
            }
        }
        // Half an answer is nobody's, and no answer is none: neither is given to the caller, however often it comes.
        let cut_short = complete && reading.status < 300 && reading.is_cut_short(self.spec.protocol);
        let missing = verdict.as_ref().is_none_or(|verdict| classify::is_no_answer(&verdict.rule));
        if cut_short && missing {
            if let Some(attempt) = &mut self.attempt {
                attempt.delivery = Delivery::MaybeSent;
            }
            let mut cut = ours(ErrorClass::StreamInterrupted, "body_cut_short", "body.cut_short", true);
            cut.wait_hint = verdict.as_ref().and_then(|verdict| verdict.wait_hint);
            let blank = verdict.filter(|_| reading.is_blank());
            return self.judge(blank.unwrap_or(cut), false, world);
        }
        if let Some(verdict) = verdict {
            if classify::is_bare(&verdict.rule) && !reading.is_blank() {
                self.note_drift(reading.status, bytes, world);
            }
            return self.judge(verdict, true, world);
        }
        if let Some(attempt) = &mut self.attempt
            && complete
            && let Some(outline) = outline
        {
            let usage = usage::usage(self.spec.protocol, outline);
            attempt.input_tokens = usage.input;
            attempt.output_tokens = usage.output;
            attempt.cached_tokens = usage.cached;
            attempt.reasoning_tokens = usage.reasoning;
            attempt.served_model =
                usage::served_model(self.spec.protocol, outline).map_or_else(String::new, |m| clean(&m));
        }
        self.succeed(world)
    }

    /// Tells of an answer that no rule knows, by its shape.
    fn note_drift(&self, status: u16, body: &[u8], world: &mut World<'_>) {
        let shape = fingerprint(Some(status), body);
        if let Some(count) = world.drift.on_unknown(&shape) {
            let mut detail = String::from("{\"fingerprint\":\"");
            detail.extend(
                shape.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').filter(|c| !matches!(c, '"' | '\\')),
            );
            detail.push_str("\",\"count\":");
            push_number(&mut detail, count);
            detail.push('}');
            pack_notice("unknown_error_shape", self.now, &self.spec.facts.provider, &detail, world.outbox);
        }
    }

    fn on_transport(&mut self, error: TransportError<'_>, world: &mut World<'_>) -> Action {
        let verdict = self.transport_verdict(error);
        if let Some(attempt) = &mut self.attempt {
            attempt.delivery = match self.state {
                State::Head => classify::delivery(None, Some(error)),
                _ => Delivery::MaybeSent,
            };
        }
        self.judge(verdict, false, world)
    }

    fn transport_verdict(&self, error: TransportError<'_>) -> Classification {
        let signal = Signal {
            provider: &self.spec.facts.provider,
            protocol: self.spec.protocol,
            url: "",
            status: None,
            headers: Headers::EMPTY,
            body: b"",
            stream: false,
            error: Some(error),
            custom: &self.spec.rules,
            now: self.now,
        };
        classify::classify(&signal)
            .unwrap_or_else(|| ours(ErrorClass::ConnectionError, "connection_failed", "transport.unknown", true))
    }

    /// When an attempt without a head is given up.
    fn head_until(&self) -> Instant {
        self.first_byte_until.min(self.attempt_until)
    }

    fn timed_out(&mut self, world: &mut World<'_>) -> Action {
        // The host's timer may fire a little early, and early only means "look again".
        let wake = self.wake();
        if self.now.plus(TIMER_SLACK) < wake {
            return Action::Continue;
        }
        self.now = self.now.max(wake);
        if let State::Stream(streaming) = &mut self.state
            && self.now < self.attempt_until
        {
            return match streaming.guard.on_timeout(self.now) {
                Some(verdict) => self.on_stream(verdict, world),
                None => Action::Continue,
            };
        }
        let in_head = matches!(self.state, State::Head);
        let due = match &self.state {
            State::Body(reading) => reading.next_deadline(&self.spec.policy).0.min(self.attempt_until),
            _ => self.head_until(),
        };
        if !matches!(self.state, State::Stream(_)) && self.now < due {
            return Action::Continue;
        }
        let (reason, rule) = if self.now >= self.spec.deadline {
            ("deadline_exceeded", "timeout.deadline")
        } else if in_head && self.first_byte_until <= self.now {
            ("first_byte_timeout", "timeout.first_byte")
        } else if let State::Body(reading) = &self.state
            && self.now < self.attempt_until
        {
            streaming::gap_timeout(reading.next_deadline(&self.spec.policy).1)
        } else {
            ("attempt_timeout", "timeout.attempt")
        };
        if let Some(attempt) = &mut self.attempt {
            attempt.delivery = Delivery::MaybeSent;
        }
        let verdict = ours(ErrorClass::Timeout, reason, rule, true);
        if matches!(self.state, State::Stream(_)) {
            return self.stream_failed(verdict, 0, false, world);
        }
        self.judge(verdict, false, world)
    }

    fn on_judged(&mut self, overruled: Option<&Classification>, world: &mut World<'_>) -> Action {
        let State::Judging(judgement) = core::mem::replace(&mut self.state, State::Done) else {
            return Action::Continue;
        };
        let Judgement { verdict, answered, streaming } = *judgement;
        if let Some(streaming) = streaming {
            self.state = State::Stream(streaming);
        }
        self.conclude(overruled.unwrap_or(&verdict), answered, world)
    }

    fn judge(&mut self, verdict: Classification, answered: bool, world: &mut World<'_>) -> Action {
        if self.spec.judged_by_user {
            let streaming = match core::mem::replace(&mut self.state, State::Done) {
                State::Stream(streaming) => Some(streaming),
                _ => None,
            };
            self.state = State::Judging(Box::new(Judgement { verdict, answered, streaming }));
            Action::Judge
        } else {
            self.conclude(&verdict, answered, world)
        }
    }

    /// Closes the attempt with its verdict and decides what follows.
    fn conclude(&mut self, verdict: &Classification, answered: bool, world: &mut World<'_>) -> Action {
        let delivery = self.attempt.as_ref().map_or(Delivery::NotSent, |a| a.delivery);
        self.settle(Some(verdict), world);
        let policy = self.spec.policy;
        // Capacity comes back slowly, and every early return takes some of it away: an overload is waited out a step longer.
        let longer = u32::from(verdict.class == ErrorClass::Overloaded);
        let steps = self.attempts.saturating_sub(self.spec.earlier_attempts).max(1).saturating_add(longer);
        let backoff = self.waits.delay(steps, world.rng);
        let spread = verdict.wait_hint.map_or(Millis::ZERO, |hint| Backoff::hinted(hint, world.rng).minus(hint));
        let facts = Facts {
            verdict,
            delivery,
            attempts: self.attempts,
            replayable: self.spec.replayable,
            repeatable: self.spec.repeatable,
            now: self.now,
            deadline: self.spec.deadline,
        };
        let mut decision = decide(&facts, &policy, backoff, spread);
        // Another bucket (or, for a bad key, another key) has not said no: it is asked at once. That lifts what speaks of
        // this target alone: its class and its wait.
        let of_this_target =
            matches!(decision, Ok(_) | Err(Final::NotRetryable | Final::WaitTooLong | Final::NotEnoughTimeBudget));
        let room = self.attempts < policy.max_attempts
            && self.spec.replayable
            && (self.spec.repeatable || delivery == Delivery::NotSent)
            && (delivery != Delivery::MaybeSent || policy.retry_ambiguous)
            && self.now.plus(policy.min_attempt) <= self.spec.deadline;
        if of_this_target && room && self.may_go_elsewhere(verdict, world) {
            decision = Ok(Millis::ZERO);
        }
        if decision.is_ok() {
            let cost = if delivery == Delivery::MaybeSent { RetryCost::Ambiguous } else { RetryCost::Plain };
            if !world.control.may_retry(&self.spec.facts.provider, cost, self.now) {
                decision = Err(Final::RetryBudgetExhausted);
            }
        }
        match decision {
            Ok(wait) => {
                self.backoff = self.backoff.plus(wait);
                self.close_attempt(verdict, None, Decision::Retry, Some(wait), world);
                self.answer_kept = answered;
                self.last_class = Some(verdict.class);
                self.state = State::Backoff { until: self.now.plus(wait) };
                Action::Sleep
            }
            Err(why) => {
                let reason = match why.reason() {
                    "" => verdict.reason.clone(),
                    ours => Cow::Borrowed(ours),
                };
                let done = if answered { Decision::Return } else { Decision::Fail };
                self.close_attempt(verdict, Some(&reason), done, None, world);
                self.finish(
                    Status::Failed,
                    Some(Ending {
                        class: verdict.class,
                        reason,
                        retryable: verdict.retryable,
                        retry_after: verdict.wait_hint,
                        retry_at: verdict.wait_hint.map(|hint| self.now.plus(hint)),
                    }),
                    world,
                );
                if answered { Action::Return } else { Action::Fail }
            }
        }
    }

    fn close_attempt(
        &mut self,
        verdict: &Classification,
        reason: Option<&str>,
        decision: Decision,
        backoff: Option<Millis>,
        world: &mut World<'_>,
    ) {
        let Some(mut attempt) = self.attempt.take() else { return };
        attempt.finished_at = self.now;
        attempt.status = if verdict.class == ErrorClass::Cancelled { Status::Cancelled } else { Status::Failed };
        attempt.error_class = Some(verdict.class);
        attempt.reason = clean(reason.unwrap_or(&verdict.reason));
        attempt.rule = clean(&verdict.rule);
        attempt.decision = decision;
        attempt.retry_after = verdict.wait_hint;
        attempt.backoff = backoff;
        let from = world.outbox.len();
        attempt.pack(&self.spec.facts, world.outbox);
        self.failed_attempts.push_str(world.outbox.get(from..).unwrap_or(""));
    }

    fn succeed(&mut self, world: &mut World<'_>) -> Action {
        self.settle(None, world);
        if let Some(mut attempt) = self.attempt.take() {
            attempt.finished_at = self.now;
            attempt.status = Status::Succeeded;
            attempt.decision = Decision::Return;
            attempt.pack(&self.spec.facts, world.outbox);
            self.finish_with(Status::Succeeded, None, attempt.input_tokens, attempt.output_tokens, world);
        }
        Action::Deliver
    }

    fn cancel(&mut self, world: &mut World<'_>) -> Action {
        // A reader that stops behind the end of an answer has not given up on it: the OpenAI SDK does so after `[DONE]`.
        if let State::Stream(streaming) = &self.state
            && streaming.guard.is_committed()
            && streaming.guard.is_whole()
        {
            return self.stream_ended(world);
        }
        self.end_early(Status::Cancelled, ErrorClass::Cancelled, "cancelled", world);
        Action::Reject
    }

    /// Ends the call from whatever state it is in, for a reason that is nobody's failure.
    fn end_early(&mut self, status: Status, class: ErrorClass, reason: &'static str, world: &mut World<'_>) {
        self.note_stream();
        if matches!(self.state, State::Admitting { .. }) {
            world.control.leave(self.id, self.now);
        }
        let verdict = ours(class, reason, "caller.cancelled", false);
        if self.attempt.is_some() {
            self.settle(Some(&verdict), world);
        }
        if let Some(mut attempt) = self.attempt.take() {
            attempt.finished_at = self.now;
            attempt.status = status;
            attempt.error_class = Some(class);
            attempt.reason = reason.into();
            attempt.rule = if status == Status::Lost { String::new() } else { verdict.rule.clone().into_owned() };
            attempt.decision = Decision::Fail;
            attempt.delivery = attempt.delivery.max(Delivery::MaybeSent);
            attempt.pack(&self.spec.facts, world.outbox);
        }
        let ending = Ending { class, reason: reason.into(), retryable: false, retry_after: None, retry_at: None };
        self.finish(status, Some(ending), world);
    }

    /// Ends a call that was never sent, by our own refusal.
    fn refuse(
        &mut self,
        class: ErrorClass,
        reason: &'static str,
        retry_after: Option<Millis>,
        world: &mut World<'_>,
    ) -> Action {
        // The last answer goes with its own class, whatever ours is.
        let class = self.last_class.filter(|_| self.answer_kept).unwrap_or(class);
        let ending = Ending {
            class,
            reason: reason.into(),
            retryable: class.may_retry_same_target(),
            retry_after,
            retry_at: retry_after.map(|wait| self.now.plus(wait)),
        };
        self.finish(Status::Failed, Some(ending), world);
        if self.answer_kept { Action::Return } else { Action::Fail }
    }

    fn finish(&mut self, status: Status, ending: Option<Ending>, world: &mut World<'_>) {
        self.finish_with(status, ending, None, None, world);
    }

    fn finish_with(
        &mut self,
        status: Status,
        ending: Option<Ending>,
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        world: &mut World<'_>,
    ) {
        if matches!(self.state, State::Admitting { .. }) {
            self.queue = self.queue.plus(self.now.since(self.queued_since));
        }
        self.state = State::Done;
        let record = CallRecord {
            status,
            attempts: self.attempts,
            started_at: self.spec.started_at,
            finished_at: self.now,
            error_class: ending.as_ref().map(|e| e.class),
            reason: ending.as_ref().map_or_else(String::new, |e| clean(&e.reason)),
            retry_at: ending.as_ref().and_then(|e| e.retry_at),
            queue: self.queue,
            backoff: self.backoff,
            input_tokens,
            output_tokens,
            revision: self.spec.joined.saturating_add(1),
        };
        record.pack(&self.spec.facts, world.outbox);
        self.ending = ending;
    }

    /// Whether a failure leaves another bucket of the pool, or another key, to try at once.
    fn may_go_elsewhere(&self, verdict: &Classification, world: &World<'_>) -> bool {
        if verdict.rule == USER_RULE && !verdict.retryable {
            return false; // the user's hook has the last word
        }
        let of_key = matches!(verdict.class, ErrorClass::AuthError | ErrorClass::PermissionError);
        let failed = if of_key { None } else { self.avoid.first().copied() };
        let elsewhere = match verdict.class {
            ErrorClass::AuthError | ErrorClass::PermissionError => verdict.scope == Scope::Key,
            ErrorClass::RateLimited
            | ErrorClass::QuotaExhausted
            | ErrorClass::ServerError
            | ErrorClass::ConnectionError
            | ErrorClass::Timeout
            | ErrorClass::StreamInterrupted => matches!(verdict.scope, Scope::Key | Scope::Bucket),
            _ => false,
        };
        elsewhere
            && self.spec.account.is_none()
            && world.control.has_alternative(&self.spec.facts.provider, &self.spec.facts.model, failed, self.now)
    }

    /// Gives the permit back with what became of the attempt.
    fn settle(&mut self, verdict: Option<&Classification>, world: &mut World<'_>) {
        let Some(permit) = self.permit.take() else { return };
        let Some(attempt) = &self.attempt else { return };
        if verdict.is_some() {
            self.avoid.insert(0, permit.bucket);
            self.avoid.truncate(4);
        }
        let outcome = Outcome {
            class: verdict.map(|v| v.class),
            scope: verdict.map(|v| v.scope),
            wait_hint: verdict.and_then(|v| v.wait_hint),
            limits: &[],
            used_tokens: attempt.input_tokens.map(|i| i.saturating_add(attempt.output_tokens.unwrap_or(0))),
            first_token: attempt.first_token,
            latency: self.now.since(attempt.started_at),
            output_tokens: attempt.output_tokens,
        };
        world.control.settle(permit.id, &outcome, self.now);
    }
}

/// The limits that a response's headers report, as the control plane takes them; returns how many there are.
fn vendor_limits(
    provider: &str,
    headers: Headers<'_>,
    now: Instant,
    into: &mut [VendorLimit; limits::MAX_LIMITS],
) -> usize {
    let mut count = 0_usize;
    for limit in limits::limits(provider, headers, now).iter() {
        let kind = match limit.axis {
            Axis::Requests => LimitKind::Requests,
            Axis::Tokens => LimitKind::Tokens,
            Axis::InputTokens => LimitKind::InputTokens,
            Axis::OutputTokens => LimitKind::OutputTokens,
            Axis::Plan => continue,
        };
        let window = match limit.window {
            Window::Minute => LimitWindow::Minute,
            Window::Day => LimitWindow::Day,
            Window::Unknown => LimitWindow::Unknown,
        };
        if let Some(slot) = into.get_mut(count) {
            let (total, remaining, reset_at) = (limit.limit, limit.remaining, limit.reset_at);
            *slot = VendorLimit { kind, window, limit: total, remaining, reset_at };
            count = count.saturating_add(1);
        }
    }
    count
}

/// A verdict of our own, not read from an answer.
fn ours(class: ErrorClass, reason: &'static str, rule: &'static str, retryable: bool) -> Classification {
    Classification {
        class,
        retryable,
        scope: if matches!(class, ErrorClass::Cancelled) { Scope::Request } else { Scope::Provider },
        wait_hint: None,
        reason: reason.into(),
        rule: rule.into(),
    }
}
