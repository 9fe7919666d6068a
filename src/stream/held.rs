//! What an unfinished event needs, and never more: a bounded buffer that shortens long JSON strings.
//!
//! Up to [`RAW_MAX`] bytes are kept as they are. What comes after is copied without the insides of long strings (an
//! image in base64, a whole answer repeated in the closing event): the structure and every short value survive, so the
//! finish reason behind two megabytes of picture is still read. Past [`HARD_MAX`] nothing more is copied.
//! What is kept depends on byte positions alone, so any chunking leaves the same bytes here.

use crate::prelude::*;
use crate::text::find_either;

/// Bytes of an event that are kept unchanged.
pub(crate) const RAW_MAX: usize = 8 * 1024;
/// Bytes of an event that are kept at all, after its long strings were shortened.
pub(crate) const HARD_MAX: usize = 32 * 1024;
/// Bytes that are left of a shortened string.
const STRING_KEEP: u32 = 256;

/// Where a byte-wise reader of JSON is: inside or outside of a string.
#[derive(Clone, Copy, Debug, Default)]
struct Lexer {
    in_string: bool,
    escaped: bool,
    run: u32,
}

impl Lexer {
    /// Takes one byte; says whether it belongs to what is kept.
    fn take(&mut self, byte: u8) -> bool {
        if !self.in_string {
            self.in_string = byte == b'"';
            self.run = 0;
            return true;
        }
        if self.escaped {
            // Together with its backslash or not at all: half an escape would swallow the closing quote.
            self.escaped = false;
            return self.run <= STRING_KEEP;
        }
        if byte == b'"' {
            self.in_string = false;
            return true;
        }
        self.escaped = byte == b'\\';
        self.run = self.run.saturating_add(1);
        self.run <= STRING_KEEP
    }
}

/// A bounded copy of one line or one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    lexer: Option<Lexer>,
    truncated: bool,
    any: bool,
}

impl Held {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.any |= !bytes.is_empty();
        let room = RAW_MAX.saturating_sub(self.bytes.len());
        if self.lexer.is_none() && bytes.len() <= room {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.push_shortened(bytes, room);
        }
    }

    #[cold]
    fn push_shortened(&mut self, bytes: &[u8], room: usize) {
        let mut rest = bytes;
        let mut lexer = if let Some(lexer) = self.lexer {
            lexer
        } else {
            let (raw, behind) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.bytes.extend_from_slice(raw);
            rest = behind;
            let mut lexer = Lexer::default();
            for byte in &self.bytes {
                lexer.take(*byte);
            }
            lexer
        };
        while let Some((byte, behind)) = rest.split_first() {
            if lexer.in_string && !lexer.escaped && lexer.run >= STRING_KEEP {
                let skip = find_either(b'"', b'\\', rest).unwrap_or(rest.len());
                if skip > 0 {
                    rest = rest.get(skip..).unwrap_or_default();
                    continue;
                }
            }
            if lexer.take(*byte) {
                if self.bytes.len() < HARD_MAX {
                    self.bytes.push(*byte);
                } else {
                    self.truncated = true;
                }
            }
            rest = behind;
        }
        self.lexer = Some(lexer);
    }

    /// What was kept.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether nothing was pushed since the last [`Held::clear`].
    pub(crate) const fn is_empty(&self) -> bool {
        !self.any
    }

    /// Whether the end is missing, so that broken JSON is no news.
    pub(crate) const fn truncated(&self) -> bool {
        self.truncated
    }

    /// Forgets everything, and gives back what a large event took.
    pub(crate) fn clear(&mut self) {
        if self.bytes.capacity() > RAW_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.lexer = None;
        self.truncated = false;
        self.any = false;
    }

    /// Memory that is taken.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Counts the brackets that are open, over any number of pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balance {
    lexer: Lexer,
    depth: i64,
}

impl Balance {
    /// Takes the next bytes of a JSON text.
    pub(crate) fn feed(&mut self, json: &[u8]) {
        for byte in json {
            let outside = !self.lexer.in_string;
            self.lexer.take(*byte);
            if outside {
                match byte {
                    b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
    }

    /// Whether every bracket and every string that was opened is closed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.depth <= 0 && !self.lexer.in_string
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    fn large() -> Vec<u8> {
        let mut json = br#"{"data":""#.to_vec();
        json.extend(br#"ab\"c\\"#.repeat(20_000));
        json.extend(br#"","finishReason":"STOP"}"#);
        json
    }

    #[test]
    fn a_long_string_is_shortened_and_what_follows_it_survives() {
        let mut held = Held::default();
        held.push(&large());
        assert!(held.bytes().ends_with(br#"","finishReason":"STOP"}"#));
        assert!(held.bytes().len() < RAW_MAX + 100);
        let mut balance = Balance::default();
        balance.feed(held.bytes());
        assert!(balance.is_closed());
    }

    #[test]
    fn any_split_keeps_the_same_bytes() {
        let json = large();
        let mut whole = Held::default();
        whole.push(&json);
        for size in [1, 7, 255, 256, 257, 8191, 8192, 8193] {
            let mut split = Held::default();
            json.chunks(size).for_each(|c| split.push(c));
            assert_eq!(split.bytes(), whole.bytes(), "chunks of {size}");
        }
    }

    #[test]
    fn what_cannot_be_shortened_is_cut() {
        let mut held = Held::default();
        for _ in 0..100 {
            held.push(&b"[1,".repeat(1000));
        }
        assert_eq!(held.bytes().len(), HARD_MAX);
        assert!(held.truncated());
        held.clear();
        assert!(held.capacity() <= RAW_MAX);
    }
}
