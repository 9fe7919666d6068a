//! What a keel with the default limits would do about one failure: the verdict, and the step that follows the first
//! attempt. The command line asks this of a failure that someone has written down; a keel decides by [`decide`] itself,
//! with what it knows of the call.

use crate::call::{Facts, Final, decide};
use crate::class::{Classification, Delivery};
use crate::classify::{Signal, classify, delivery};
use crate::ledger::Decision;
use crate::policy::Policy;
use crate::stream::{FailureKind, StreamGuard, StreamTimes, Verdict};
use crate::time::Millis;

/// A failure and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// What the failure is.
    pub verdict: Classification,
    /// As in an attempt's record: [`Decision::Retry`] after the hint or a backoff; [`Decision::Return`] gives the
    /// upstream's own answer to the caller; [`Decision::Fail`] is an error, since there is no answer, or the caller
    /// already has a part of it.
    pub action: Decision,
    /// The limit that forbids a retry of what is retryable in itself; `None` if there is none.
    pub limit: Option<Final>,
    /// Whether a part of the answer had reached the caller, so that nothing may be sent again.
    pub committed: bool,
}

/// Judges an answer, or its absence, as the outcome of a first attempt under [`Policy::STANDARD`], with the whole
/// deadline left. `None`: it is a success.
#[must_use]
pub fn outlook(signal: &Signal<'_>) -> Option<Outlook> {
    let policy = Policy::STANDARD;
    let verdict = classify(signal)?;
    let (committed, broken) = if signal.stream { stream_state(signal, &policy) } else { (false, false) };
    let facts = Facts {
        verdict: &verdict,
        delivery: if broken { Delivery::MaybeSent } else { delivery(signal.status, signal.error) },
        attempts: 1,
        replayable: true,
        repeatable: true,
        now: signal.now,
        deadline: signal.now.plus(policy.total),
    };
    let answered = signal.status.is_some() && signal.error.is_none() && !broken;
    let refused = if answered { Decision::Return } else { Decision::Fail };
    let (action, limit) = match decide(&facts, &policy, Millis::ZERO, Millis::ZERO) {
        _ if committed => (if broken { Decision::Fail } else { Decision::Return }, None),
        Ok(_) => (Decision::Retry, None),
        Err(Final::NotRetryable) => (refused, None),
        Err(limit) => (refused, Some(limit)),
    };
    Some(Outlook { verdict, action, limit, committed })
}

/// Whether the caller had a part of this stream before it failed, and whether it broke. The chunks that it came in are
/// not known; taken are its lines.
fn stream_state(signal: &Signal<'_>, policy: &Policy) -> (bool, bool) {
    let times = StreamTimes { first_token: None, chunk_gap: None, content_gap: None };
    let content_type = signal.headers.get("content-type").unwrap_or_default();
    let held = usize::try_from(policy.max_held).unwrap_or(usize::MAX);
    let mut guard = StreamGuard::new(signal.protocol, content_type, policy.commit_on, held, times, signal.now);
    let mut committed = false;
    for line in signal.body.split_inclusive(|byte| *byte == b'\n') {
        match guard.on_chunk(line, signal.now) {
            Verdict::Commit => committed = true,
            // A refusal is given back as the provider wrote it.
            Verdict::Failed(failure) if failure.kind == FailureKind::ContentFiltered => return (committed, false),
            Verdict::Failed(failure) => return (committed, committed || !failure.in_band),
            Verdict::Hold | Verdict::Pass | Verdict::Ended => {}
        }
    }
    if signal.error.is_some() {
        return (committed, !matches!(guard.on_reset(signal.now), Verdict::Ended));
    }
    (committed, !matches!(guard.on_end(signal.now), Verdict::Ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::ErrorClass;
    use crate::classify::TransportError;
    use crate::headers::Headers;
    use crate::protocol::Protocol;
    use crate::time::Instant;

    fn of(signal: &Signal<'_>) -> (ErrorClass, Decision, Option<Final>) {
        let outlook = outlook(signal).unwrap();
        (outlook.verdict.class, outlook.action, outlook.limit)
    }

    fn answer<'a>(status: u16, headers: &'a str, body: &'a str) -> Signal<'a> {
        Signal {
            provider: "openai",
            protocol: Protocol::OpenAiChat,
            status: Some(status),
            headers: Headers(headers),
            body: body.as_bytes(),
            now: Instant(1_795_996_800_000),
            ..Signal::EMPTY
        }
    }

    #[test]
    fn what_passes_is_retried_and_what_does_not_is_given_back() {
        let plain = of(&answer(500, "", "{}"));
        assert_eq!(plain, (ErrorClass::ServerError, Decision::Retry, None));
        let hinted = of(&answer(429, "retry-after: 7\n", "{}"));
        assert_eq!(hinted, (ErrorClass::RateLimited, Decision::Retry, None));
        let key = of(&answer(401, "", "{}"));
        assert_eq!(key, (ErrorClass::AuthError, Decision::Return, None));
        assert_eq!(outlook(&answer(200, "", r#"{"choices":[{"finish_reason":"stop"}]}"#)), None);
    }

    #[test]
    fn a_hint_that_nobody_waits_for_is_named_as_the_limit() {
        let long = of(&answer(429, "retry-after: 61\n", "{}"));
        assert_eq!(long, (ErrorClass::RateLimited, Decision::Return, Some(Final::WaitTooLong)));
    }

    #[test]
    fn without_an_answer_there_is_only_an_error_to_give() {
        let error = Some(TransportError("TypeError\u{1f}\u{1f}fetch failed\u{1e}Error\u{1f}ECONNREFUSED\u{1f}\u{1e}"));
        let refused = of(&Signal { error, ..Signal::EMPTY });
        assert_eq!(refused, (ErrorClass::ConnectionError, Decision::Retry, None));
        let aborted = TransportError("AbortError\u{1f}\u{1f}This operation was aborted\u{1e}");
        let cancelled = of(&Signal { error: Some(aborted), ..Signal::EMPTY });
        assert_eq!(cancelled, (ErrorClass::Cancelled, Decision::Fail, None));
    }

    #[test]
    fn a_stream_is_retried_only_until_something_of_it_was_delivered() {
        let error = "data: {\"error\":{\"message\":\"down\",\"type\":\"server_error\"}}\n\n";
        let stream = |body| Signal { stream: true, ..answer(200, "content-type: text/event-stream\n", body) };
        let first = outlook(&stream(error)).unwrap();
        assert_eq!((first.action, first.committed), (Decision::Retry, false));
        let token = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
        let later = [token, error].concat();
        let later = outlook(&stream(&later)).unwrap();
        assert_eq!((later.action, later.committed), (Decision::Fail, true));
        let cut = outlook(&stream(token)).unwrap();
        assert_eq!((cut.action, cut.committed), (Decision::Fail, true));
    }
}
