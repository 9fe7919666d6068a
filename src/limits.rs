//! What a provider says of its limits, on every response, in one form.
//!
//! Five families of headers are read: `x-ratelimit-*` (OpenAI, Groq, Azure, Cerebras, OpenRouter and many gateways),
//! `anthropic-ratelimit-*`, `anthropic-ratelimit-unified-*` (subscription plans), the IETF drafts up to 7
//! (`ratelimit-remaining`, or one `ratelimit` header of pairs) and draft 9 (`ratelimit: "api";r=0;t=149`). The same
//! name holds a Go duration at one provider, bare seconds at another and an epoch at a third: the value's own form
//! tells them apart.

use crate::classify::providers;
use crate::dates::rfc3339;
use crate::headers::Headers;
use crate::text::{self, number};
use crate::time::{Instant, Millis};
use crate::wait_hint::{duration, number_of};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Requests, or whatever a limit without a name counts.
    Requests,
    /// Tokens of both directions.
    Tokens,
    /// Tokens of the prompt.
    InputTokens,
    /// Tokens of the answer.
    OutputTokens,
    /// Use of a subscription plan as a whole (Anthropic's unified limit).
    Plan,
}

/// Over how long it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A minute.
    Minute,
    /// A day.
    Day,
    /// Not said.
    Unknown,
}

/// One limit as a response reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is counted.
    pub axis: Axis,
    /// Over how long.
    pub window: Window,
    /// The limit itself.
    pub limit: Option<u64>,
    /// What is left of it.
    pub remaining: Option<u64>,
    /// When it is full again, or the window ends.
    pub reset_at: Option<Instant>,
}

/// Most limits that one response can report; more are passed over.
pub const MAX_LIMITS: usize = 8;
const MAX_VALUE: usize = 256;

/// The limits of one response, without allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    entries: [Option<Limit>; MAX_LIMITS],
}

impl Limits {
    /// The limits that were reported, in order of their first header.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> {
        self.entries.iter().flatten()
    }

    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The first limit of that axis.
    #[must_use]
    pub fn get(&self, axis: Axis) -> Option<&Limit> {
        self.iter().find(|l| l.axis == axis)
    }

    /// How long until every used-up limit is over: the latest of their resets. `None` if none is used up.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Option<Millis> {
        self.iter().filter(|l| l.remaining == Some(0)).filter_map(|l| l.reset_at).map(|at| now.until(at)).max()
    }

    /// The entry of that axis and window, made if there is room.
    fn entry(&mut self, axis: Axis, window: Window) -> Option<&mut Limit> {
        let same = |l: &Option<Limit>| l.is_none_or(|l| l.axis == axis && l.window == window);
        let slot = self.entries.iter_mut().find(|l| same(l))?;
        Some(slot.get_or_insert(Limit { axis, window, limit: None, remaining: None, reset_at: None }))
    }

    fn push(&mut self, limit: Limit) {
        if let Some(slot) = self.entries.iter_mut().find(|l| l.is_none()) {
            *slot = Some(limit);
        }
    }
}

/// When a `reset` value means: RFC 3339, a duration with units, epoch milliseconds or seconds (by size), else seconds
/// from now. A bare `0` or a negative number is a sentinel for "no data" (Azure).
#[inline(never)]
pub(crate) fn reset(value: &str, now: Instant) -> Option<Instant> {
    let value = value.trim_ascii();
    if value == "0" {
        return None;
    }
    if let Some(seconds) = number_of(value, 1000) {
        return Some(match seconds.0 {
            100_000_000_000_000.. => Instant(number_of(value, 1)?.0),
            1_000_000_000_000.. => Instant(seconds.0),
            _ => now.plus(seconds),
        });
    }
    duration(value).map(|wait| now.plus(wait)).or_else(|| rfc3339(value))
}

#[inline(never)]
fn strip_prefix<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = name.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

/// What a header's name says: the fields between its hyphens.
#[derive(Clone, Copy)]
struct Name {
    field: Field,
    axis: Axis,
    window: Window,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Limit,
    Remaining,
    Reset,
    Status,
}

/// What a word of a header's name says.
#[derive(Clone, Copy)]
enum Word {
    Field(Field),
    Axis(Axis),
    Window(Window),
}

const WORDS: &[(&str, Word)] = &[
    ("limit", Word::Field(Field::Limit)),
    ("remaining", Word::Field(Field::Remaining)),
    ("reset", Word::Field(Field::Reset)),
    ("status", Word::Field(Field::Status)),
    ("requests", Word::Axis(Axis::Requests)),
    ("request", Word::Axis(Axis::Requests)),
    ("req", Word::Axis(Axis::Requests)),
    ("tokens", Word::Axis(Axis::Tokens)),
    ("token", Word::Axis(Axis::Tokens)),
    ("input", Word::Axis(Axis::InputTokens)),
    ("prompt", Word::Axis(Axis::InputTokens)),
    ("output", Word::Axis(Axis::OutputTokens)),
    ("generated", Word::Axis(Axis::OutputTokens)),
    ("unified", Word::Axis(Axis::Plan)),
    ("minute", Word::Window(Window::Minute)),
    ("day", Word::Window(Window::Day)),
];

/// A word that isn't listed names another kind of limit: not one of ours to guess.
fn read_name(name: &str, windows: (Window, Window)) -> Option<Name> {
    let (mut field, mut window, mut axis) = (None, None, None);
    for part in text::pieces(name, "-") {
        match WORDS.iter().find(|(word, _)| word.len() == part.len() && word.eq_ignore_ascii_case(part))?.1 {
            Word::Field(found) => field = Some(found),
            Word::Window(found) => window = Some(found),
            // `input-tokens`: the direction says more than what is counted.
            Word::Axis(Axis::Tokens) if axis.is_some() => {}
            Word::Axis(found) => axis = Some(found),
        }
    }
    let axis = axis.unwrap_or(Axis::Requests);
    let usual = match axis {
        Axis::Requests => windows.0,
        Axis::Plan => Window::Unknown,
        _ => windows.1,
    };
    Some(Name { field: field?, axis, window: window.unwrap_or(usual) })
}

/// `x-ratelimit-…`, `ratelimit-…`, `anthropic-ratelimit-…`.
#[inline(never)]
fn read_split(limits: &mut Limits, name: &str, value: &str, windows: (Window, Window), now: Instant) {
    let Some(name) = read_name(name, windows) else { return };
    let Some(entry) = limits.entry(name.axis, name.window) else { return };
    match name.field {
        Field::Limit => entry.limit = number(value),
        Field::Remaining => entry.remaining = number(value),
        Field::Reset => entry.reset_at = reset(value, now),
        Field::Status if value.eq_ignore_ascii_case("rejected") => entry.remaining = Some(0),
        Field::Status => {}
    }
}

/// `ratelimit: "api";r=0;t=149, …` (draft 9), or `limit=100, remaining=0, reset=30` (draft 7).
#[inline(never)]
fn read_combined(limits: &mut Limits, value: &str, now: Instant) {
    let blank = Limit { axis: Axis::Requests, window: Window::Unknown, limit: None, remaining: None, reset_at: None };
    let mut pairs = blank;
    for item in text::pieces(value, ",").take(MAX_LIMITS) {
        let mut own = blank;
        let structured = text::has(item, ";");
        let target = if structured { &mut own } else { &mut pairs };
        for (key, value) in text::pieces(item, ";").filter_map(|p| text::cut(p, "=")) {
            match key.trim_ascii() {
                "r" | "remaining" => target.remaining = number(value.trim_ascii()),
                "t" | "reset" => target.reset_at = number_of(value, 1000).map(|wait| now.plus(wait)),
                "q" | "limit" => target.limit = number(value.trim_ascii()),
                _ => {}
            }
        }
        if structured && own != blank {
            limits.push(own);
        }
    }
    if pairs != blank {
        limits.push(pairs);
    }
}

/// The limits that the headers of a response report.
#[must_use]
pub fn limits(provider: &str, headers: Headers<'_>, now: Instant) -> Limits {
    let mut out = Limits::default();
    let mut policy = None;
    let windows = providers::find(provider).map_or((Window::Unknown, Window::Unknown), |p| p.windows);
    for (name, value) in headers.iter() {
        if value.len() > MAX_VALUE {
            continue;
        }
        // Most headers have another first letter, and are passed over by it.
        if !name.bytes().next().is_some_and(|first| matches!(first | 0x20, b'x' | b'a' | b'r')) {
            continue;
        }
        let rest = strip_prefix(name, "x-ratelimit-")
            .or_else(|| strip_prefix(name, "anthropic-ratelimit-"))
            .or_else(|| strip_prefix(name, "ratelimit-"));
        match rest {
            Some(rest) if rest.eq_ignore_ascii_case("policy") => policy = Some(value),
            Some(rest) => read_split(&mut out, rest, value, windows, now),
            None if name.eq_ignore_ascii_case("ratelimit") => read_combined(&mut out, value, now),
            None => {}
        }
    }
    if let Some(policy) = policy {
        read_policy(&mut out, policy);
    }
    out
}

/// `ratelimit-policy: "burst";q=10;w=5, …`: quota and window of the items of `ratelimit`, in their order.
#[inline(never)]
fn read_policy(limits: &mut Limits, policy: &str) {
    for (item, limit) in text::pieces(policy, ",").zip(limits.entries.iter_mut().flatten()) {
        for (key, value) in text::pieces(item, ";").filter_map(|p| text::cut(p, "=")) {
            match (key.trim_ascii(), value.trim_ascii()) {
                ("q", quota) if limit.limit.is_none() => limit.limit = number(quota),
                ("w", "60") => limit.window = Window::Minute,
                ("w", "86400") => limit.window = Window::Day,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_795_996_800_000);

    fn read(provider: &str, headers: &str) -> Limits {
        limits(provider, Headers(headers), NOW)
    }

    #[test]
    fn the_same_header_is_a_go_duration_bare_seconds_or_an_epoch() {
        for (value, expected) in [
            ("6m0s", Some(360_000)),
            ("20ms", Some(20)),
            ("12", Some(12_000)),
            ("11.382867", Some(11_383)),
            ("1795996830", Some(30_000)),
            ("1795996860000", Some(60_000)),
            ("2026-11-30T00:00:21Z", Some(21_000)),
            ("-1", None),
            ("0", None),
            ("soon", None),
        ] {
            let headers = format!("x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: {value}\n");
            assert_eq!(read("", &headers).wait(NOW).map(|w| w.0), expected, "{value}");
        }
    }

    #[test]
    fn groq_counts_requests_by_the_day_and_tokens_by_the_minute() {
        let l = read(
            "groq",
            "x-ratelimit-limit-requests: 14400\nx-ratelimit-remaining-requests: 14370\nx-ratelimit-reset-requests: 2m59.56s\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 7.66s\n",
        );
        let requests = l.get(Axis::Requests).unwrap();
        assert_eq!((requests.window, requests.limit, requests.remaining), (Window::Day, Some(14_400), Some(14_370)));
        assert_eq!(l.get(Axis::Tokens).unwrap().window, Window::Minute);
        assert_eq!(l.wait(NOW), Some(Millis(7_660)));
    }

    #[test]
    fn anthropic_counts_input_and_output_apart_and_plans_as_a_whole() {
        let l = read(
            "anthropic",
            "anthropic-ratelimit-input-tokens-limit: 20000\nanthropic-ratelimit-input-tokens-remaining: 0\nanthropic-ratelimit-input-tokens-reset: 2026-11-30T00:00:21Z\nanthropic-ratelimit-output-tokens-remaining: 9\nanthropic-priority-input-tokens-remaining: 0\n",
        );
        assert_eq!(l.iter().count(), 2);
        assert_eq!(l.get(Axis::InputTokens).unwrap().limit, Some(20_000));
        assert_eq!(l.wait(NOW), Some(Millis(21_000)));
        let plan = read(
            "anthropic",
            "anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-reset: 1796014800\n",
        );
        assert_eq!(plan.wait(NOW), Some(Millis(18_000_000)));
        let allowed = read(
            "anthropic",
            "anthropic-ratelimit-unified-status: allowed\nanthropic-ratelimit-unified-reset: 1796014800\n",
        );
        assert_eq!(allowed.wait(NOW), None);
    }

    #[test]
    fn the_ietf_drafts_are_read_with_their_policies() {
        let l = read(
            "",
            "ratelimit: \"burst\";r=0;t=3, \"daily\";r=50;t=40000\nratelimit-policy: \"burst\";q=10;w=60, \"daily\";q=1000;w=86400\n",
        );
        let seen: Vec<_> = l.iter().map(|l| (l.window, l.limit, l.remaining)).collect();
        assert_eq!(seen, [(Window::Minute, Some(10), Some(0)), (Window::Day, Some(1000), Some(50))]);
        assert_eq!(l.wait(NOW), Some(Millis(3_000)));
        assert_eq!(read("", "ratelimit: limit=100, remaining=0, reset=30\n").wait(NOW), Some(Millis(30_000)));
        assert_eq!(read("", "RateLimit-Remaining: 0\nRateLimit-Reset: 30\n").wait(NOW), Some(Millis(30_000)));
    }

    #[test]
    fn a_thousand_limit_headers_fill_eight_places() {
        let many = "ratelimit: \"a\";r=0;t=1\n".repeat(1000);
        assert_eq!(read("", &many).iter().count(), MAX_LIMITS);
    }
}
