//! What comes of an attempt that was sent: a head, a body, a broken transport, a timer that ran out.

use super::judging::ours;
use super::reading::Reading;
use super::{Action, Call, ERROR_BODY_CAP, Method, State, TIMER_SLACK, World, streaming};
use crate::class::{Classification, Delivery, ErrorClass};
use crate::classify::fingerprint::fingerprint;
use crate::classify::{Signal, TransportError, providers};
use crate::control::{LimitKind, LimitWindow, NoticeKind, VendorLimit};
use crate::headers::Headers;
use crate::json::Outline;
use crate::ledger::{clean, pack_notice};
use crate::limits::{Axis, Window};
use crate::prelude::*;
use crate::text::push_number;
use crate::time::Instant;
use crate::{classify, limits, usage};

impl Call {
    pub(super) fn on_head(&mut self, status: u16, headers: Headers<'_>, world: &mut World<'_>) -> Action {
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

    pub(super) fn on_body(
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
        // What is too long to be kept goes on after what is looked at.
        let verdict = verdict.filter(|verdict| complete || verdict.rule != "generic.cut_answer");
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
    pub(super) fn note_drift(&self, status: u16, body: &[u8], world: &mut World<'_>) {
        let shape = fingerprint(Some(status), body);
        if let Some(count) = world.drift.on_unknown(&shape) {
            let mut detail = String::from("{\"fingerprint\":\"");
            detail.extend(
                shape.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').filter(|c| !matches!(c, '"' | '\\')),
            );
            detail.push_str("\",\"count\":");
            push_number(&mut detail, count);
            detail.push('}');
            let kind = NoticeKind::UnknownErrorShape.name();
            pack_notice(kind, self.now, &self.spec.facts.provider, &detail, world.outbox);
        }
    }

    pub(super) fn on_transport(&mut self, error: TransportError<'_>, world: &mut World<'_>) -> Action {
        let verdict = self.transport_verdict(error);
        if let Some(attempt) = &mut self.attempt {
            attempt.delivery = match self.state {
                State::Head => classify::delivery(None, Some(error)),
                _ => Delivery::MaybeSent,
            };
        }
        self.judge(verdict, false, world)
    }

    pub(super) fn transport_verdict(&self, error: TransportError<'_>) -> Classification {
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
    pub(super) fn head_until(&self) -> Instant {
        self.first_byte_until.min(self.attempt_until)
    }

    pub(super) fn timed_out(&mut self, world: &mut World<'_>) -> Action {
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
