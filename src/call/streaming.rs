//! The part of a call that is a streamed answer: held, committed, broken or ended.

use super::judging::ours;
use super::{Action, Call, State, World};
use crate::class::{Classification, Delivery, ErrorClass};
use crate::classify::{self, Signal, TransportError};
use crate::headers::Headers;
use crate::ledger::{Decision, Status, clean};
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::stream::{Failure, FailureKind, GapKind, StreamGuard, StreamTimes, Verdict};
use crate::text;
use alloc::borrow::Cow;

/// A streamed answer under way.
#[derive(Debug)]
pub(super) struct Streaming {
    pub(super) guard: StreamGuard,
    headers: String,
    /// Set where a refused answer is delivered as it is: it ends as what it was, not as a success.
    refused: Option<Classification>,
}

impl Call {
    /// Whether an answer is read piece by piece: it says so, it was asked for, or it is something (audio, a file) that
    /// has no meaning to wait for.
    pub(super) fn is_streamed(&self, content_type: &str) -> bool {
        let essence = text::before(content_type, ";").trim_ascii().to_ascii_lowercase();
        match essence.as_str() {
            "text/event-stream"
            | "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/vnd.amazon.eventstream" => true,
            // A JSON array is how Gemini streams without `alt=sse`; from others it is a whole answer.
            "application/json" => self.spec.stream && self.spec.protocol == Protocol::GeminiGenerate,
            "" => self.spec.stream,
            other => {
                self.spec.stream
                    || (self.spec.protocol == Protocol::Unknown
                        && !text::has(other, "json")
                        && !other.starts_with("text/"))
            }
        }
    }

    pub(super) fn begin_stream(&mut self, headers: Headers<'_>) -> Action {
        let policy = &self.spec.policy;
        let elapsed = self.attempt.as_ref().map_or(crate::time::Millis::ZERO, |a| self.now.since(a.started_at));
        let times = StreamTimes {
            first_token: Some(policy.first_token.minus(elapsed)),
            chunk_gap: Some(policy.chunk_gap),
            content_gap: Some(policy.content_gap),
        };
        let guard = StreamGuard::new(
            self.spec.protocol,
            headers.get("content-type").unwrap_or(""),
            policy.commit_on,
            usize::try_from(policy.max_held).unwrap_or(usize::MAX),
            times,
            self.now,
        );
        let committed = guard.is_committed();
        self.state = State::Stream(Box::new(Streaming { guard, headers: headers.0.to_owned(), refused: None }));
        if committed { Action::Commit } else { Action::ReadStream }
    }

    /// Does what the guard says of a chunk, an end or a gap.
    pub(super) fn on_stream(&mut self, verdict: Verdict, world: &mut World<'_>) -> Action {
        match verdict {
            Verdict::Hold | Verdict::Pass => Action::Continue,
            Verdict::Commit => {
                // Content is proof of health; a head is not, since errors come inside a 200 too.
                if let Some(permit) = &self.permit {
                    world.control.on_head(permit.id, &[], true, self.now);
                }
                Action::Commit
            }
            Verdict::Ended => self.stream_ended(world),
            Verdict::Failed(failure) => self.on_failure(&failure, world),
        }
    }

    /// The connection broke. An answer that was whole by then has ended well.
    pub(super) fn on_stream_reset(&mut self, error: TransportError<'_>, world: &mut World<'_>) -> Action {
        let verdict = self.transport_verdict(error);
        let now = self.now;
        let State::Stream(streaming) = &mut self.state else { return Action::Continue };
        match streaming.guard.on_reset(now) {
            Verdict::Ended => self.stream_ended(world),
            _ => self.stream_failed(verdict, 0, false, world),
        }
    }

    pub(super) fn stream_ended(&mut self, world: &mut World<'_>) -> Action {
        self.note_stream();
        let refused = match &mut self.state {
            State::Stream(streaming) => streaming.refused.take(),
            _ => None,
        };
        let Some(verdict) = refused else { return self.succeed(world) };
        self.conclude(&verdict, true, world);
        Action::Deliver
    }

    fn on_failure(&mut self, failure: &Failure, world: &mut World<'_>) -> Action {
        let verdict = self.failure_verdict(failure);
        if failure.kind == FailureKind::ContentFiltered
            && failure.before_commit
            && let State::Stream(streaming) = &mut self.state
        {
            // Asking again would only be refused again; the caller gets the refusal as the provider wrote it.
            streaming.guard.deliver_anyway();
            streaming.refused = Some(verdict);
            return Action::Commit;
        }
        let pass = u64::try_from(failure.pass_bytes).unwrap_or(u64::MAX);
        self.stream_failed(verdict, pass, failure.in_band, world)
    }

    fn failure_verdict(&self, failure: &Failure) -> Classification {
        let event_class = match failure.kind {
            FailureKind::ErrorEvent | FailureKind::FinishReason | FailureKind::ContentFiltered => {
                let headers = match &self.state {
                    State::Stream(streaming) => streaming.headers.as_str(),
                    _ => "",
                };
                classify::classify(&Signal {
                    provider: &self.spec.facts.provider,
                    protocol: self.spec.protocol,
                    url: "",
                    status: Some(200),
                    headers: Headers(headers),
                    body: &failure.event,
                    stream: true,
                    error: None,
                    custom: &self.spec.rules,
                    now: self.now,
                })
            }
            _ => None,
        };
        event_class.unwrap_or_else(|| {
            let (class, reason, rule) = match failure.kind {
                FailureKind::ErrorEvent => (ErrorClass::ServerError, "error_event", "stream.error_event"),
                FailureKind::FinishReason => (ErrorClass::ServerError, "failed_finish_reason", "stream.finish_reason"),
                FailureKind::ContentFiltered => {
                    (ErrorClass::ContentFiltered, "content_filter", "stream.content_filter")
                }
                FailureKind::EndWithoutTerminal => {
                    (ErrorClass::StreamInterrupted, "end_without_terminal", "stream.end_without_terminal")
                }
                FailureKind::Empty => (ErrorClass::StreamInterrupted, "empty_stream", "stream.empty"),
                FailureKind::Reset => (ErrorClass::StreamInterrupted, "stream_reset", "stream.reset"),
                FailureKind::InvalidFrame => (ErrorClass::StreamInterrupted, "invalid_frame", "stream.invalid_frame"),
                FailureKind::Gap(kind) => {
                    let (reason, rule) = gap_timeout(kind);
                    (ErrorClass::Timeout, reason, rule)
                }
            };
            ours(class, reason, rule, class != ErrorClass::ContentFiltered)
        })
    }

    /// A stream has failed. Before the commit point that is a failed attempt like any other; after it nothing is sent
    /// again, and the caller sees the failure where it is.
    ///
    /// `in_band`: the upstream's own error event is in the bytes that the caller gets.
    pub(super) fn stream_failed(
        &mut self,
        verdict: Classification,
        pass: u64,
        in_band: bool,
        world: &mut World<'_>,
    ) -> Action {
        self.note_stream();
        let State::Stream(streaming) = &mut self.state else { return Action::Continue };
        if !streaming.guard.is_committed() {
            if let Some(attempt) = &mut self.attempt {
                attempt.delivery = if in_band { Delivery::Answered } else { Delivery::MaybeSent };
            }
            self.pass = pass;
            return self.judge(verdict, in_band, world);
        }
        if !in_band {
            let mut tail = Vec::new();
            streaming.guard.error_event(verdict.class, &message(&verdict.reason), &mut tail);
            self.tail = tail;
        }
        self.settle(Some(&verdict), world);
        // Whatever it was, what the caller has is an interrupted answer.
        let shown = Classification { class: ErrorClass::StreamInterrupted, ..verdict };
        let reason = shown.reason.clone();
        if let Some(attempt) = &mut self.attempt {
            attempt.delivery = Delivery::Answered;
        }
        self.close_attempt(&shown, None, Decision::Fail, None, world);
        self.finish(
            Status::Failed,
            Some(super::Ending {
                class: shown.class,
                reason,
                retryable: shown.retryable,
                retry_after: shown.wait_hint,
                retry_at: shown.wait_hint.map(|hint| self.now.plus(hint)),
            }),
            world,
        );
        self.pass = pass;
        Action::Break
    }

    /// Writes what was seen of the stream into the attempt's record.
    pub(super) fn note_stream(&mut self) {
        let State::Stream(streaming) = &self.state else { return };
        let Some(attempt) = &mut self.attempt else { return };
        let facts = streaming.guard.facts();
        let word = |text: &Option<Box<str>>| text.as_deref().map_or_else(String::new, clean);
        attempt.first_token = facts.first_token_at.map(|at| at.since(attempt.started_at));
        attempt.bytes = facts.bytes;
        attempt.malformed_events = facts.malformed_events;
        attempt.longest_gap = Some(facts.longest_gap);
        attempt.terminal_marker = facts.understood.then_some(facts.terminal_seen);
        attempt.finish_reason = word(&facts.finish_reason);
        attempt.served_model = word(&facts.model);
        attempt.input_tokens = facts.usage.input;
        attempt.output_tokens = facts.usage.output;
        attempt.cached_tokens = facts.usage.cached;
        attempt.reasoning_tokens = facts.usage.reasoning;
    }
}

/// Reason and rule of a clock that ran out.
pub(super) const fn gap_timeout(kind: GapKind) -> (&'static str, &'static str) {
    match kind {
        GapKind::FirstToken => ("first_token_timeout", "timeout.first_token"),
        GapKind::ChunkGap => ("chunk_gap_timeout", "timeout.chunk_gap"),
        GapKind::ContentGap => ("content_gap_timeout", "timeout.content_gap"),
    }
}

/// What a person reads in the error event.
fn message(reason: &str) -> Cow<'static, str> {
    let mut text = String::from("evenkeel: the answer was cut short (");
    text.push_str(reason);
    text.push(')');
    Cow::Owned(text)
}
