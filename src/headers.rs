//! Response headers as they cross the border: one string of `name:value\n` lines.
//!
//! A `fetch` header value cannot hold a line break, so nothing has to be escaped. Names are compared without regard to
//! case, and end at the colon (RFC 9110, section 5.1). The host bounds what it packs; a lookup is a scan, which for a few dozen short lines
//! is faster than building a map.

use crate::text;

/// A view of packed response headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a>(pub &'a str);

impl<'a> Headers<'a> {
    /// No headers.
    pub const EMPTY: Self = Self("");

    /// The first value of `name` (any case), trimmed; `None` if the header is absent.
    #[must_use]
    #[inline(never)]
    pub fn get(self, name: &str) -> Option<&'a str> {
        text::pieces(self.0, "\n").find_map(|line| {
            // Most lines are told apart by where their colon would be, before anything is compared.
            let same = line.as_bytes().get(name.len()) == Some(&b':');
            let (own, value) = line.split_at_checked(name.len()).filter(|_| same)?;
            own.eq_ignore_ascii_case(name).then(|| value.get(1..).unwrap_or("").trim_ascii())
        })
    }

    /// All headers in order, as trimmed `(name, value)` pairs. Lines without a colon are passed over.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        text::pieces(self.0, "\n")
            .filter_map(|line| text::cut(line, ":"))
            .map(|(n, v)| (n.trim_ascii(), v.trim_ascii()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_in_any_case_and_values_keep_their_colons() {
        let headers = Headers("Retry-After: 7\nx-url:https://a:1/\nbroken\n");
        assert_eq!(headers.get("retry-after"), Some("7"));
        assert_eq!(headers.get("X-URL"), Some("https://a:1/"));
        assert_eq!(headers.get("broken"), None);
    }
}
