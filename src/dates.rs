//! Dates as HTTP headers and error bodies write them.
//!
//! `HTTP-date` in its three forms (RFC 9110, section 5.6.7), RFC 3339 with any offset, and the dates that stand in
//! English sentences ("2026-12-01 at 00:00 UTC"). Anything out of range is no date at all: a value such as `-5`, which
//! JavaScript's `Date.parse` takes for the year 2001, never becomes one.

use crate::text;
use crate::time::Instant;

const MONTHS: &[u8; 36] = b"janfebmaraprmayjunjulaugsepoctnovdec";

/// Days since the epoch of a date of the proleptic Gregorian calendar (Howard Hinnant's `days_from_civil`).
#[inline(never)]
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1970..=9999).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let shifted = if month > 2 { month.checked_sub(3)? } else { month.checked_add(9)? };
    let era = year.checked_div(400)?;
    let of_era = year.checked_rem(400)?;
    let of_year = shifted.checked_mul(153)?.checked_add(2)?.checked_div(5)?.checked_add(day)?.checked_sub(1)?;
    let in_era = of_era
        .checked_mul(365)?
        .checked_add(of_era.checked_div(4)?)?
        .checked_sub(of_era.checked_div(100)?)?
        .checked_add(of_year)?;
    era.checked_mul(146_097)?.checked_add(in_era)?.checked_sub(719_468)
}

/// Milliseconds since the epoch; a leap second counts as the last second before it.
#[inline(never)]
fn epoch_ms(date: (u64, u64, u64), time: (u64, u64, u64)) -> Option<u64> {
    let (hour, minute, second) = time;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let minutes =
        days(date.0, date.1, date.2)?.checked_mul(24)?.checked_add(hour)?.checked_mul(60)?.checked_add(minute)?;
    minutes.checked_mul(60)?.checked_add(second.min(59))?.checked_mul(1000)
}

#[inline(never)]
fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text::number(text))?
}

#[inline(never)]
fn clock(text: &str) -> Option<(u64, u64, u64)> {
    let mut parts = text::pieces(text, ":");
    let hour = number(parts.next()?)?;
    let minute = number(parts.next()?)?;
    let second = parts.next().map_or(Some(0), number)?;
    parts.next().is_none().then_some((hour, minute, second))
}

fn month(name: &str) -> Option<u64> {
    let name = name.get(..3)?.to_ascii_lowercase();
    let at = MONTHS.chunks_exact(3).position(|m| m == name.as_bytes())?;
    u64::try_from(at).ok()?.checked_add(1)
}

/// An `HTTP-date`: `Mon, 30 Nov 2026 00:00:45 GMT`, and the two obsolete forms. GMT is meant whatever the zone says.
#[must_use]
#[inline(never)]
pub fn http_date(text: &str) -> Option<Instant> {
    let mut words = text::pieces(text.trim_ascii(), " -,").filter(|w| !w.is_empty());
    let first = words.next()?;
    if !first.bytes().all(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    let (a, b) = (words.next()?, words.next()?);
    let at = if let Some(month) = month(a) {
        // asctime: `Mon Nov 30 00:00:45 2026`
        let time = clock(words.next()?)?;
        epoch_ms((number(words.next()?)?, month, number(b)?), time)
    } else {
        let year = words.next()?;
        let short = year.len() == 2;
        let year = number(year)?;
        // A two-digit year (RFC 850) is of this century: no limit lies 50 years ahead.
        let year = if short { year.checked_add(2000)? } else { year };
        epoch_ms((year, month(b)?, number(a)?), clock(words.next()?)?)
    };
    at.map(Instant)
}

/// RFC 3339 (`2026-11-30T00:00:21.5+02:00`), and its looser relatives in sentences: a space or ` at ` for the `T`, no
/// seconds, `UTC` or nothing for `Z`. What follows the date is not looked at.
#[must_use]
#[inline(never)]
pub fn rfc3339(text: &str) -> Option<Instant> {
    let text = text.trim_ascii_start();
    let date = text.get(..10)?;
    let mut parts = text::pieces(date, "-");
    let date = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    let rest = text.get(10..)?;
    let time = rest
        .strip_prefix(['T', 't'])
        .or_else(|| rest.strip_prefix(" at "))
        .or_else(|| rest.strip_prefix(' '))
        .filter(|t| t.starts_with(|c: char| c.is_ascii_digit()));
    let Some(time) = time else { return epoch_ms(date, (0, 0, 0)).map(Instant) };
    let end = time.find(|c: char| !(c.is_ascii_digit() || c == ':')).unwrap_or(time.len());
    let (clock_text, mut zone) = time.split_at_checked(end)?;
    let at = epoch_ms(date, clock(clock_text)?)?;
    let mut millis = 0_u64;
    if let Some(fraction) = zone.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        let (digits, after) = fraction.split_at_checked(end)?;
        let mut scale = 100_u64;
        for digit in digits.bytes().take(3) {
            millis = millis.saturating_add(u64::from(digit.saturating_sub(b'0')).saturating_mul(scale));
            scale = scale.checked_div(10)?;
        }
        // Rounded up: what comes a nanosecond later has not come yet.
        if digits.bytes().skip(3).any(|d| d != b'0') {
            millis = millis.saturating_add(1);
        }
        zone = after;
    }
    let at = at.checked_add(millis)?;
    let (ahead, offset) = match zone.as_bytes().first() {
        Some(b'+') => (true, zone.get(1..6)),
        Some(b'-') => (false, zone.get(1..6)),
        _ => return Some(Instant(at)),
    };
    let (hours, minutes, _) = clock(offset?)?;
    let shift = hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60_000)?;
    if ahead { at.checked_sub(shift) } else { at.checked_add(shift) }.map(Instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_795_996_845_000; // 2026-11-30T00:00:45Z

    #[test]
    fn all_three_http_forms_are_read() {
        for text in ["Mon, 30 Nov 2026 00:00:45 GMT", "Monday, 30-Nov-26 00:00:45 GMT", "Mon Nov 30 00:00:45 2026"] {
            assert_eq!(http_date(text), Some(Instant(NOON)), "{text}");
        }
    }

    #[test]
    fn rfc_3339_is_read_with_any_offset_fraction_and_in_sentences() {
        for text in [
            "2026-11-30T00:00:45Z",
            "2026-11-30t02:00:45+02:00",
            "2026-11-29T18:30:45.000-05:30",
            "2026-11-30 00:00:45 UTC and so on",
        ] {
            assert_eq!(rfc3339(text), Some(Instant(NOON)), "{text}");
        }
        assert_eq!(rfc3339("2026-11-30T00:00:45.0000001Z"), Some(Instant(NOON + 1)));
        assert_eq!(rfc3339("2026-12-01 at 00:00 UTC."), Some(Instant(1_796_083_200_000)));
        assert_eq!(rfc3339("2026-12-01"), Some(Instant(1_796_083_200_000)));
    }

    #[test]
    fn what_is_no_date_stays_none() {
        for text in [
            "-5",
            "5",
            "",
            "soon",
            "Mon, 31 Nov 2026 00:00:45 GMT",
            "Mon, 30 Foo 2026 00:00:45 GMT",
            "Mon, 30 Nov 2026 25:00:45 GMT",
            "Mon, 30 Nov 99999 00:00:45 GMT",
            "Mon,",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
        for text in [
            "2026-13-01T00:00:00Z",
            "2026-02-30",
            "1969-12-31",
            "20261130T000000Z",
            "é026-11-30",
            "2026-11-30T0:0:0:0Z",
            "2026-11-30T00:00:00+99",
        ] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }
}
