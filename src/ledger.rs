//! The ledger: one record for every attempt and one for every logical request.
//!
//! Records cross the border as one packed string: fields in a fixed order separated by U+001F, records by U+001E. The
//! TypeScript side (`pkg/src/records.ts`) names the fields in the same order; a test compares the two lists. An absent
//! value is an empty field. Nothing here can hold a key or any text of a prompt or an answer: every string is an id, a
//! name from the request's own address, or one of our own words.

use crate::class::{Delivery, ErrorClass};
use crate::control::Feasibility;
use crate::prelude::*;
use crate::text::push_number;
use crate::time::{Instant, Millis};

/// Separates what stands in one field.
const ITEM: char = '\u{1d}';
/// Separates the fields of a packed record.
pub const FIELD: char = '\u{1f}';
/// Ends a packed record.
pub const RECORD: char = '\u{1e}';

/// How an attempt or a logical request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// With an answer that is one.
    Succeeded,
    /// With an error.
    #[default]
    Failed,
    /// The caller gave up; never a failure.
    Cancelled,
    /// The host ended the request without telling (a killed Worker request; found by the sweep), or the core itself failed
    /// (recorded by the wrapper).
    Lost,
}

impl Status {
    /// The public name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }
}

/// What was done after an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// Sent again after a wait.
    Retry,
    /// Given to the caller: an answer, good or bad.
    Return,
    /// Ended in an error of our own.
    #[default]
    Fail,
}

impl Decision {
    /// The public name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Return => "return",
            Self::Fail => "fail",
        }
    }
}

/// What all records of one logical request share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// Id of the logical request: a ULID, or what the caller gave.
    pub logical_request_id: String,
    /// The caller's tenant or user; empty if none was given.
    pub tenant: String,
    /// The caller's name for the operation; empty if none was given.
    pub operation: String,
    /// Provider name, or the host's where the provider is not known.
    pub provider: String,
    /// Protocol name.
    pub protocol: &'static str,
    /// Model or deployment as asked for; empty if not known.
    pub model: String,
    /// Keyed hash of the request body as 32 hex digits; empty if there is no body.
    pub prompt_hash: String,
    /// Estimated input tokens.
    pub input_token_estimate: Option<u64>,
    /// The request's own limit of output tokens.
    pub max_output_tokens: Option<u64>,
}

/// One HTTP request to a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptRecord {
    /// ULID.
    pub attempt_id: String,
    /// From 1, over the whole logical request.
    pub attempt_no: u32,
    /// What the provider counts its limits against, as far as it is known.
    pub bucket: String,
    /// The time this attempt was given, head and body together.
    pub client_timeout: Millis,
    /// When it was sent.
    pub started_at: Instant,
    /// When it ended.
    pub finished_at: Instant,
    /// How long it waited for a permit before it was sent.
    pub queue: Millis,
    /// From sending to the response head.
    pub first_byte: Option<Millis>,
    /// From sending to the first content of a stream.
    pub first_token: Option<Millis>,
    /// How it ended.
    pub status: Status,
    /// Whether the provider can have worked on it.
    pub delivery: Delivery,
    /// Status of the response, if there was one.
    pub http_status: Option<u16>,
    /// What the failure is.
    pub error_class: Option<ErrorClass>,
    /// Why: of the failure, or of the decision where a limit of ours made it.
    pub reason: String,
    /// The rule that classified it.
    pub rule: String,
    /// What was done next.
    pub decision: Decision,
    /// The provider's wait hint.
    pub retry_after: Option<Millis>,
    /// The wait before the next attempt.
    pub backoff: Option<Millis>,
    /// The provider's id of the request.
    pub provider_request_id: String,
    /// The model that answered, if the answer says.
    pub served_model: String,
    /// Usage as the provider reported it; unknown is not zero.
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included where the provider counts them so.
    pub output_tokens: Option<u64>,
    /// Input tokens served from a cache.
    pub cached_tokens: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Why the model stopped, in the provider's word.
    pub finish_reason: String,
    /// Whether a stream's terminal marker came.
    pub terminal_marker: Option<bool>,
    /// Longest time without a byte in a stream.
    pub longest_gap: Option<Millis>,
    /// Body bytes received.
    pub bytes: u64,
    /// Events of a stream whose JSON was broken; they were passed on.
    pub malformed_events: u64,
    /// The bucket whose turn it was, and that would have answered too late: its name, what is known of its speed, and the
    /// time that there was. No name: it is this attempt's own, since there was no better one.
    pub too_slow: Option<(String, Feasibility, Millis)>,
    /// How many requests the bucket might have in flight when this one was let go.
    pub concurrency_limit: Option<u32>,
}

/// How a logical request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// How it ended.
    pub status: Status,
    /// Attempts made, over all joined retries of an SDK above.
    pub attempts: u32,
    /// When it began.
    pub started_at: Instant,
    /// When it ended.
    pub finished_at: Instant,
    /// What the failure is.
    pub error_class: Option<ErrorClass>,
    /// Why.
    pub reason: String,
    /// When it makes sense to try again, if the provider said so.
    pub retry_at: Option<Instant>,
    /// Time spent waiting for permits.
    pub queue: Millis,
    /// Time spent in backoff.
    pub backoff: Millis,
    /// Usage of the answer.
    pub input_tokens: Option<u64>,
    /// Usage of the answer.
    pub output_tokens: Option<u64>,
    /// 1 for the first record of a logical request; higher when an SDK's own retry joined it and this one supersedes.
    pub revision: u32,
}

/// Names of the fields of a packed attempt record, in order; the first is the tag.
pub const ATTEMPT_FIELDS: &[&str] = &[
    "type",
    "logical_request_id",
    "attempt_id",
    "attempt_no",
    "rung",
    "user_or_tenant_id",
    "operation_type",
    "provider",
    "protocol",
    "model",
    "bucket",
    "prompt_hash",
    "input_token_estimate",
    "max_output_tokens",
    "client_timeout_ms",
    "started_at",
    "finished_at",
    "queue_ms",
    "latency_ms",
    "first_byte_ms",
    "first_token_ms",
    "status",
    "delivery",
    "http_status",
    "error_class",
    "reason",
    "rule",
    "decision",
    "retry_after_ms",
    "backoff_ms",
    "provider_request_id",
    "served_model",
    "input_token_count",
    "output_token_count",
    "cached_token_count",
    "reasoning_token_count",
    "finish_reason",
    "terminal_marker",
    "longest_gap_ms",
    "bytes",
    "malformed_events",
    "too_slow",
    "concurrency_limit",
];

/// Names of the fields of a packed call record, in order; the first is the tag.
pub const CALL_FIELDS: &[&str] = &[
    "type",
    "logical_request_id",
    "user_or_tenant_id",
    "operation_type",
    "provider",
    "protocol",
    "model",
    "prompt_hash",
    "input_token_estimate",
    "max_output_tokens",
    "status",
    "attempts",
    "rung",
    "quality",
    "fallback_used",
    "error_class",
    "reason",
    "retry_at",
    "final_result_pointer",
    "started_at",
    "finished_at",
    "latency_ms",
    "queue_ms",
    "backoff_ms",
    "input_token_count",
    "output_token_count",
    "revision",
];

/// Room for a record of the usual length, so that it is not moved as it grows.
const PACKED: usize = 512;

/// Appends fields to a packed record.
pub(crate) struct Packer<'o> {
    out: &'o mut String,
    first: bool,
}

impl<'o> Packer<'o> {
    pub(crate) fn new(out: &'o mut String) -> Self {
        Self { out, first: true }
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        if self.first {
            self.first = false;
        } else {
            self.out.push(FIELD);
        }
        self.out.push_str(value);
        self
    }

    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        self.text("");
        push_number(self.out, value);
        self
    }

    pub(crate) fn maybe(&mut self, value: Option<u64>) -> &mut Self {
        match value {
            Some(n) => self.number(n),
            None => self.text(""),
        }
    }

    fn end(&mut self) {
        self.out.push(RECORD);
    }
}

/// The rung name of a plain `keel.fetch`: there is only the primary one.
const PRIMARY: &str = "primary";

impl AttemptRecord {
    /// Appends the record to `out`, packed.
    pub fn pack(&self, call: &CallFacts, out: &mut String) {
        out.reserve(PACKED);
        let ms = |m: Option<Millis>| m.map(|m| m.0);
        let mut p = Packer::new(out);
        p.text("attempt").text(&call.logical_request_id).text(&self.attempt_id).number(u64::from(self.attempt_no));
        p.text(PRIMARY).text(&call.tenant).text(&call.operation).text(&call.provider).text(call.protocol);
        p.text(&call.model).text(&self.bucket).text(&call.prompt_hash);
        p.maybe(call.input_token_estimate).maybe(call.max_output_tokens).number(self.client_timeout.0);
        p.number(self.started_at.0).number(self.finished_at.0).number(self.queue.0);
        p.number(self.finished_at.since(self.started_at).0).maybe(ms(self.first_byte)).maybe(ms(self.first_token));
        p.text(self.status.name()).text(self.delivery.name()).maybe(self.http_status.map(u64::from));
        p.text(self.error_class.map_or("", ErrorClass::name)).text(&self.reason).text(&self.rule);
        p.text(self.decision.name()).maybe(ms(self.retry_after)).maybe(ms(self.backoff));
        p.text(&self.provider_request_id).text(&self.served_model).maybe(self.input_tokens);
        p.maybe(self.output_tokens).maybe(self.cached_tokens).maybe(self.reasoning_tokens).text(&self.finish_reason);
        p.text(match self.terminal_marker {
            Some(true) => "1",
            Some(false) => "0",
            None => "",
        });
        p.maybe(ms(self.longest_gap)).number(self.bytes).number(self.malformed_events).text("");
        if let Some((bucket, speed, remaining)) = &self.too_slow {
            p.out.push_str(bucket);
            let known = [Some(speed.estimate.0), Some(remaining.0), ms(speed.first_token), speed.tokens_per_second];
            for value in known {
                p.out.push(ITEM);
                if let Some(value) = value {
                    push_number(p.out, value);
                }
            }
        }
        p.maybe(self.concurrency_limit.map(u64::from)).end();
    }
}

impl CallRecord {
    /// Appends the record to `out`, packed.
    pub fn pack(&self, call: &CallFacts, out: &mut String) {
        out.reserve(PACKED);
        let mut p = Packer::new(out);
        p.text("call").text(&call.logical_request_id).text(&call.tenant).text(&call.operation).text(&call.provider);
        p.text(call.protocol).text(&call.model).text(&call.prompt_hash);
        p.maybe(call.input_token_estimate).maybe(call.max_output_tokens).text(self.status.name());
        p.number(u64::from(self.attempts)).text(PRIMARY).text(PRIMARY).text("0");
        p.text(self.error_class.map_or("", ErrorClass::name)).text(&self.reason);
        p.maybe(self.retry_at.map(|t| t.0)).text("").number(self.started_at.0).number(self.finished_at.0);
        p.number(self.finished_at.since(self.started_at).0).number(self.queue.0).number(self.backoff.0);
        p.maybe(self.input_tokens).maybe(self.output_tokens).number(u64::from(self.revision)).end();
    }
}

/// Appends a notice: what changed between calls. `detail` is a JSON object's text.
pub fn pack_notice(kind: &str, at: Instant, subject: &str, detail: &str, out: &mut String) {
    let mut p = Packer::new(out);
    p.text("notice").text(kind).number(at.0).text(subject).text(detail).end();
}

/// A name as it may stand in a record: at most 128 bytes, without control characters.
#[must_use]
pub fn clean(text: &str) -> String {
    if text.len() <= 128 && text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(128));
    for c in text.chars().filter(|c| !c.is_control()) {
        if out.len().saturating_add(c.len_utf8()) > 128 {
            break;
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallFacts {
        CallFacts {
            logical_request_id: "L".into(),
            provider: "openai".into(),
            protocol: "openai.chat",
            ..CallFacts::default()
        }
    }

    #[test]
    fn a_packed_record_has_as_many_fields_as_it_has_names() {
        let speed =
            Feasibility { fits: false, estimate: Millis(9_000), first_token: None, tokens_per_second: Some(50) };
        let attempt = AttemptRecord {
            attempt_id: "A".into(),
            attempt_no: 2,
            bucket: "openai/gpt-5".into(),
            client_timeout: Millis(5),
            started_at: Instant(10),
            finished_at: Instant(25),
            queue: Millis(0),
            first_byte: Some(Millis(7)),
            first_token: None,
            status: Status::Failed,
            delivery: Delivery::Answered,
            http_status: Some(429),
            error_class: Some(ErrorClass::RateLimited),
            reason: "rate_limit".into(),
            rule: "openai.rate_limit".into(),
            decision: Decision::Retry,
            retry_after: Some(Millis(2000)),
            backoff: Some(Millis(2071)),
            provider_request_id: "req_1".into(),
            served_model: String::new(),
            input_tokens: None,
            output_tokens: None,
            cached_tokens: None,
            reasoning_tokens: None,
            finish_reason: String::new(),
            terminal_marker: None,
            longest_gap: None,
            bytes: 213,
            malformed_events: 0,
            too_slow: Some(("openai/a/gpt-5".into(), speed, Millis(4_000))),
            concurrency_limit: Some(70),
        };
        let mut out = String::new();
        attempt.pack(&call(), &mut out);
        let fields: Vec<_> = out.trim_end_matches(RECORD).split(FIELD).collect();
        assert_eq!(fields.len(), ATTEMPT_FIELDS.len());
        let of = |name: &str| fields[ATTEMPT_FIELDS.iter().position(|f| *f == name).unwrap()];
        assert_eq!((of("type"), of("latency_ms"), of("http_status"), of("bytes")), ("attempt", "15", "429", "213"));
        assert_eq!(of("too_slow"), "openai/a/gpt-5\u{1d}9000\u{1d}4000\u{1d}\u{1d}50");
        assert_eq!(of("concurrency_limit"), "70");
        assert_eq!((of("error_class"), of("decision"), of("first_token_ms")), ("rate_limited", "retry", ""));
    }

    #[test]
    fn a_packed_call_has_as_many_fields_as_it_has_names() {
        let record = CallRecord {
            status: Status::Succeeded,
            attempts: 2,
            started_at: Instant(1),
            finished_at: Instant(4),
            error_class: None,
            reason: String::new(),
            retry_at: None,
            queue: Millis(0),
            backoff: Millis(2),
            input_tokens: Some(3),
            output_tokens: Some(96),
            revision: 1,
        };
        let mut out = String::new();
        record.pack(&call(), &mut out);
        assert_eq!(out.trim_end_matches(RECORD).split(FIELD).count(), CALL_FIELDS.len());
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for value in [0, 7, 10, 1_795_996_800_123, u64::MAX] {
            let mut out = String::new();
            push_number(&mut out, value);
            assert_eq!(out, value.to_string());
        }
    }

    #[test]
    fn a_name_cannot_break_a_record() {
        assert_eq!(clean("a\u{1f}b\u{1e}c\nd"), "abcd");
        assert_eq!(clean(&"é".repeat(200)).len(), 128);
    }
}
