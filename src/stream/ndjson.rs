//! Newline-delimited JSON: the scanner (Ollama, `application/x-ndjson`).
//!
//! A line is an event. A line that opens JSON and does not close it begins a value that is written over several lines
//! (an error body that was pretty-printed); it ends where it is balanced, or where a line begins a new object.

use super::held::{Balance, Held};
use super::lines::{Lines, Place};
use super::scan::{Cut, Found, Kind};

/// Reads lines of JSON.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ndjson {
    lines: Lines,
    joined: Held,
    open: Option<Balance>,
    given: bool,
    gave_line: bool,
}

impl Ndjson {
    pub(crate) fn next(&mut self, chunk: &[u8], at: &mut usize) -> Option<Found> {
        self.forget();
        while let Some(place) = self.lines.next(chunk, at) {
            if let Some(found) = self.line(chunk, place) {
                return Some(found);
            }
        }
        None
    }

    pub(crate) fn end(&mut self) -> Option<Found> {
        self.forget();
        let place = self.lines.last()?;
        self.line(&[], place)
    }

    fn forget(&mut self) {
        if self.given {
            self.given = false;
            self.gave_line = false;
            self.joined.clear();
        }
    }

    fn line(&mut self, chunk: &[u8], place: Place) -> Option<Found> {
        let line = place.of(chunk, self.lines.held()).trim_ascii();
        let (first, last) = (line.first()?, line.last()?);
        let fresh = line.starts_with(b"{\"");
        if fresh {
            self.open = None;
            self.joined.clear();
        }
        if let Some(balance) = &mut self.open {
            balance.feed(line);
            let closed = balance.is_closed();
            self.joined.push(line);
            self.joined.push(b"\n");
            return self.joined_found(closed);
        }
        if matches!(first, b'{' | b'[') && !matches!(last, b'}' | b']') {
            let mut balance = Balance::default();
            balance.feed(line);
            self.joined.push(line);
            self.joined.push(b"\n");
            self.open = Some(balance);
            return self.joined_found(false);
        }
        self.given = true;
        self.gave_line = true;
        Some(Found { kind: Kind::Event, data: place })
    }

    fn joined_found(&mut self, closed: bool) -> Option<Found> {
        if closed || self.joined.truncated() {
            self.open = None;
            self.given = true;
            return Some(Found { kind: Kind::Bare, data: Place::Held });
        }
        None
    }

    pub(crate) const fn held(&self) -> &Held {
        if self.gave_line { self.lines.held() } else { &self.joined }
    }

    pub(crate) const fn cut(&self) -> Cut {
        if self.lines.in_line() || self.open.is_some() { Cut::Inside } else { Cut::Between }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.lines.held().capacity().saturating_add(self.joined.capacity())
    }
}
