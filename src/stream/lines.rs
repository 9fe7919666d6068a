//! Lines of a byte stream: ended by LF, CRLF or CR, split over chunks in any way, a BOM at the start dropped.
//!
//! The rules are those of the WHATWG event stream, section "Parsing an event stream"; NDJSON is content with them too,
//! since a bare CR or LF can't stand inside of a JSON string.

use super::held::{Held, RAW_MAX};
use crate::text::find_either;

/// A finished line: in the chunk that is being read, or put together from several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// From one offset of the chunk to another.
    Chunk(usize, usize),
    /// In the scanner's own buffer.
    Held,
}

impl Place {
    /// The bytes, given the chunk and the buffer.
    pub(crate) fn of<'a>(self, chunk: &'a [u8], held: &'a Held) -> &'a [u8] {
        match self {
            Self::Chunk(from, to) => chunk.get(from..to).unwrap_or_default(),
            Self::Held => held.bytes(),
        }
    }
}

/// Splits chunks into lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    held: Held,
    /// The held line was given out and is to be forgotten.
    given: bool,
    /// The last byte ended a line as a CR; an LF that follows belongs to it.
    after_cr: bool,
    /// A line has begun or ended already, so that no BOM can follow.
    started: bool,
}

impl Lines {
    /// The next finished line of `chunk` from `at` on, which moves behind it. `None`: the rest is kept for the next chunk.
    #[inline]
    pub(crate) fn next(&mut self, chunk: &[u8], at: &mut usize) -> Option<Place> {
        if self.given {
            self.given = false;
            self.held.clear();
        }
        if self.after_cr {
            self.skip_lf(chunk, at);
        }
        let rest = chunk.get(*at..).filter(|rest| !rest.is_empty())?;
        let start = *at;
        let Some(length) = find_either(b'\n', b'\r', rest) else {
            self.held.push(rest);
            *at = chunk.len();
            return None;
        };
        let end = start.wrapping_add(length);
        *at = end.wrapping_add(1);
        if let Some(b'\r') = chunk.get(end) {
            self.after_cr = true;
            self.skip_lf(chunk, at);
        }
        if self.held.is_empty() && length <= RAW_MAX {
            return Some(self.without_bom(chunk, start, end));
        }
        self.held.push(chunk.get(start..end).unwrap_or_default());
        Some(self.give())
    }

    /// The last line, which nothing ended; `None` if there is none.
    pub(crate) fn last(&mut self) -> Option<Place> {
        if self.given || self.held.is_empty() { None } else { Some(self.give()) }
    }

    #[cold]
    fn give(&mut self) -> Place {
        self.given = true;
        if !self.started {
            self.started = true;
            if self.held.bytes().starts_with(BOM) {
                let line = self.held.bytes().get(BOM.len()..).unwrap_or_default().to_vec();
                self.held.clear();
                self.held.push(&line);
            }
        }
        Place::Held
    }

    #[inline]
    fn without_bom(&mut self, chunk: &[u8], start: usize, end: usize) -> Place {
        if !self.started {
            self.started = true;
            if chunk.get(start..end).is_some_and(|line| line.starts_with(BOM)) {
                return Place::Chunk(start.wrapping_add(BOM.len()), end);
            }
        }
        Place::Chunk(start, end)
    }

    /// Drops the LF of a CRLF, if it is there yet.
    fn skip_lf(&mut self, chunk: &[u8], at: &mut usize) {
        if let Some(byte) = chunk.get(*at) {
            self.after_cr = false;
            if *byte == b'\n' {
                *at = at.wrapping_add(1);
            }
        }
    }

    /// What was kept of the line that is not finished, or was put together.
    pub(crate) const fn held(&self) -> &Held {
        &self.held
    }

    /// Whether a line has begun and not ended.
    pub(crate) const fn in_line(&self) -> bool {
        !self.given && !self.held.is_empty()
    }
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for chunk in chunks {
            let mut at = 0;
            while let Some(place) = lines.next(chunk, &mut at) {
                found.push(place.of(chunk, lines.held()).to_vec());
            }
        }
        if let Some(place) = lines.last() {
            found.push(place.of(&[], lines.held()).to_vec());
        }
        found
    }

    #[test]
    fn every_line_end_ends_one_line_at_any_split() {
        let text = b"\xEF\xBB\xBFa\nb\r\nc\rd\r\r\n\nlast";
        let expected: Vec<Vec<u8>> =
            ["a", "b", "c", "d", "", "", "last"].iter().map(|l| l.as_bytes().to_vec()).collect();
        assert_eq!(split(&[text]), expected);
        for at in 0..=text.len() {
            assert_eq!(split(&[&text[..at], &text[at..]]), expected, "split at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(split(&bytes), expected);
    }
}
