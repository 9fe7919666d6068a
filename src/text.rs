//! Small text work, on bytes: numbers in and out, parts joined. `core::fmt` and `str::parse` do more than is needed here and
//! cost kilobytes of wasm.

use crate::prelude::*;

/// Appends a number in decimal.
pub(crate) fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut length: usize = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' | u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        length = length.saturating_add(1);
        if number == 0 {
            break;
        }
    }
    for digit in digits.iter().skip(digits.len().saturating_sub(length)) {
        out.push(char::from(*digit));
    }
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
pub(crate) fn hex_digit(nibble: u8) -> char {
    let nibble = nibble & 15;
    char::from(if nibble < 10 { b'0' | nibble } else { nibble.wrapping_add(b'a' - 10) })
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
        assert_eq!((0..16).map(hex_digit).collect::<String>(), "0123456789abcdef");
    }
}
