//! Small text work, on bytes: numbers in and out, parts joined. `core::fmt` and `str::parse` do more than is needed here and
//! cost kilobytes of wasm.

use crate::prelude::*;

/// Appends ASCII characters; far cheaper than one `char` after the other.
pub(crate) fn push_ascii(out: &mut String, ascii: &[u8]) {
    out.push_str(core::str::from_utf8(ascii).unwrap_or_default());
}

/// Appends a number in decimal.
pub(crate) fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut from = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' | u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        from = at;
        if number == 0 {
            break;
        }
    }
    push_ascii(out, digits.get(from..).unwrap_or_default());
}

/// A number in decimal; empty for none.
pub(crate) fn decimal(number: Option<u64>) -> String {
    let mut out = String::new();
    if let Some(number) = number {
        push_number(&mut out, number);
    }
    out
}

/// The digit of a half byte.
pub(crate) fn hex_digit(nibble: u8) -> u8 {
    let nibble = nibble & 15;
    if nibble < 10 { b'0' | nibble } else { nibble.wrapping_add(b'a' - 10) }
}

/// The value of a hexadecimal digit.
pub(crate) fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit & 15),
        b'a'..=b'f' | b'A'..=b'F' => Some((digit & 15).wrapping_add(9)),
        _ => None,
    }
}

/// Parts as one string.
pub(crate) fn joined(parts: &[&str]) -> String {
    let mut out = String::new();
    for part in parts {
        out.push_str(part);
    }
    out
}

/// A whole number: digits alone, with a `+` before them or not, that fit.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = text.as_bytes().strip_prefix(b"+").unwrap_or(text.as_bytes());
    if digits.is_empty() {
        return None;
    }
    let mut sum = 0_u64;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        sum = sum.checked_mul(10)?.checked_add(value.into())?;
    }
    Some(sum)
}

/// Where the first `needle` begins, at or behind the byte `from`.
#[inline(never)]
pub(crate) fn find_from(text: &str, needle: &str, from: usize) -> Option<usize> {
    let (text, needle) = (text.as_bytes(), needle.as_bytes());
    let Some((first, others)) = needle.split_first() else { return (from <= text.len()).then_some(from) };
    let mut at = from;
    loop {
        at = at.saturating_add(memchr::memchr(*first, text.get(at..)?)?);
        let after = at.saturating_add(1);
        if text.get(after..)?.starts_with(others) {
            return Some(at);
        }
        at = after;
    }
}

/// Whether `needle` is in the text.
pub(crate) fn has(text: &str, needle: &str) -> bool {
    find_from(text, needle, 0).is_some()
}

/// What stands before and behind the first `needle`.
#[inline(never)]
pub(crate) fn cut<'a>(text: &'a str, needle: &str) -> Option<(&'a str, &'a str)> {
    let at = find_from(text, needle, 0)?;
    Some((text.get(..at)?, text.get(at.saturating_add(needle.len())..)?))
}

/// What stands before and behind the last `needle`.
#[inline(never)]
pub(crate) fn cut_last<'a>(text: &'a str, needle: &str) -> Option<(&'a str, &'a str)> {
    let (mut at, mut last) = (0, None);
    while let Some(found) = find_from(text, needle, at) {
        last = Some(found);
        at = found.saturating_add(1);
    }
    let at = last?;
    Some((text.get(..at)?, text.get(at.saturating_add(needle.len())..)?))
}

/// What stands before the first of these ASCII characters; all of it if there is none.
pub(crate) fn before<'a>(text: &'a str, ends: &'static str) -> &'a str {
    pieces(text, ends).next().unwrap_or(text)
}

/// The pieces between these ASCII characters, as `str::split` gives them.
pub(crate) fn pieces<'a>(text: &'a str, separators: &'static str) -> Pieces<'a> {
    Pieces { rest: Some(text), separators }
}

/// The pieces of a text; see [`pieces`].
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    rest: Option<&'a str>,
    separators: &'static str,
}

impl<'a> Pieces<'a> {
    /// What has not been cut yet.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest.unwrap_or("")
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    #[inline(never)]
    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest.take()?;
        let at = match self.separators.as_bytes() {
            [separator] => memchr::memchr(*separator, text.as_bytes()),
            several => text.bytes().position(|byte| several.contains(&byte)),
        };
        let Some(at) = at else { return Some(text) };
        self.rest = text.get(at.saturating_add(1)..);
        text.get(..at)
    }
}

/// The text without these ASCII characters at its beginning.
#[inline(never)]
pub(crate) fn after_any<'a>(text: &'a str, leading: &str) -> &'a str {
    let at = text.bytes().position(|byte| !leading.as_bytes().contains(&byte)).unwrap_or(text.len());
    text.get(at..).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_and_read_as_std_does() {
        for n in [0, 7, 10, 99, 100, 65_535, 1_000_000_007, u64::MAX] {
            assert_eq!(decimal(Some(n)), n.to_string());
            assert_eq!(number(&n.to_string()), Some(n));
        }
        for text in ["", "+", "+7", "007", "-1", "1a", " 1", "18446744073709551616", "1.0", "é"] {
            assert_eq!(number(text), text.parse().ok(), "{text}");
        }
        assert_eq!(decimal(None), "");
    }

    #[test]
    fn digits_are_lower_case_hexadecimal() {
        assert_eq!((0..16).map(|n| char::from(hex_digit(n))).collect::<String>(), "0123456789abcdef");
    }

    #[test]
    fn texts_are_found_and_cut_as_std_does() {
        let texts = ["", "a", "/", "aab", "aaab", "é/é", "a//b/", "https://x/y?z#w", "//", "abcabc"];
        for text in texts {
            for needle in ["a", "/", "aab", "//", "abc", "é", "://"] {
                assert_eq!(find_from(text, needle, 0), text.find(needle), "{text} {needle}");
                assert_eq!(cut(text, needle), text.split_once(needle), "{text} {needle}");
                assert_eq!(cut_last(text, needle), text.rsplit_once(needle), "{text} {needle}");
            }
            assert!(pieces(text, "/a?").eq(text.split(['/', 'a', '?'])), "{text}");
            assert_eq!(before(text, "/#"), text.split(['/', '#']).next().unwrap());
            assert_eq!(after_any(text, "a/"), text.trim_start_matches(['a', '/']));
        }
        assert!(has("abc", "") && !has("", "a"));
    }
}
