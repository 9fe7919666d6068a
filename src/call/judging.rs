//! What a failure is followed by, and how a call ends: the verdict, the decision, the records.

use super::decide::{Facts, Final, decide};
use super::{Action, Call, Ending, Judgement, State, World};
use crate::backoff::Backoff;
use crate::class::{Classification, Delivery, ErrorClass, Scope};
use crate::control::{Outcome, RetryCost};
use crate::ledger::{CallRecord, Decision, Status, clean};
use crate::prelude::*;
use crate::time::Millis;
use alloc::borrow::Cow;

impl Call {
    pub(super) fn on_judged(&mut self, overruled: Option<&Classification>, world: &mut World<'_>) -> Action {
        let State::Judging(judgement) = core::mem::replace(&mut self.state, State::Done) else {
            return Action::Continue;
        };
        let Judgement { verdict, answered, streaming } = *judgement;
        if let Some(streaming) = streaming {
            self.state = State::Stream(streaming);
        }
        self.conclude(overruled.unwrap_or(&verdict), answered, world)
    }

    pub(super) fn judge(&mut self, verdict: Classification, answered: bool, world: &mut World<'_>) -> Action {
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
    pub(super) fn conclude(&mut self, verdict: &Classification, answered: bool, world: &mut World<'_>) -> Action {
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

    pub(super) fn close_attempt(
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

    pub(super) fn succeed(&mut self, world: &mut World<'_>) -> Action {
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

    pub(super) fn cancel(&mut self, world: &mut World<'_>) -> Action {
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
    pub(super) fn end_early(&mut self, status: Status, class: ErrorClass, reason: &'static str, world: &mut World<'_>) {
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

    pub(super) fn finish(&mut self, status: Status, ending: Option<Ending>, world: &mut World<'_>) {
        self.finish_with(status, ending, None, None, world);
    }

    pub(super) fn finish_with(
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
        self.ending = ending.map(Box::new);
    }

    /// Gives the permit back with what became of the attempt.
    pub(super) fn settle(&mut self, verdict: Option<&Classification>, world: &mut World<'_>) {
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

/// A verdict of our own, not read from an answer.
pub(super) fn ours(class: ErrorClass, reason: &'static str, rule: &'static str, retryable: bool) -> Classification {
    Classification {
        class,
        retryable,
        scope: if matches!(class, ErrorClass::Cancelled) { Scope::Request } else { Scope::Provider },
        wait_hint: None,
        reason: reason.into(),
        rule: rule.into(),
    }
}
