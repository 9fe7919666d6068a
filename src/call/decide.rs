//! The retry decision: one pure function from what is known to what is done, with its reason.

use super::Policy;
use crate::class::{Classification, Delivery};
use crate::time::{Instant, Millis};

/// What the decision looks at.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What the failure is.
    pub verdict: &'a Classification,
    /// Whether the provider can have worked on it.
    pub delivery: Delivery,
    /// Attempts made so far, over all joined retries.
    pub attempts: u32,
    /// Whether the request can be sent again at all.
    pub replayable: bool,
    /// Whether sending it twice can do no more harm than paying twice: a model call, or a method that is idempotent.
    pub repeatable: bool,
    /// When it failed.
    pub now: Instant,
    /// When the caller must have an answer.
    pub deadline: Instant,
}

/// Why a call ends here although (or because) the failure is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Final {
    /// The class may not be retried; the failure's own reason says why.
    NotRetryable,
    /// Every attempt was used.
    AttemptsExhausted,
    /// The provider may have carried it out, and `retry.ambiguous` is `"never"`.
    AmbiguousNotRetried,
    /// The body was a stream too large to keep.
    BodyNotReplayable,
    /// It may have been carried out, and nothing tells that it is a model call, which may be repeated.
    NotSafeToRepeat,
    /// The hint is longer than `retry.maxWaitMs`.
    WaitTooLong,
    /// The wait would not leave time for an attempt before the deadline.
    NotEnoughTimeBudget,
    /// The retry budget is empty.
    RetryBudgetExhausted,
    /// The deadline has passed.
    DeadlineExceeded,
}

impl Final {
    /// The public word; empty for [`Final::NotRetryable`], where the failure's own reason stands.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotRetryable => "",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::AmbiguousNotRetried => "ambiguous_not_retried",
            Self::BodyNotReplayable => "body_not_replayable",
            Self::NotSafeToRepeat => "not_safe_to_repeat",
            Self::WaitTooLong => "wait_too_long",
            Self::NotEnoughTimeBudget => "not_enough_time_budget",
            Self::RetryBudgetExhausted => "retry_budget_exhausted",
            Self::DeadlineExceeded => "deadline_exceeded",
        }
    }
}

/// Decides whether a failed attempt is followed by another, and after how long.
///
/// * `backoff` is the wait by formula, used where the provider gave no hint.
/// * `spread` is a small random time added to a hint, so that a fleet does not come back in one instant. A hint is never
///   shortened.
///
/// The retry budget is asked last, and by the caller of this function, since asking it draws on it.
///
/// # Errors
/// The [`Final`] that forbids another attempt.
///
/// # Example
/// A 429 with a hint of 2 s and a spread of 71 ms on the first of three attempts gives `Ok(2_071 ms)`; the same hint with
/// 2.5 s left before the deadline and `min_attempt` of 1 s gives `Err(NotEnoughTimeBudget)`.
pub fn decide(facts: &Facts<'_>, policy: &Policy, backoff: Millis, spread: Millis) -> Result<Millis, Final> {
    let verdict = facts.verdict;
    if facts.now >= facts.deadline {
        return Err(Final::DeadlineExceeded);
    }
    if !verdict.retryable || !verdict.class.may_retry_same_target() {
        return Err(Final::NotRetryable);
    }
    if facts.attempts >= policy.max_attempts {
        return Err(Final::AttemptsExhausted);
    }
    if !facts.replayable {
        return Err(Final::BodyNotReplayable);
    }
    if !facts.repeatable && facts.delivery != Delivery::NotSent {
        return Err(Final::NotSafeToRepeat);
    }
    if facts.delivery == Delivery::MaybeSent && !policy.retry_ambiguous {
        return Err(Final::AmbiguousNotRetried);
    }
    if verdict.wait_hint.is_some_and(|hint| hint > policy.max_wait) {
        return Err(Final::WaitTooLong);
    }
    let wait = verdict.wait_hint.map_or(backoff, |hint| hint.plus(spread));
    if facts.now.plus(wait).plus(policy.min_attempt) > facts.deadline {
        return Err(Final::NotEnoughTimeBudget);
    }
    Ok(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{ErrorClass, Scope};

    fn verdict(class: ErrorClass, retryable: bool, hint: Option<u64>) -> Classification {
        Classification {
            class,
            retryable,
            scope: Scope::Provider,
            wait_hint: hint.map(Millis),
            reason: "r".into(),
            rule: "x.r".into(),
        }
    }

    fn ask(verdict: &Classification, attempts: u32, left: u64) -> Result<Millis, Final> {
        let facts = Facts {
            verdict,
            delivery: Delivery::Answered,
            attempts,
            replayable: true,
            repeatable: true,
            now: Instant(1_000),
            deadline: Instant(1_000).plus(Millis(left)),
        };
        decide(&facts, &Policy::STANDARD, Millis(300), Millis(71))
    }

    #[test]
    fn the_decision_table() {
        use ErrorClass::{BadRequest, Cancelled, Overloaded, QuotaExhausted, RateLimited, ServerError, Unknown};
        let rows = [
            // class, retryable, hint, attempts made, time left -> wait or reason
            (ServerError, true, None, 1, 60_000, Ok(300)),
            (RateLimited, true, Some(2_000), 1, 60_000, Ok(2_071)),
            (RateLimited, true, Some(0), 1, 60_000, Ok(71)),
            (RateLimited, true, Some(60_000), 1, 600_000, Ok(60_071)),
            (RateLimited, true, Some(60_001), 1, 600_000, Err(Final::WaitTooLong)),
            (RateLimited, true, Some(2_000), 1, 3_070, Err(Final::NotEnoughTimeBudget)),
            (RateLimited, true, Some(2_000), 1, 3_071, Ok(2_071)),
            (Overloaded, true, None, 3, 60_000, Err(Final::AttemptsExhausted)),
            (ServerError, false, None, 1, 60_000, Err(Final::NotRetryable)),
            (BadRequest, true, None, 1, 60_000, Err(Final::NotRetryable)),
            (QuotaExhausted, true, Some(5), 1, 60_000, Err(Final::NotRetryable)),
            (Cancelled, true, None, 1, 60_000, Err(Final::NotRetryable)),
            (Unknown, true, None, 1, 60_000, Err(Final::NotRetryable)),
            (ServerError, true, None, 1, 0, Err(Final::DeadlineExceeded)),
        ];
        for (class, retryable, hint, attempts, left, want) in rows {
            let got = ask(&verdict(class, retryable, hint), attempts, left);
            assert_eq!(got, want.map(Millis), "{class:?} {hint:?} attempts {attempts} left {left}");
        }
    }

    #[test]
    fn what_may_have_been_carried_out_is_not_repeated_if_the_user_says_so() {
        let v = verdict(ErrorClass::ConnectionError, true, None);
        let facts = Facts {
            verdict: &v,
            delivery: Delivery::MaybeSent,
            attempts: 1,
            replayable: true,
            repeatable: true,
            now: Instant(0),
            deadline: Instant(60_000),
        };
        let never = Policy { retry_ambiguous: false, ..Policy::STANDARD };
        assert_eq!(decide(&facts, &never, Millis(1), Millis(0)), Err(Final::AmbiguousNotRetried));
        assert_eq!(
            decide(&Facts { delivery: Delivery::NotSent, ..facts }, &never, Millis(1), Millis(0)),
            Ok(Millis(1))
        );
        assert_eq!(decide(&facts, &Policy::STANDARD, Millis(1), Millis(0)), Ok(Millis(1)));
        let stranger = Facts { repeatable: false, ..facts };
        assert_eq!(decide(&stranger, &Policy::STANDARD, Millis(1), Millis(0)), Err(Final::NotSafeToRepeat));
        let unsent = Facts { delivery: Delivery::NotSent, ..stranger };
        assert_eq!(decide(&unsent, &Policy::STANDARD, Millis(1), Millis(0)), Ok(Millis(1)));
        assert_eq!(
            decide(&Facts { replayable: false, ..facts }, &Policy::STANDARD, Millis(1), Millis(0)),
            Err(Final::BodyNotReplayable)
        );
    }
}
