//! How a call gets its place: it asks the control plane, waits, is refused, or sends an attempt.

use super::decide::Final;
use super::{Action, COOLING_SLACK, Call, Ending, State, USER_RULE, World};
use crate::class::{Classification, ErrorClass, Scope};
use crate::control::{Admission, Ask, PermitId, Priority, Reason, RetryCost};
use crate::ledger::{AttemptRecord, Status, clean};
use crate::prelude::*;
use crate::time::{Instant, Millis};
use crate::ulid::ulid;

impl Call {
    pub(super) fn start(&mut self, world: &mut World<'_>) -> Action {
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

    pub(super) fn admit(&mut self, world: &mut World<'_>) -> Action {
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

    pub(super) fn send(&mut self, world: &mut World<'_>) -> Action {
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
        let permit = self.permit.map_or_else(PermitId::default, |permit| permit.id);
        let concurrency_limit = world.control.concurrency_limit(permit);
        let too_slow = world.control.too_slow(permit);
        let too_slow = too_slow.map(|slow| (slow.left.map_or_else(String::new, clean), slow.speed, slow.remaining));
        self.answer_kept = false;
        self.attempt = Some(Box::new(AttemptRecord {
            attempt_id: ulid(self.now, world.rng),
            attempt_no: self.attempts,
            bucket,
            client_timeout: self.now.until(self.attempt_until),
            started_at: self.now,
            finished_at: self.now,
            queue,
            too_slow,
            concurrency_limit,
            ..AttemptRecord::default()
        }));
        self.state = State::Head;
        Action::Send
    }

    /// Ends a call that was never sent, by our own refusal.
    pub(super) fn refuse(
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

    /// Whether a failure leaves another bucket of the pool, or another key, to try at once.
    pub(super) fn may_go_elsewhere(&self, verdict: &Classification, world: &World<'_>) -> bool {
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
}
