//! A bounded look into JSON that may be cut, wrong or hostile.
//!
//! Nothing is built: a [`Value`] is the bytes from where a value begins, and asking for a member skips over what
//! stands before it. Skipping is one forward pass with a depth counter, so nesting costs neither stack nor memory. Cut
//! input gives what is there; a broken one gives less, never a panic. Member names are compared as raw bytes, the last
//! of two equal names is not preferred: the first one counts.

use crate::prelude::*;
use crate::text::{self, number, string_end};

/// What a value looks like from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number, by its first byte.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`
    Null,
    /// Not JSON.
    Other,
}

/// The bytes from where a JSON value begins; they may go on past its end.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a>(&'a [u8]);

/// The most members of which [`Outline`] takes note; a real answer has some twenty.
const MAX_MEMBERS: usize = 1024;

/// The bytes after leading white space.
fn skip_space(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// What follows a string whose opening quote has been read; `None` if it never ends.
#[inline(never)]
fn skip_string(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(string_end(bytes, 0)?.wrapping_add(1)..)
}

/// What follows one value; `None` if it is cut.
#[inline(never)]
fn skip_value(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [b'"', rest @ ..] => skip_string(rest),
        [b'{' | b'[', ..] => {
            let mut rest = bytes;
            let mut depth = 0_u32;
            loop {
                let at = rest.iter().position(|b| matches!(b, b'"' | b'{' | b'}' | b'[' | b']'))?;
                match rest.get(at..)? {
                    [b'"', after @ ..] => rest = skip_string(after)?,
                    [b'{' | b'[', after @ ..] => {
                        depth = depth.saturating_add(1);
                        rest = after;
                    }
                    [_, after @ ..] => {
                        depth = depth.saturating_sub(1);
                        rest = after;
                        if depth == 0 {
                            return Some(rest);
                        }
                    }
                    [] => return None,
                }
            }
        }
        _ => {
            let end = bytes
                .iter()
                .position(|b| matches!(b, b',' | b']' | b'}' | b':' | b'"' | b' ' | b'\n' | b'\r' | b'\t'))
                .unwrap_or(bytes.len());
            bytes.get(end..)
        }
    }
}

impl<'a> Value<'a> {
    /// The value that `bytes` begin with, after white space and a byte order mark; `None` if nothing is there.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let bytes = skip_space(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes));
        (!bytes.is_empty()).then_some(Self(bytes))
    }

    /// What it looks like.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self.0 {
            [b'{', ..] => Kind::Object,
            [b'[', ..] => Kind::Array,
            [b'"', ..] => Kind::String,
            [b'-' | b'0'..=b'9', ..] => Kind::Number,
            [b't' | b'f', ..] => Kind::Bool,
            [b'n', ..] => Kind::Null,
            _ => Kind::Other,
        }
    }

    /// What follows the value; `None` if the value is cut.
    #[must_use]
    #[inline(never)]
    pub fn rest(self) -> Option<&'a [u8]> {
        skip_value(self.0)
    }

    /// The value's own bytes: up to its end, or up to the end of the input if it is cut.
    #[must_use]
    #[inline(never)]
    pub fn bytes(self) -> &'a [u8] {
        let rest = self.rest().map_or(0, <[u8]>::len);
        self.0.get(..self.0.len().saturating_sub(rest)).unwrap_or(self.0)
    }

    /// Whether something else than `null`, `false`, `""`, `{}` or `[]` is there.
    #[must_use]
    #[inline(never)]
    pub fn is_something(self) -> bool {
        match self.0 {
            [b'{', rest @ ..] => !matches!(skip_space(rest), [b'}', ..]),
            [b'[', rest @ ..] => !matches!(skip_space(rest), [b']', ..]),
            [b'"', b'"', ..] => false,
            _ => !matches!(self.kind(), Kind::Null | Kind::Other) && !self.0.starts_with(b"false"),
        }
    }

    /// The members of an object, in order; none if it isn't one.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        let at = match self.0 {
            [b'{', rest @ ..] => rest,
            _ => &[],
        };
        Members { at, given: false }
    }

    /// The items of an array, in order; none if it isn't one.
    #[must_use]
    pub fn items(self) -> Items<'a> {
        let at = match self.0 {
            [b'[', rest @ ..] => rest,
            _ => &[],
        };
        Items { at, given: false }
    }

    /// The first member of that name.
    #[must_use]
    #[inline(never)]
    pub fn get(self, name: &str) -> Option<Self> {
        self.members().find_map(|(key, value)| (key == name.as_bytes()).then_some(value))
    }

    /// The value at a path of member names.
    #[must_use]
    pub fn at(self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The raw content of a string, escapes as written; `None` if it isn't one.
    #[must_use]
    #[inline(never)]
    pub fn raw_str(self) -> Option<&'a [u8]> {
        let [b'"', content @ ..] = self.0 else { return None };
        let rest = skip_string(content).map_or(0, |rest| rest.len().saturating_add(1));
        content.get(..content.len().saturating_sub(rest))
    }

    /// The raw text of a number, `true`, `false` or `null`, or a string's content without escapes decoded.
    #[must_use]
    #[inline(never)]
    pub fn scalar(self) -> Option<&'a str> {
        let raw = match self.kind() {
            Kind::String => self.raw_str()?,
            Kind::Number | Kind::Bool | Kind::Null => self.bytes(),
            _ => return None,
        };
        core::str::from_utf8(raw).ok()
    }

    /// A whole number; a fraction is cut off. `None` if it is negative, too large or not a number.
    #[must_use]
    #[inline(never)]
    pub fn u64(self) -> Option<u64> {
        if self.kind() != Kind::Number {
            return None;
        }
        let text = self.scalar()?;
        number(text::before(text, "."))
    }

    /// Whether it is `true` or `false`; `None` if it is neither.
    #[must_use]
    pub fn bool(self) -> Option<bool> {
        if self.0.starts_with(b"true") { Some(true) } else { self.0.starts_with(b"false").then_some(false) }
    }

    /// Appends a string's decoded content to `out`, at most about `max` bytes of it. Lone surrogates and invalid UTF-8
    /// become U+FFFD. Says whether it was a string.
    pub fn decode_into(self, out: &mut String, max: usize) -> bool {
        let Some(raw) = self.raw_str() else { return false };
        let mut rest = raw.get(..max.min(raw.len())).unwrap_or(raw);
        loop {
            let at = rest.iter().position(|b| *b == b'\\');
            push_lossy(out, at.and_then(|at| rest.get(..at)).unwrap_or(rest));
            let Some([_, escape, after @ ..]) = at.and_then(|at| rest.get(at..)) else { return true };
            rest = after;
            match escape {
                b'n' => out.push('\n'),
                b't' => out.push('\t'),
                b'r' => out.push('\r'),
                b'b' | b'f' => out.push(' '),
                b'u' => rest = decode_unicode(rest, out),
                other => out.push(char::from(*other)),
            }
        }
    }
}

/// Appends bytes as text, each invalid part as U+FFFD.
pub fn push_lossy(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            out.push('\u{FFFD}');
        }
    }
}

fn hex4(bytes: &[u8]) -> Option<u32> {
    bytes.get(..4)?.iter().try_fold(0_u32, |sum, b| Some((sum << 4) | u32::from(text::hex_value(*b)?)))
}

/// Decodes what follows `\u`, its second half too if it is a pair, and returns what is left.
fn decode_unicode<'a>(bytes: &'a [u8], out: &mut String) -> &'a [u8] {
    let Some(first) = hex4(bytes) else {
        out.push('\u{FFFD}');
        return bytes;
    };
    let after = bytes.get(4..).unwrap_or_default();
    if let 0xD800..=0xDBFF = first
        && let [b'\\', b'u', low @ ..] = after
        && let Some(second @ 0xDC00..=0xDFFF) = hex4(low)
    {
        let joined = 0x1_0000_u32.wrapping_add((first & 0x3FF) << 10).wrapping_add(second & 0x3FF);
        out.push(char::from_u32(joined).unwrap_or('\u{FFFD}'));
        return low.get(4..).unwrap_or_default();
    }
    out.push(char::from_u32(first).unwrap_or('\u{FFFD}'));
    after
}

/// The members of an object: raw name and value. A value is passed over when the next member is asked for, so whoever has
/// found what he looks for doesn't pay for it.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    at: &'a [u8],
    /// Whether `at` is the value that was given last.
    given: bool,
}

/// What follows what was given last, up to the next name or item; `None` if nothing comes after it.
#[inline(never)]
fn after(at: &[u8], given: bool) -> Option<&[u8]> {
    let mut rest = at;
    if given {
        rest = skip_value(at).filter(|rest| rest.len() < at.len())?;
    }
    rest = skip_space(rest);
    Some(if let [b',', next @ ..] = rest { skip_space(next) } else { rest })
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], Value<'a>);

    #[inline(never)]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = after(core::mem::take(&mut self.at), core::mem::take(&mut self.given))?;
        // Where the walk stops is kept: [`Outline`] looks whether that is the object's end.
        self.at = rest;
        let [b'"', name @ ..] = rest else { return None };
        let behind = skip_string(name)?;
        let key = name.get(..name.len().saturating_sub(behind.len()).saturating_sub(1))?;
        let [b':', value @ ..] = skip_space(behind) else { return None };
        self.at = skip_space(value);
        self.given = !self.at.is_empty();
        self.given.then_some((key, Value(self.at)))
    }
}

/// The items of an array.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    at: &'a [u8],
    given: bool,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    #[inline(never)]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = after(core::mem::take(&mut self.at), core::mem::take(&mut self.given))?;
        if matches!(rest, [b']', ..] | []) {
            return None;
        }
        self.at = rest;
        self.given = true;
        Some(Value(rest))
    }
}

/// A JSON value whose members, if it is an object, were cut out in one walk: several questions can then be asked of a long
/// answer without walking it again.
#[derive(Clone, Debug)]
pub struct Outline<'a> {
    /// The value.
    pub value: Value<'a>,
    /// Its members, each value cut at its end; the first 1,024 of them, none if it is no object.
    pub members: Vec<(&'a [u8], Value<'a>)>,
    /// What follows the value; `None` if it is cut.
    pub rest: Option<&'a [u8]>,
}

impl<'a> Outline<'a> {
    /// The outline of a value.
    #[must_use]
    #[inline(never)]
    pub fn of(value: Value<'a>) -> Self {
        let mut walk = value.members();
        let mut members = Vec::with_capacity(16);
        while members.len() < MAX_MEMBERS {
            let Some((key, begin)) = walk.next() else { break };
            let behind = skip_value(begin.0).filter(|behind| behind.len() < begin.0.len());
            let own = begin.0.get(..begin.0.len().saturating_sub(behind.map_or(0, <[u8]>::len)));
            members.push((key, Value(own.unwrap_or(begin.0))));
            walk = Members { at: behind.unwrap_or_default(), given: false };
        }
        let rest = match walk {
            Members { at: [b'}', rest @ ..], given: false } if !members.is_empty() => Some(rest),
            _ => value.rest(),
        };
        Self { value, members, rest }
    }

    /// Whether the value is an object or an array that ends, with nothing but white space after it.
    #[must_use]
    pub fn is_whole_container(&self) -> bool {
        matches!(self.value.kind(), Kind::Object | Kind::Array)
            && self.rest.is_some_and(|rest| skip_space(rest).is_empty())
    }
}

/// Whether `bytes` hold a JSON value that ends, with nothing but white space after it.
///
/// A balance of quotes and brackets, not a validation: what it is for is telling an answer that was cut.
#[must_use]
pub fn is_complete(bytes: &[u8]) -> bool {
    Value::parse(bytes).and_then(Value::rest).is_some_and(|rest| skip_space(rest).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        let mut out = String::new();
        Value::parse(json.as_bytes()).unwrap().decode_into(&mut out, 1 << 20);
        out
    }

    #[test]
    fn members_are_found_past_nested_values_and_strings_with_brackets() {
        let json = br#" {"a":{"b":["}",{"c":"\"]"}]},"d":7, "e" : "x" }"#;
        let value = Value::parse(json).unwrap();
        assert_eq!(value.get("d").unwrap().u64(), Some(7));
        assert_eq!(value.get("e").unwrap().scalar(), Some("x"));
        assert_eq!(value.get("f").map(Value::kind), None);
        assert!(is_complete(json));
    }

    #[test]
    fn cut_input_gives_what_is_there() {
        let value = Value::parse(br#"{"error":{"code":"slow_down","message":"Hel"#).unwrap();
        assert_eq!(value.at(&["error", "code"]).unwrap().scalar(), Some("slow_down"));
        assert_eq!(value.at(&["error", "message"]).unwrap().scalar(), Some("Hel"));
        assert!(!is_complete(br#"{"a":1"#));
        assert!(!is_complete(br#"{"a":"}"#));
    }

    #[test]
    fn escapes_pairs_and_lone_surrogates_are_decoded() {
        assert_eq!(text(r#""a\nb\"\\\u00e9\ud83d\ude00\ud800x\uzz""#), "a\nb\"\\é😀\u{FFFD}x\u{FFFD}zz");
    }

    #[test]
    fn a_hundred_thousand_open_brackets_cost_no_stack() {
        let deep = vec![b'['; 100_000];
        assert!(!is_complete(&deep));
        assert_eq!(Value::parse(&deep).unwrap().items().count(), 1);
        let mut names = b"{\"a\":".repeat(50_000);
        names.push(b'1');
        assert!(Value::parse(&names).unwrap().get("b").is_none());
    }

    #[test]
    fn a_quote_after_an_even_number_of_backslashes_ends_the_string() {
        for (run, ends) in [(0, true), (1, false), (2, true), (3, false), (8, true), (9, false)] {
            for before in 0..12 {
                let body = format!("\"{}{}\" tail", "x".repeat(before), "\\".repeat(run));
                let value = Value::parse(body.as_bytes()).unwrap();
                assert_eq!(value.rest(), ends.then_some(&b" tail"[..]), "{body}");
            }
        }
    }

    #[test]
    fn an_outline_says_what_a_walk_says() {
        let whole = r#" {"a":{"b":["}",{"c":"\"]"}]},"d":7, "e" : "x" , "f":[1,2],"g":null} {"h":1}"#;
        for (end, _) in whole.char_indices() {
            let Some(value) = Value::parse(&whole.as_bytes()[..end]) else { continue };
            let outline = Outline::of(value);
            assert_eq!(outline.rest, value.rest(), "{end}");
            let mut walked = value.members();
            for (key, own) in &outline.members {
                let (name, value) = walked.next().unwrap();
                assert_eq!((*key, own.bytes()), (name, value.bytes()), "{end}");
                assert!(own.bytes().len() >= own.0.len() || outline.rest.is_none(), "cut at its end");
            }
            assert!(walked.next().is_none(), "{end}");
        }
        for odd in
            ["{}", "[1]", "7", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{\"a\":}", "{\"a\":[}]}", "{\"a\":1]", "{,}", "{:"]
        {
            let value = Value::parse(odd.as_bytes()).unwrap();
            assert_eq!(Outline::of(value).rest, value.rest(), "{odd}");
        }
    }

    #[test]
    fn an_outline_is_bounded() {
        let body = format!("{{{}\"z\":1}} ", "\"a\":1,".repeat(5_000));
        let outline = Outline::of(Value::parse(body.as_bytes()).unwrap());
        assert_eq!(outline.members.len(), MAX_MEMBERS);
        assert!(outline.is_whole_container());
    }

    #[test]
    fn of_two_equal_names_the_first_counts() {
        let value = Value::parse(br#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(value.get("a").unwrap().u64(), Some(1));
    }

    #[test]
    fn junk_ends_the_walk() {
        for junk in
            [&b"{]"[..], b"{\"a\"}", b"{\"a\":}", b"[,,,]", b"}", b"{\"a\":1 \"b\":2}", b"[1 2 ]]", b":::", b"{:"]
        {
            let value = Value::parse(junk).unwrap();
            assert!(value.members().count() <= 4 && value.items().count() <= 4);
        }
    }
}
