//! JSON values: the scanner of a body that is one array of events, or a single object.
//!
//! Gemini's `streamGenerateContent` without `alt=sse` answers so, and an error may come as `[{"error":…}]` or as a bare
//! object. Each object at the array's level is an event.

use super::held::{Held, RAW_MAX};
use super::lines::Place;
use super::scan::{Cut, Found, Kind};
use crate::text::find_either;

/// Reads the elements of an array, or one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonValues {
    held: Held,
    /// Brackets that are open inside of the element; 0 between elements.
    depth: u32,
    in_string: bool,
    escaped: bool,
    in_array: bool,
    given: bool,
}

impl JsonValues {
    pub(crate) fn next(&mut self, chunk: &[u8], at: &mut usize) -> Option<Found> {
        if self.given {
            self.given = false;
            self.held.clear();
        }
        let mut start = *at;
        while let Some(byte) = chunk.get(*at) {
            if self.in_string {
                self.string(chunk, at);
                continue;
            }
            *at = at.wrapping_add(1);
            match byte {
                b'[' if self.depth == 0 && !self.in_array => self.in_array = true,
                b']' if self.depth == 0 => self.in_array = false,
                b'{' | b'[' => {
                    if self.depth == 0 {
                        start = at.wrapping_sub(1);
                    }
                    self.depth = self.depth.saturating_add(1);
                }
                b'"' if self.depth > 0 => self.in_string = true,
                b'}' | b']' if self.depth > 0 => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(self.found(chunk, start, *at));
                    }
                }
                _ => {}
            }
        }
        if self.depth > 0 {
            self.held.push(chunk.get(start..).unwrap_or_default());
        }
        None
    }

    /// Moves to the string's end, or to the chunk's.
    fn string(&mut self, chunk: &[u8], at: &mut usize) {
        if self.escaped {
            self.escaped = false;
            *at = at.wrapping_add(1);
            return;
        }
        let rest = chunk.get(*at..).unwrap_or_default();
        let Some(length) = find_either(b'"', b'\\', rest) else {
            *at = chunk.len();
            return;
        };
        if rest.get(length) == Some(&b'"') {
            self.in_string = false;
        } else {
            self.escaped = true;
        }
        *at = at.wrapping_add(length).wrapping_add(1);
    }

    fn found(&mut self, chunk: &[u8], start: usize, end: usize) -> Found {
        let data = if self.held.is_empty() && end.wrapping_sub(start) <= RAW_MAX {
            Place::Chunk(start, end)
        } else {
            self.held.push(chunk.get(start..end).unwrap_or_default());
            self.given = true;
            Place::Held
        };
        Found { kind: Kind::Event, data }
    }

    pub(crate) const fn held(&self) -> &Held {
        &self.held
    }

    /// An array that is not closed is cut too: nobody can parse it.
    pub(crate) const fn cut(&self) -> Cut {
        if self.depth > 0 {
            Cut::Inside
        } else if self.in_array {
            Cut::AfterLine
        } else {
            Cut::Between
        }
    }
}
