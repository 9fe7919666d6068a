//! How long a provider says to wait, whatever way it says it.
//!
//! Precedence: a `retry-after` header in its four spellings; a structured hint in the body; a hint in the body's text;
//! the reset of a limit that is used up, of several the latest. Rounded up to whole milliseconds and never capped: what
//! to do with a long wait is for the policy to say. A date that has passed is zero; a negative or malformed hint is no
//! hint at all, since taking it for zero would hammer a provider that has asked for peace. Sources: openai-node
//! `src/client.ts`, smithy `parseRetryAfterHeader.ts`, gemini-cli `googleQuotaErrors.ts`, RFC 9110 section 10.2.3.

use crate::classify::facts::{Facts, Hint};
use crate::dates::{http_date, rfc3339};
use crate::headers::Headers;
use crate::limits::limits;
use crate::text;
use crate::time::{Instant, Millis};

/// Longest header value that is looked at; a longer one is malformed.
const MAX_VALUE: usize = 128;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 86_400_000;

/// Units of time as they are written; the length of `us` and `ns` is cut to "one millisecond at most".
const UNITS: &[(&str, u64)] = &[
    ("ms", 1),
    ("msec", 1),
    ("millisecond", 1),
    ("s", SECOND),
    ("sec", SECOND),
    ("second", SECOND),
    ("m", MINUTE),
    ("min", MINUTE),
    ("minute", MINUTE),
    ("h", HOUR),
    ("hr", HOUR),
    ("hour", HOUR),
    ("d", DAY),
    ("day", DAY),
    ("us", 0),
    ("µs", 0),
    ("ns", 0),
];

/// What stands before a duration in an error's text, lower case.
const LEADS: &[&str] = &[
    "try again in ", // OpenAI, Groq
    "retry in ",     // Gemini
    "retry after ",  // Azure
    "try again after ",
    "resets in ",
    "reset in ",
    "reset after ", // Cloud Code
    "resets after ",
    "available in ",
    "wait for ",
    "wait ",
];

/// What stands before a date in an error's text, lower case.
const DATE_LEADS: &[&str] =
    &["regain access on ", "try again at ", "resets at ", "reset at ", "resets on ", "retry after "];

/// Headers that say how long to wait, best first; all but the last in milliseconds.
const HEADERS: [&str; 4] = ["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after", "retry-after"];

/// A sum of durations that keeps what is below a millisecond until the end.
#[derive(Clone, Copy, Default)]
struct Sum {
    millis: u64,
    nanos_of_ms: u64,
}

impl Sum {
    fn add(&mut self, number: Decimal, unit_ms: u64) {
        if unit_ms == 0 {
            self.nanos_of_ms = self.nanos_of_ms.saturating_add(1);
            return;
        }
        self.millis = self.millis.saturating_add(number.whole.saturating_mul(unit_ms));
        self.nanos_of_ms = self.nanos_of_ms.saturating_add(number.billionths.saturating_mul(unit_ms));
    }

    fn millis(self) -> Millis {
        Millis(self.millis.saturating_add(self.nanos_of_ms.div_ceil(1_000_000_000)))
    }
}

/// A decimal number, its fraction in billionths (rounded up past the ninth digit).
#[derive(Clone, Copy)]
struct Decimal {
    whole: u64,
    billionths: u64,
}

/// A number at the start of `text` and what follows it. No sign, no exponent.
#[inline(never)]
fn decimal(text: &str) -> Option<(Decimal, &str)> {
    let digits = |t: &str| t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len());
    let (whole_text, rest) = text.split_at_checked(digits(text))?;
    let mut number = Decimal { whole: 0, billionths: 0 };
    for digit in whole_text.bytes() {
        number.whole = number.whole.saturating_mul(10).saturating_add(u64::from(digit.saturating_sub(b'0')));
    }
    let fraction = rest.strip_prefix('.').filter(|f| f.starts_with(|c: char| c.is_ascii_digit()));
    let Some(fraction) = fraction else { return (!whole_text.is_empty()).then_some((number, rest)) };
    let (fraction, rest) = fraction.split_at_checked(digits(fraction))?;
    let mut scale = 100_000_000_u64;
    for digit in fraction.bytes() {
        let digit = u64::from(digit.saturating_sub(b'0'));
        number.billionths = number.billionths.saturating_add(digit.saturating_mul(scale));
        if scale == 0 && digit != 0 {
            number.billionths = number.billionths.saturating_add(1);
            break;
        }
        scale = scale.checked_div(10)?;
    }
    Some((number, rest))
}

#[inline(never)]
fn unit(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().position(|b| !b.is_ascii_alphabetic()).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    let found = |name: &str| UNITS.iter().find_map(|(n, ms)| n.eq_ignore_ascii_case(name).then_some(*ms));
    let ms = found(name).or_else(|| found(name.strip_suffix(['s', 'S']).filter(|n| n.len() > 1)?))?;
    Some((ms, rest))
}

/// A duration of one or more parts at the start of `text` (`7m12s`, `56.18s`, `1 hour 5 minutes`), and what follows.
#[inline(never)]
fn compound(text: &str) -> Option<(Millis, &str)> {
    let mut sum = Sum::default();
    let mut rest = text;
    let mut parts = 0_u32;
    while let Some((number, after)) = decimal(rest) {
        let Some((ms, after)) = unit(text::after_any(after, " ")) else { break };
        sum.add(number, ms);
        rest = after;
        parts = parts.saturating_add(1);
        let next = text::after_any(after, " ,");
        let next = next.strip_prefix("and ").unwrap_or(next);
        if decimal(next).and_then(|(_, after)| unit(text::after_any(after, " "))).is_none() {
            break;
        }
        rest = next;
    }
    (parts > 0).then(|| (sum.millis(), rest))
}

/// A whole text that is a duration with units: Go's `6m0s`, protobuf's `34.4s`, `539.477544ms`.
#[must_use]
#[inline(never)]
pub fn duration(text: &str) -> Option<Millis> {
    let text = text.trim_ascii();
    if text.len() > MAX_VALUE {
        return None;
    }
    compound(text).and_then(|(wait, rest)| rest.is_empty().then_some(wait))
}

/// A whole text that is a number of `unit_ms` milliseconds each, with or without a fraction.
#[must_use]
#[inline(never)]
pub fn number_of(text: &str, unit_ms: u64) -> Option<Millis> {
    let text = text.trim_ascii();
    if text.len() > MAX_VALUE {
        return None;
    }
    let (number, rest) = decimal(text)?;
    let mut sum = Sum::default();
    sum.add(number, unit_ms);
    rest.is_empty().then(|| sum.millis())
}

/// The value of a `retry-after` header: seconds with or without a fraction, a duration with units, an HTTP date, or
/// several of them joined by a comma, of which a number wins over a date, and the longer of two.
#[inline(never)]
fn retry_after(value: &str, now: Instant) -> Option<Millis> {
    let value = value.trim_ascii();
    if value.len() > MAX_VALUE {
        return None;
    }
    let span = |text: &str| number_of(text, SECOND).or_else(|| duration(text));
    let date = |text: &str| http_date(text).or_else(|| rfc3339(text)).map(|at| now.until(at));
    span(value).or_else(|| text::pieces(value, ",").filter_map(span).max()).or_else(|| date(value))
}

/// The hint of the `retry-after` headers: `retry-after-ms` over `x-ms-retry-after-ms` and `x-amz-retry-after` (all in
/// milliseconds) over `retry-after`. A malformed one gives way to the next.
#[must_use]
#[inline(never)]
pub fn header_hint(headers: Headers<'_>, now: Instant) -> Option<Millis> {
    let mut found: [Option<&str>; 4] = [None; 4];
    for (name, value) in headers.iter() {
        let at = HEADERS.iter().position(|known| known.eq_ignore_ascii_case(name));
        if let Some(slot) = at.and_then(|at| found.get_mut(at))
            && slot.is_none()
        {
            *slot = Some(value);
        }
    }
    let [a, b, c, plain] = found;
    [a, b, c].into_iter().flatten().find_map(|v| number_of(v, 1)).or_else(|| retry_after(plain?, now))
}

/// The hint in an error's text, which is lower case.
fn text_hint(text: &str, now: Instant) -> Option<Millis> {
    for lead in LEADS {
        let mut rest = text;
        for _ in 0..4 {
            let Some((_, after)) = text::cut(rest, lead) else { break };
            rest = after;
            let after = after.strip_prefix("about ").unwrap_or(after);
            if let Some((wait, _)) = compound(after) {
                return Some(wait);
            }
        }
    }
    DATE_LEADS.iter().find_map(|lead| {
        let (_, after) = text::cut(text, lead)?;
        rfc3339(after).map(|at| now.until(at))
    })
}

/// The hint that a body gives: structured before text.
pub(crate) fn body_hint(facts: &Facts, now: Instant) -> Option<Millis> {
    match facts.hint {
        Some(Hint::After(wait)) => Some(wait),
        Some(Hint::At(at)) => Some(now.until(at)),
        None => text_hint(&facts.text, now),
    }
}

/// Everything together, with the facts of the body already known.
pub(crate) fn hint(provider: &str, headers: Headers<'_>, facts: &Facts, now: Instant) -> Option<Millis> {
    if facts.hint_never_comes_true() {
        return None;
    }
    header_hint(headers, now).or_else(|| body_hint(facts, now)).or_else(|| limits(provider, headers, now).wait(now))
}

/// How long the provider says to wait; `None` if it gives no usable hint.
///
/// `body` is the body of an error, of which at most 64 KiB are looked at. No hint either where one is given but can't
/// come true: a Gemini quota of a day or of zero, and a request that is larger than the whole limit.
#[must_use]
pub fn wait_hint(provider: &str, headers: Headers<'_>, body: &[u8], now: Instant) -> Option<Millis> {
    hint(provider, headers, &Facts::of_body(headers, body), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_795_996_800_000);

    fn after(value: &str) -> Option<u64> {
        wait_hint("", Headers(&format!("retry-after: {value}\n")), b"", NOW).map(|w| w.0)
    }

    fn said(message: &str) -> Option<u64> {
        wait_hint("", Headers::EMPTY, format!(r#"{{"error":{{"message":"{message}"}}}}"#).as_bytes(), NOW).map(|w| w.0)
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        for (value, expected) in [
            ("7", Some(7000)),
            ("0", Some(0)),
            ("0.5", Some(500)),
            (".25", Some(250)),
            ("1.0001", Some(1001)),
            ("12s", Some(12_000)),
            ("86400", Some(86_400_000)),
            ("Mon, 30 Nov 2026 00:00:45 GMT", Some(45_000)),
            ("Monday, 30-Nov-26 00:00:45 GMT", Some(45_000)),
            ("Mon Nov 30 00:00:45 2026", Some(45_000)),
            ("Sun, 29 Nov 2026 00:00:00 GMT", Some(0)),
            ("Mon, 30 Nov 2026 00:00:10 GMT, 5", Some(5_000)),
            ("5, 10", Some(10_000)),
        ] {
            assert_eq!(after(value), expected, "{value}");
        }
    }

    #[test]
    fn b3_a_malformed_hint_is_absent_and_never_zero() {
        for value in
            ["soon", "", "NaN", "Infinity", "1e9", "0x10", "Mon, 99 Nov 2026 00:00:45 GMT", "12 parsecs", "1.2.3", "²"]
        {
            assert_eq!(after(value), None, "{value}");
        }
        assert_eq!(after(&"9".repeat(1 << 20)), None);
    }

    #[test]
    fn b4_a_negative_number_is_absent_and_never_a_date_and_a_past_date_is_now() {
        for value in ["-1", "-5", "-0.5", "-86400", "- 5"] {
            assert_eq!(after(value), None, "{value}");
        }
        assert_eq!(after("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn a_number_of_any_size_saturates() {
        assert_eq!(after("99999999999999999999999999"), Some(u64::MAX));
        assert_eq!(said("try again in 99999999999999999999d99999999999999999h"), Some(u64::MAX));
    }

    #[test]
    fn b2_a_wait_of_days_survives_uncapped() {
        assert_eq!(said("Usage limit reached. Resets in 16 days."), Some(16 * DAY));
        assert_eq!(after("1382400"), Some(16 * DAY));
    }

    #[test]
    fn b7_b8_one_parser_reads_headers_and_texts_alike() {
        for (message, expected) in [
            ("Please try again in 174ms. Visit", Some(174)),
            ("Please try again in 7m12s.", Some(432_000)),
            ("Please try again in 9m38.016s. Need more", Some(578_016)),
            ("Please try again in 1.984999999s. Need", Some(1985)),
            ("Please retry in 900.2ms.", Some(901)),
            ("Please retry after 33 seconds. Please go", Some(33_000)),
            ("try again in 1h4m48s", Some(3_888_000)),
            ("Please try again in 20 minutes", Some(1_200_000)),
            ("try again in 1 hour and 5 minutes or so", Some(3_900_000)),
            ("Please wait 5 seconds before", Some(5_000)),
            ("You will regain access on 2026-12-01 at 00:00 UTC.", Some(86_400_000)),
            ("Please wait before trying again. Try again in a while", None),
            ("try again in 5 to 6 parsecs", None),
            ("please try again later", None),
        ] {
            assert_eq!(said(message), expected, "{message}");
        }
    }

    #[test]
    fn milliseconds_headers_win_and_a_broken_one_gives_way() {
        let hint = |h: &str| wait_hint("", Headers(h), b"", NOW).map(|w| w.0);
        assert_eq!(hint("retry-after: 9\nretry-after-ms: 1500.5\n"), Some(1501));
        assert_eq!(hint("retry-after-ms: abc\nretry-after: 3\n"), Some(3000));
        assert_eq!(hint("retry-after-ms: 0\nretry-after: 3\n"), Some(0));
        assert_eq!(hint("Retry-After-Ms: -5\nX-MS-Retry-After-MS: 750\n"), Some(750));
        assert_eq!(hint("x-amz-retry-after: 2500\n"), Some(2500));
    }
}
