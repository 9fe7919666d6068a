//! Walks a JSON body as it arrives, in chunks of any size, without keeping it.
//!
//! Two questions are asked of a body before a call may commit to it: *is it whole?* (JSON that stops in the middle is an
//! answer cut short, whatever the `content-length` said) and, of a request, *which few members does it have?* The
//! walker answers both in one pass. It keeps one key a level down to the second and one short value, so its memory is
//! the same for a prompt of 100 bytes and one of 100 MB. It is a scanner, not a validator: it knows where strings,
//! objects and arrays begin and end, which is what a cut breaks; `{"a":tru}` passes for whole.

use crate::prelude::*;
use crate::text;

/// Longest key that is kept, in bytes; the members that are looked for are shorter.
const KEY_MAX: usize = 24;
/// Longest value that is kept, in bytes: a model name with its path.
const VALUE_MAX: usize = 256;

/// A scalar member at the first or second level of a body: `("", "model", "\"gpt-5\"")` or
/// `("generationConfig", "maxOutputTokens", "256")`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Key of the enclosing object; empty at the top level.
    pub parent: &'a str,
    /// Key of the member.
    pub key: &'a str,
    /// A string's text without its quotes (escapes as they came), or a number's or literal's text.
    pub value: &'a str,
    /// Whether the value was a string.
    pub is_string: bool,
}

/// A short piece of text kept while it is being read; longer ones are dropped, not cut.
#[derive(Clone, Debug, Default)]
struct Short {
    bytes: Vec<u8>,
    overflown: bool,
}

impl Short {
    fn clear(&mut self) {
        self.bytes.clear();
        self.overflown = false;
    }

    fn push(&mut self, part: &[u8], max: usize) {
        if self.overflown || self.bytes.len().saturating_add(part.len()) > max {
            self.overflown = true;
            self.bytes.clear();
        } else {
            self.bytes.extend_from_slice(part);
        }
    }

    fn text(&self) -> &str {
        core::str::from_utf8(&self.bytes).unwrap_or("")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the first byte that is not white space.
    Start,
    /// Between tokens.
    Between,
    /// In a string; `key` says whether it is an object's key.
    InString { key: bool },
    /// After a backslash in a string.
    Escaped { key: bool },
    /// In a number or a literal.
    InScalar,
    /// After the value's end; only white space may follow.
    Ended,
    /// Not JSON.
    Broken,
}

/// The walker; feed it every chunk, then ask [`JsonWalk::is_whole`].
#[derive(Clone, Debug)]
pub struct JsonWalk {
    at: At,
    /// Depth of open objects and arrays.
    depth: u32,
    /// Bit per level below 64: set for an object, clear for an array.
    objects: u64,
    /// Whether the next string is a key.
    expect_key: bool,
    key1: Short,
    key2: Short,
    value: Short,
}

impl Default for JsonWalk {
    fn default() -> Self {
        Self {
            at: At::Start,
            depth: 0,
            objects: 0,
            expect_key: false,
            key1: Short::default(),
            key2: Short::default(),
            value: Short::default(),
        }
    }
}

impl JsonWalk {
    /// A walker at the beginning of a body.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk and reports each scalar member at the first two levels.
    pub fn feed(&mut self, chunk: &[u8], mut on_member: impl FnMut(Member<'_>)) {
        let mut rest = chunk;
        while !rest.is_empty() {
            rest = match self.at {
                At::Broken => return,
                At::InString { key } => self.in_string(rest, key, &mut on_member),
                At::Escaped { key } => self.escaped(rest, key),
                At::InScalar => self.in_scalar(rest, &mut on_member),
                At::Start | At::Between | At::Ended => self.between(rest),
            };
        }
    }

    /// Whether what was fed is one whole JSON value. A bare number or literal at the top level counts as whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.at == At::Ended || (self.at == At::InScalar && self.depth == 0)
    }

    /// Whether nothing but white space was fed.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.at == At::Start
    }

    /// Whether what was fed can't be the beginning of a JSON object or array.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.at == At::Broken
    }

    fn in_object(&self) -> bool {
        let level = self.depth.saturating_sub(1);
        level < 64 && self.objects.wrapping_shr(level) & 1 == 1
    }

    fn key_slot(&mut self) -> Option<&mut Short> {
        match self.depth {
            1 => Some(&mut self.key1),
            2 => Some(&mut self.key2),
            _ => None,
        }
    }

    /// Whether a scalar at this place is one that is reported.
    fn wanted(&self) -> bool {
        self.in_object() && (self.depth == 1 || (self.depth == 2 && self.objects & 1 == 1))
    }

    fn between<'c>(&mut self, rest: &'c [u8]) -> &'c [u8] {
        let Some((&byte, tail)) = rest.split_first() else { return rest };
        // A byte order mark says nothing: `response.json()` takes it off.
        let mark = self.at == At::Start && matches!(byte, 0xEF | 0xBB | 0xBF);
        if mark || matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return tail;
        }
        if self.at == At::Ended {
            self.at = At::Broken;
            return tail;
        }
        match byte {
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => self.close(byte == b'}'),
            b'"' => {
                let key = self.expect_key;
                if key {
                    if let Some(slot) = self.key_slot() {
                        slot.clear();
                    }
                } else {
                    self.value.clear();
                }
                self.at = At::InString { key };
            }
            b',' if self.depth > 0 => self.expect_key = self.in_object(),
            b':' if self.depth > 0 => self.expect_key = false,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.value.clear();
                self.at = At::InScalar;
                return rest;
            }
            _ => self.at = At::Broken,
        }
        tail
    }

    fn open(&mut self, object: bool) {
        let level = self.depth;
        self.depth = self.depth.saturating_add(1);
        if level < 64 {
            let bit = 1_u64.wrapping_shl(level);
            self.objects = if object { self.objects | bit } else { self.objects & !bit };
        }
        if level == 1 {
            self.key2.clear();
        }
        self.expect_key = object;
        self.at = At::Between;
    }

    fn close(&mut self, object: bool) {
        let level = self.depth.saturating_sub(1);
        if self.depth == 0 || (level < 64 && self.in_object() != object) {
            self.at = At::Broken;
            return;
        }
        self.depth = level;
        self.expect_key = false;
        self.at = if level == 0 { At::Ended } else { At::Between };
    }

    fn in_string<'c>(&mut self, rest: &'c [u8], key: bool, on_member: &mut impl FnMut(Member<'_>)) -> &'c [u8] {
        let stop = text::find_either(b'"', b'\\', rest);
        let (text, tail) = match stop {
            Some(at) => rest.split_at_checked(at).unwrap_or((rest, &[])),
            None => (rest, &[][..]),
        };
        self.keep(text, key);
        let Some((&byte, after)) = tail.split_first() else { return tail };
        if byte == b'\\' {
            self.keep(b"\\", key);
            self.at = At::Escaped { key };
            return after;
        }
        self.at = if self.depth == 0 { At::Ended } else { At::Between };
        if !key && self.wanted() {
            self.report(true, on_member);
        }
        after
    }

    fn escaped<'c>(&mut self, rest: &'c [u8], key: bool) -> &'c [u8] {
        let Some((byte, tail)) = rest.split_first() else { return rest };
        self.keep(core::slice::from_ref(byte), key);
        self.at = At::InString { key };
        tail
    }

    fn in_scalar<'c>(&mut self, rest: &'c [u8], on_member: &mut impl FnMut(Member<'_>)) -> &'c [u8] {
        let end = rest.iter().position(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'+' | b'-'));
        let (text, tail) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, &[]));
        self.keep(text, false);
        if end.is_some() {
            self.at = if self.depth == 0 { At::Ended } else { At::Between };
            if self.wanted() {
                self.report(false, on_member);
            }
        }
        tail
    }

    fn keep(&mut self, text: &[u8], key: bool) {
        if key {
            if let Some(slot) = self.key_slot() {
                slot.push(text, KEY_MAX);
            }
        } else if self.wanted() {
            self.value.push(text, VALUE_MAX);
        }
    }

    fn report(&self, is_string: bool, on_member: &mut impl FnMut(Member<'_>)) {
        if self.value.overflown {
            return;
        }
        let (parent, key) = if self.depth == 1 { ("", &self.key1) } else { (self.key1.text(), &self.key2) };
        on_member(Member { parent, key: key.text(), value: self.value.text(), is_string });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(chunks: &[&[u8]]) -> (Vec<String>, JsonWalk) {
        let mut walk = JsonWalk::new();
        let mut found = Vec::new();
        for chunk in chunks {
            walk.feed(chunk, |m| {
                found.push(format!("{}/{}={}{}", m.parent, m.key, m.value, if m.is_string { "$" } else { "" }));
            });
        }
        (found, walk)
    }

    #[test]
    fn reports_scalars_of_the_first_two_levels_only() {
        let body = br#"{"model":"gpt-5","messages":[{"role":"user","content":"\"model\":\"x\""}],"stream":true,"generationConfig":{"maxOutputTokens":256,"deep":{"model":"no"}},"max_tokens": 12 }"#;
        let (found, walk) = members(&[body]);
        assert_eq!(found, ["/model=gpt-5$", "/stream=true", "generationConfig/maxOutputTokens=256", "/max_tokens=12"]);
        assert!(walk.is_whole());
    }

    #[test]
    fn a_cut_body_is_not_whole() {
        let body = br#"{"a":[1,2,{"b":"c\"d"}],"e":null}"#;
        for cut in 0..body.len() {
            assert!(!members(&[&body[..cut]]).1.is_whole(), "cut at {cut}");
        }
        assert!(members(&[body]).1.is_whole());
        assert!(members(&[b" \n [] \r\n"]).1.is_whole());
        assert!(members(&[b"42"]).1.is_whole());
        assert!(members(&[b"\xEF\xBB", b"\xBF{\"a\":1}"]).1.is_whole());
    }

    #[test]
    fn what_is_not_json_is_broken() {
        for text in ["<html>", "{}{}", "[}", "]", "error code: 1015", ",", "{}x"] {
            assert!(!members(&[text.as_bytes()]).1.is_whole(), "{text}");
        }
        assert!(members(&[b"  \n "]).1.is_blank());
        assert!(members(&[b"<"]).1.is_broken());
    }

    #[test]
    fn depth_has_no_cost() {
        let deep = "[".repeat(200_000);
        let mut walk = JsonWalk::new();
        walk.feed(deep.as_bytes(), |_| {});
        assert!(!walk.is_whole() && !walk.is_broken());
        walk.feed("]".repeat(200_000).as_bytes(), |_| {});
        assert!(walk.is_whole());
    }

    #[test]
    fn a_huge_key_or_value_is_dropped_not_kept() {
        let body = format!(r#"{{"{}":1,"model":"{}","n":2}}"#, "k".repeat(5000), "m".repeat(5000));
        let (found, walk) = members(&[body.as_bytes()]);
        assert_eq!(found, ["/=1", "/n=2"]);
        assert!(walk.value.bytes.capacity() < 1024 && walk.key1.bytes.capacity() < 256);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_answer(body in r#"[\{\}\[\]":,a-c0-3\\ \n]{0,60}"#, cut in 0_usize..60) {
            let bytes = body.as_bytes();
            let cut = cut.min(bytes.len());
            let (whole, a) = members(&[bytes]);
            let (split, b) = members(&[&bytes[..cut], &bytes[cut..]]);
            prop_assert_eq!(whole, split);
            prop_assert_eq!(a.is_whole(), b.is_whole());
        }

        #[test]
        fn any_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut walk = JsonWalk::new();
            walk.feed(&bytes, |_| {});
        }

        #[test]
        fn whatever_serde_json_writes_is_whole(value in proptest::collection::btree_map("[a-z]{1,4}", "\\PC{0,20}", 0..6)) {
            let text = serde_json::to_string(&value).unwrap();
            prop_assert!(members(&[text.as_bytes()]).1.is_whole());
        }
    }
}
