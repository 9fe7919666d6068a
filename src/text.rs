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
        at = at.saturating_add(find_byte(*first, text.get(at..)?)?);
        let after = at.saturating_add(1);
        if text.get(after..)?.starts_with(others) {
            return Some(at);
        }
        at = after;
    }
}

/// Where the first such byte is.
pub(crate) fn find_byte(byte: u8, bytes: &[u8]) -> Option<usize> {
    if cfg!(target_arch = "wasm32") { find_either(byte, byte, bytes) } else { memchr::memchr(byte, bytes) }
}

/// Where the first of two bytes is.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn find_either(a: u8, b: u8, bytes: &[u8]) -> Option<usize> {
    memchr::memchr2(a, b, bytes)
}

/// Where the first of two bytes is. memchr takes steps of four bytes in wasm, these are of eight.
#[cfg(target_arch = "wasm32")]
#[inline(never)]
pub(crate) fn find_either(a: u8, b: u8, bytes: &[u8]) -> Option<usize> {
    either_by_words(a, b, bytes)
}

#[cfg(any(target_arch = "wasm32", test))]
#[inline]
fn either_by_words(a: u8, b: u8, bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let (many_a, many_b) = (ONES.wrapping_mul(a.into()), ONES.wrapping_mul(b.into()));
    let mut at = 0_usize;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let (zero_a, zero_b) = (word ^ many_a, word ^ many_b);
        // The high bit of every byte that is zero; bits above the lowest set one may lie.
        let hits = ((zero_a.wrapping_sub(ONES) & !zero_a) | (zero_b.wrapping_sub(ONES) & !zero_b)) & HIGHS;
        if hits != 0 {
            return Some(at.wrapping_add((hits.trailing_zeros() >> 3) as usize));
        }
        at = at.wrapping_add(8);
    }
    let place = bytes.get(at..)?.iter().position(|byte| *byte == a || *byte == b)?;
    Some(at.wrapping_add(place))
}

/// Where the JSON string ends whose inside begins at `at`: the place of its closing quote; `None` if it never ends.
pub(crate) fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = at.wrapping_add(find_either(b'"', b'\\', bytes.get(at..)?)?);
        if let Some(b'"') = bytes.get(at) {
            return Some(at);
        }
        at = at.wrapping_add(2);
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
            [separator] => find_byte(*separator, text.as_bytes()),
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
    fn the_first_of_two_bytes_is_found_wherever_it_is() {
        for length in 0..40 {
            for at in 0..=length {
                let mut bytes = vec![b'x'; length];
                bytes.extend_from_slice(b"\xff\x0b\x0c");
                for found in [b'\n', b'\r'] {
                    bytes[at] = found;
                    assert_eq!(either_by_words(b'\n', b'\r', &bytes), Some(at));
                    assert_eq!(find_either(b'\n', b'\r', &bytes), Some(at));
                }
                bytes[at] = b'x';
                assert_eq!(either_by_words(b'\n', b'\r', &bytes), None);
            }
        }
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
