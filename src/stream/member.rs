//! A cursor over JSON that reads the few members a stream's meaning needs and skips the rest without copying.
//!
//! It does not validate: inside of what is skipped only strings and brackets are followed. It never recurses, never
//! allocates and never panics; where the text stops making sense it stops and says [`Cursor::is_bad`]. Strings are
//! returned as they are written, escapes included: everything that is compared (types, reasons, names) has none.
//! In wasm its methods stay functions of their own: they are used in a hundred places, and inlined they would triple
//! the size of the readers.

use super::word::{Word, word};
use crate::text::string_end;

/// Where a number or a word ends that begins at `at`.
pub(crate) fn scalar_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | b'"' | b':' | b'{' | b'[') {
            break;
        }
        at = at.wrapping_add(1);
    }
    at
}

/// Whether `bytes` begin with `prefix`, eight bytes at a time: in wasm a plain comparison goes byte by byte.
pub(crate) fn starts_with(bytes: &[u8], prefix: &[u8]) -> bool {
    let Some(bytes) = bytes.get(..prefix.len()) else { return false };
    let ((ours, our_rest), (theirs, their_rest)) = (bytes.as_chunks::<8>(), prefix.as_chunks::<8>());
    let same = |(a, b): (&[u8; 8], &[u8; 8])| u64::from_le_bytes(*a) == u64::from_le_bytes(*b);
    ours.iter().zip(theirs).all(same) && our_rest == their_rest
}

/// The most marks that are kept.
const MAX_MARKS: usize = 8;

/// Values that were stepped over without being looked at: strings, with their quotes, that are not empty, and numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    spans: [(u16, u16); MAX_MARKS],
    count: usize,
}

impl Marks {
    pub(crate) fn push(&mut self, start: usize, end: usize) {
        let span = u16::try_from(start).ok().zip(u16::try_from(end).ok());
        match (self.spans.get_mut(self.count), span) {
            (Some(slot), Some(span)) => {
                *slot = span;
                self.count = self.count.wrapping_add(1);
            }
            _ => self.count = usize::MAX,
        }
    }

    /// Whether there were more than are kept.
    pub(crate) const fn are_too_many(&self) -> bool {
        self.count > MAX_MARKS
    }

    /// Begin and end of each, in order.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        self.spans.iter().take(self.count).map(|(start, end)| (usize::from(*start), usize::from(*end)))
    }
}

/// A place in a JSON text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    bad: bool,
    marks: Marks,
}

impl<'a> Cursor<'a> {
    /// The beginning of `bytes`.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, bad: false, marks: Marks { spans: [(0, 0); MAX_MARKS], count: 0 } }
    }

    /// What was stepped over so far.
    pub(crate) const fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Steps over a string, and marks it unless it is empty; whether it is not.
    #[inline]
    fn pass_string(&mut self) -> bool {
        let start = self.at;
        let full = !self.raw_string().is_empty();
        if full {
            self.marks.push(start, self.at);
        }
        full
    }

    /// Whether the text stopped being JSON somewhere.
    pub(crate) const fn is_bad(&self) -> bool {
        self.bad
    }

    /// The next byte that is not white space, not taken; 0 at the end.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn peek(&mut self) -> u8 {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at = self.at.wrapping_add(1),
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    #[cold]
    fn fail(&mut self) {
        self.bad = true;
        self.at = self.bytes.len();
    }

    #[inline]
    fn step(&mut self) {
        self.at = self.at.wrapping_add(1);
    }

    /// Enters the object or array that comes next; any other value is skipped.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn enter(&mut self, bracket: u8) -> bool {
        let found = self.peek() == bracket;
        if found {
            self.step();
        } else {
            self.skip();
        }
        found
    }

    /// The next key of the object that was entered, as a word; `None` behind its end.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn key(&mut self) -> Option<Word> {
        let mut byte = self.peek();
        if byte == b',' {
            self.step();
            byte = self.peek();
        }
        if byte == b'"' {
            let key = self.raw_string();
            if self.peek() == b':' {
                self.step();
                return Some(word(key));
            }
        } else if byte == b'}' {
            self.step();
            return None;
        }
        self.fail();
        None
    }

    /// Whether the array that was entered has another item, which then comes next.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn item(&mut self) -> bool {
        let mut byte = self.peek();
        if byte == b',' {
            self.step();
            byte = self.peek();
        }
        match byte {
            b']' => {
                self.step();
                false
            }
            0 => {
                self.fail();
                false
            }
            _ => !self.bad,
        }
    }

    /// The inside of the string whose opening quote is next.
    #[inline]
    fn raw_string(&mut self) -> &'a [u8] {
        let start = self.at.wrapping_add(1);
        if let Some(end) = string_end(self.bytes, start) {
            self.at = end.wrapping_add(1);
            self.bytes.get(start..end).unwrap_or_default()
        } else {
            self.fail();
            &[]
        }
    }

    /// The next value if it is a string, as written; any other value is skipped.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        if self.peek() == b'"' {
            let string = self.raw_string();
            (!self.bad).then_some(string)
        } else {
            self.skip();
            None
        }
    }

    /// The next value as a word; [`NONE`](super::word::NONE) if it is no string.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn word(&mut self) -> Word {
        word(self.string().unwrap_or_default())
    }

    /// The next value if it is a whole number (a fraction is dropped); any other value is skipped.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn uint(&mut self) -> Option<u64> {
        match self.peek() {
            b'0'..=b'9' => {}
            b'-' => {
                self.skip_unmarked();
                return None;
            }
            _ => {
                self.skip();
                return None;
            }
        }
        let mut number = 0_u64;
        while let Some(digit) = self.bytes.get(self.at).filter(|b| b.is_ascii_digit()) {
            number = number.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')));
            self.step();
        }
        self.scalar();
        Some(number)
    }

    /// Skips a value; whether it was anything but `null`, `false`, `0` or an empty string, as JavaScript has it.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn truthy(&mut self) -> bool {
        match self.peek() {
            b'"' => self.pass_string(),
            first => {
                self.skip_unmarked();
                !matches!(first, b'n' | b'f' | b'0') && !self.bad
            }
        }
    }

    /// Skips a value; whether it was truthy and, as an object or array, had something in it.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn non_empty(&mut self) -> bool {
        let first = self.peek();
        if first == b'{' || first == b'[' {
            let mut inside = self.clone();
            inside.step();
            let empty = matches!(inside.peek(), b'}' | b']' | 0);
            self.skip();
            return !empty;
        }
        self.truthy()
    }

    /// Skips the next value.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn skip(&mut self) {
        match self.peek() {
            b'"' => {
                self.pass_string();
            }
            b'{' | b'[' => self.skip_container(),
            0 | b'}' | b']' | b',' | b':' => self.fail(),
            first => {
                let start = self.at;
                self.scalar();
                if matches!(first, b'-' | b'0'..=b'9') {
                    self.marks.push(start, self.at);
                }
            }
        }
    }

    /// Skips a value of whose kind somebody has taken note: another number there could mean something else.
    fn skip_unmarked(&mut self) {
        let count = self.marks.count;
        self.skip();
        self.marks.count = count;
    }

    /// Skips what is left of a number or a word.
    #[inline]
    fn scalar(&mut self) {
        self.at = scalar_end(self.bytes, self.at);
    }

    fn skip_container(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.raw_string();
                    continue;
                }
                b'{' | b'[' => depth = depth.wrapping_add(1),
                b'}' | b']' => {
                    depth = depth.wrapping_sub(1);
                    if depth == 0 {
                        self.step();
                        return;
                    }
                }
                _ => {}
            }
            self.step();
        }
        self.fail();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_behind_whatever_is_skipped() {
        let json = br#" { "a" : [1,{"b":"}\"]"}] , "s":"x\\", "n": 12.5 ,"t":true,"k":"v"}"#;
        let mut c = Cursor::new(json);
        assert!(c.enter(b'{'));
        assert_eq!(c.key(), Some(word(b"a")));
        c.skip();
        assert_eq!(c.key(), Some(word(b"s")));
        assert_eq!(c.string(), Some(&br"x\\"[..]));
        assert_eq!(c.key(), Some(word(b"n")));
        assert_eq!(c.uint(), Some(12));
        assert_eq!(c.key(), Some(word(b"t")));
        assert!(c.truthy());
        assert_eq!(c.key(), Some(word(b"k")));
        assert_eq!(c.string(), Some(&b"v"[..]));
        assert_eq!(c.key(), None);
        assert!(!c.is_bad());
    }

    #[test]
    fn emptiness_is_javascripts_with_empty_containers() {
        for (json, truthy, non_empty) in [
            ("null", false, false),
            ("false", false, false),
            ("0", false, false),
            ("\"\"", false, false),
            ("\"x\"", true, true),
            ("[]", true, false),
            ("[ ]", true, false),
            ("{}", true, false),
            ("[0]", true, true),
            ("7", true, true),
        ] {
            assert_eq!(Cursor::new(json.as_bytes()).truthy(), truthy, "{json}");
            assert_eq!(Cursor::new(json.as_bytes()).non_empty(), non_empty, "{json}");
        }
    }

    #[test]
    fn broken_text_ends_the_walk() {
        for json in ["{\"a\":\"x", "{\"a\"", "{\"a\":{", "{\"a\":}", "{a:1}", "{\"a\":\"\\", "{\"a\":1"] {
            let mut c = Cursor::new(json.as_bytes());
            assert!(c.enter(b'{'));
            while c.key().is_some() {
                c.skip();
            }
            assert!(c.is_bad(), "{json}");
        }
    }

    #[test]
    fn a_quote_is_found_at_every_offset() {
        for length in 0..40 {
            let json = format!("\"{}\"", "é".repeat(length));
            assert_eq!(Cursor::new(json.as_bytes()).string().map(<[u8]>::len), Some(length.wrapping_mul(2)));
        }
    }
}
