//! Server-sent events: the scanner.
//!
//! The rules are those of the WHATWG HTML standard, section "Interpreting an event stream", with what providers do
//! beside it: JSON that stands in the stream without `data:` (Gemini's errors; a whole JSON body under the wrong content
//! type), the field `error:` of older llama.cpp servers (ggml-org/llama.cpp#16104), and a last event that only the
//! end of the body closes.

use super::held::{Balance, Held};
use super::lines::{Lines, Place};
use super::scan::{Cut, Found, Kind, Name};

/// Reads events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sse {
    lines: Lines,
    /// The data of the unfinished event, where it is more than one line or more than one chunk long.
    data: Held,
    has_data: bool,
    name: Name,
    /// Bare JSON has begun and is not balanced yet.
    bare: Option<Balance>,
    /// The event was given out and is to be forgotten.
    given: bool,
    /// The event that was given out is the line itself.
    gave_line: bool,
}

/// Data of the unfinished event that lies in the chunk being read: one line, from one offset to another.
type Pending = Option<(usize, usize)>;

impl Sse {
    #[inline]
    pub(crate) fn next(&mut self, chunk: &[u8], at: &mut usize) -> Option<Found> {
        self.forget();
        let mut pending = None;
        while let Some(place) = self.lines.next(chunk, at) {
            if let Some(found) = self.line(chunk, place, &mut pending) {
                self.given = true;
                return Some(found);
            }
        }
        self.spill(chunk, &mut pending);
        None
    }

    pub(crate) fn end(&mut self) -> Option<Found> {
        self.forget();
        if let Some(place) = self.lines.last()
            && let Some(found) = self.line(&[], place, &mut None)
        {
            self.given = true;
            return Some(found);
        }
        let mut balance = Balance::default();
        balance.feed(self.data.bytes());
        if self.has_data && self.bare.is_none() && balance.is_closed() {
            self.given = true;
            return Some(Found { kind: Kind::Event, data: Place::Held });
        }
        None
    }

    fn forget(&mut self) {
        if self.given {
            self.given = false;
            self.gave_line = false;
            self.has_data = false;
            self.data.clear();
            self.name.clear();
        }
    }

    #[inline]
    fn line(&mut self, chunk: &[u8], place: Place, pending: &mut Pending) -> Option<Found> {
        let line = place.of(chunk, self.lines.held());
        if let Some(value) = line.strip_prefix(b"data:").filter(|_| self.bare.is_none()) {
            let skip = if let [b' ', ..] = value { 6 } else { 5 };
            match place {
                Place::Chunk(from, to) if pending.is_none() && !self.has_data => {
                    *pending = Some((from.wrapping_add(skip), to));
                }
                _ => self.push_data(chunk, place, skip, pending),
            }
            return None;
        }
        if line.is_empty() && self.bare.is_none() {
            return self.blank(pending);
        }
        self.other(chunk, place, pending)
    }

    /// A blank line: the event is finished, if there is one.
    #[inline]
    fn blank(&mut self, pending: &mut Pending) -> Option<Found> {
        if let Some((from, to)) = pending.take() {
            return Some(Found { kind: Kind::Event, data: Place::Chunk(from, to) });
        }
        if self.has_data {
            return Some(Found { kind: Kind::Event, data: Place::Held });
        }
        self.name.clear();
        None
    }

    /// A further data line, or one that was put together from several chunks.
    #[cold]
    fn push_data(&mut self, chunk: &[u8], place: Place, skip: usize, pending: &mut Pending) {
        self.spill(chunk, pending);
        if self.has_data {
            self.data.push(b"\n");
        }
        self.has_data = true;
        self.data.push(place.of(chunk, self.lines.held()).get(skip..).unwrap_or_default());
    }

    /// Keeps for the next chunk what lies in this one.
    fn spill(&mut self, chunk: &[u8], pending: &mut Pending) {
        if let Some((from, to)) = pending.take() {
            self.has_data = true;
            self.data.push(chunk.get(from..to).unwrap_or_default());
        }
    }

    /// Every line that is neither `data:` nor blank.
    #[inline(never)]
    fn other(&mut self, chunk: &[u8], place: Place, pending: &mut Pending) -> Option<Found> {
        let line = place.of(chunk, self.lines.held());
        let free = pending.is_none() && !self.has_data;
        if let Some(balance) = &mut self.bare {
            if is_field(line) {
                // Raw JSON has no line that looks like this: the bare text was never finished.
                self.bare = None;
                self.has_data = false;
                self.data.clear();
                return self.line(chunk, place, pending);
            }
            balance.feed(line);
            let closed = balance.is_closed();
            self.data.push(line);
            self.data.push(b"\n");
            return self.bare_found(closed);
        }
        if let Some(name) = line.strip_prefix(b"event:") {
            self.name.set(name.strip_prefix(b" ").unwrap_or(name));
        } else if line == b"data" {
            self.push_data(chunk, place, 4, pending);
        } else if line.starts_with(b"error:") && free {
            self.gave_line = place == Place::Held;
            return Some(Found { kind: Kind::ErrorField, data: place });
        } else if matches!(line.first(), Some(b'{' | b'[')) && free {
            let mut balance = Balance::default();
            balance.feed(line);
            let closed = balance.is_closed();
            self.data.push(line);
            self.data.push(b"\n");
            self.bare = Some(balance);
            return self.bare_found(closed);
        }
        None
    }

    fn bare_found(&mut self, closed: bool) -> Option<Found> {
        if closed || self.data.truncated() {
            self.bare = None;
            return Some(Found { kind: Kind::Bare, data: Place::Held });
        }
        None
    }

    pub(crate) const fn held(&self) -> &Held {
        if self.gave_line { self.lines.held() } else { &self.data }
    }

    pub(crate) fn name(&self) -> &[u8] {
        self.name.bytes()
    }

    pub(crate) const fn cut(&self) -> Cut {
        if self.lines.in_line() {
            Cut::Inside
        } else if !self.given && (self.has_data || self.bare.is_some() || !self.name.is_empty()) {
            Cut::AfterLine
        } else {
            Cut::Between
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.lines.held().capacity().saturating_add(self.data.capacity())
    }
}

/// Whether a line can only be a field or a comment of an event stream.
fn is_field(line: &[u8]) -> bool {
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| line.starts_with(field))
}
