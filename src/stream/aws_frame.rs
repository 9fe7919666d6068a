//! AWS event stream frames (`application/vnd.amazon.eventstream`): the scanner, and a writer for one kind of frame.
//!
//! A frame is: total length (u32), headers length (u32), CRC32 of these eight bytes, headers, payload, CRC32 of all
//! before it, all big-endian. Source: the AWS event stream specification as smithy implements it
//! (smithy-typescript `eventstream-codec`). Both checksums are checked. A frame that claims more than
//! [`MAX_FRAME`] is invalid as soon as its prelude is there.

use super::held::{Held, RAW_MAX};
use super::lines::Place;
use super::scan::{Cut, Found, Kind, Name};
use super::word::{Word, word};
use crate::prelude::*;

/// Longest frame, in bytes: AWS allows 16 MiB of payload and 128 KiB of headers.
const MAX_FRAME: usize = 16 * 1024 * 1024 + MAX_HEADERS + OVERHEAD;
const MAX_HEADERS: usize = 128 * 1024;
/// Prelude and trailing checksum.
const OVERHEAD: usize = 16;
const PRELUDE: usize = 12;

/// Half a byte at a step: the table for whole bytes doesn't compress, and costs a kilobyte of download.
const CRC_TABLE: [u32; 16] = crc_table();

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
#[allow(clippy::cast_possible_truncation, reason = "i is below 16")]
const fn crc_table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut i = 0;
    while i < 16 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

/// Continues a CRC32 (IEEE) over further bytes; begin with 0.
fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    let mut crc = !crc;
    for byte in bytes {
        for nibble in [*byte, *byte >> 4] {
            let index = (crc as usize ^ usize::from(nibble)) & 15;
            crc = (crc >> 4) ^ CRC_TABLE.get(index).copied().unwrap_or_default();
        }
    }
    !crc
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    word.map_or(0, |word| u32::from_be_bytes(*word))
}

/// Lengths of a frame and of its headers; `None` if its prelude is not one.
fn lengths(prelude: &[u8]) -> Option<(usize, usize)> {
    let total = usize::try_from(be32(prelude, 0)).ok()?;
    let headers = usize::try_from(be32(prelude, 4)).ok()?;
    let sound = (OVERHEAD..=MAX_FRAME).contains(&total)
        && headers <= MAX_HEADERS.min(total.saturating_sub(OVERHEAD))
        && crc32(0, prelude.get(..8)?) == be32(prelude, 8);
    sound.then_some((total, headers))
}

/// Reads frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    prelude: [u8; PRELUDE],
    /// Bytes of the unfinished frame that were read.
    have: usize,
    total: usize,
    headers_length: usize,
    headers: Vec<u8>,
    payload: Held,
    trailer: u32,
    crc: u32,
    name: Name,
    given: bool,
    /// A frame was invalid: nothing after it can be read.
    dead: bool,
}

impl Frames {
    pub(crate) fn next(&mut self, chunk: &[u8], at: &mut usize) -> Option<Found> {
        if self.given {
            self.given = false;
            self.payload.clear();
            self.headers.clear();
        }
        if self.dead {
            *at = chunk.len();
            return None;
        }
        if self.have == 0 {
            if let Some(found) = self.in_place(chunk, at) {
                return Some(found);
            }
        }
        while let Some(rest) = chunk.get(*at..).filter(|rest| !rest.is_empty()) {
            *at = at.wrapping_add(self.take(rest));
            if self.have == PRELUDE {
                let Some((total, headers)) = lengths(&self.prelude) else { return Some(self.invalid()) };
                (self.total, self.headers_length) = (total, headers);
            }
            if self.have >= PRELUDE && self.have == self.total {
                self.have = 0;
                if self.trailer != self.crc {
                    return Some(self.invalid());
                }
                let headers = core::mem::take(&mut self.headers);
                let kind = self.read_headers(&headers);
                self.headers = headers;
                self.given = true;
                return Some(Found { kind, data: Place::Held });
            }
        }
        None
    }

    /// A frame that lies wholly in the chunk.
    fn in_place(&mut self, chunk: &[u8], at: &mut usize) -> Option<Found> {
        let rest = chunk.get(*at..)?;
        let (total, headers_length) = lengths(rest.get(..PRELUDE)?)?;
        let frame = rest.get(..total).filter(|_| total <= RAW_MAX)?;
        let (body, trailer) = frame.split_at_checked(total.wrapping_sub(4))?;
        if crc32(0, body) != be32(trailer, 0) {
            return None; // the slow path says so
        }
        let payload_at = PRELUDE.wrapping_add(headers_length);
        let kind = self.read_headers(body.get(PRELUDE..payload_at)?);
        let from = at.wrapping_add(payload_at);
        let to = at.wrapping_add(body.len());
        *at = at.wrapping_add(total);
        self.given = true;
        let data = if kind == Kind::FrameError { Place::Held } else { Place::Chunk(from, to) };
        Some(Found { kind, data })
    }

    /// Takes what `rest` has of the frame's current part; how many bytes that was.
    fn take(&mut self, rest: &[u8]) -> usize {
        let headers_end = PRELUDE.wrapping_add(self.headers_length);
        let payload_end = self.total.saturating_sub(4);
        let end = match self.have {
            have if have < PRELUDE => PRELUDE,
            have if have < headers_end => headers_end,
            have if have < payload_end => payload_end,
            _ => self.total,
        };
        let part = rest.get(..end.saturating_sub(self.have)).unwrap_or(rest);
        if self.have < PRELUDE {
            if self.have == 0 {
                (self.crc, self.trailer) = (0, 0);
            }
            for (to, from) in self.prelude.iter_mut().skip(self.have).zip(part) {
                *to = *from;
            }
        } else if self.have < headers_end {
            let room = RAW_MAX.saturating_sub(self.headers.len()).min(part.len());
            self.headers.extend_from_slice(part.get(..room).unwrap_or_default());
        } else if self.have < payload_end {
            self.payload.push(part);
        } else {
            for byte in part {
                self.trailer = (self.trailer << 8) | u32::from(*byte);
            }
        }
        if self.have < payload_end.max(PRELUDE) {
            self.crc = crc32(self.crc, part);
        }
        self.have = self.have.saturating_add(part.len());
        part.len()
    }

    #[cold]
    fn invalid(&mut self) -> Found {
        self.dead = true;
        self.given = true;
        self.have = 0;
        Found { kind: Kind::Invalid, data: Place::Held }
    }

    /// Reads the headers that say what the frame is.
    fn read_headers(&mut self, headers: &[u8]) -> Kind {
        let (mut kind, mut message) = (Kind::Event, &[][..]);
        self.name.clear();
        let mut rest = headers;
        while let Some((name, value, behind)) = header(rest) {
            rest = behind;
            match word(name) {
                Word::MessageType => match word(value) {
                    Word::Exception => kind = Kind::Exception,
                    Word::Error => kind = Kind::FrameError,
                    _ => {}
                },
                Word::EventTypeHeader | Word::ExceptionType | Word::ErrorCode => self.name.set(value),
                Word::ErrorMessage => message = value,
                _ => {}
            }
        }
        if kind == Kind::FrameError {
            self.payload.clear();
            self.payload.push(message);
        }
        kind
    }

    pub(crate) const fn held(&self) -> &Held {
        &self.payload
    }

    pub(crate) fn name(&self) -> &[u8] {
        self.name.bytes()
    }

    pub(crate) const fn cut(&self) -> Cut {
        if self.have > 0 || self.dead { Cut::Inside } else { Cut::Between }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.payload.capacity().saturating_add(self.headers.capacity())
    }
}

/// The first header: its name, its value as bytes, and what follows it.
fn header(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    let (kind, rest) = rest.split_first()?;
    let (length, rest) = match kind {
        0 | 1 => (0, rest),
        2 => (1, rest),
        3 => (2, rest),
        4 => (4, rest),
        5 | 8 => (8, rest),
        9 => (16, rest),
        6 | 7 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((name, value, rest))
}

/// Writes a frame with string headers.
pub(crate) fn write_frame(headers: &[(&str, &str)], payload: &[u8], out: &mut Vec<u8>) {
    let mut block = Vec::new();
    for (name, value) in headers {
        let value = value.as_bytes().get(..usize::from(u16::MAX)).unwrap_or(value.as_bytes());
        block.push(u8::try_from(name.len()).unwrap_or_default());
        block.extend_from_slice(name.as_bytes());
        block.push(7);
        block.extend_from_slice(&u16::try_from(value.len()).unwrap_or_default().to_be_bytes());
        block.extend_from_slice(value);
    }
    let start = out.len();
    let total = OVERHEAD.saturating_add(block.len()).saturating_add(payload.len());
    out.extend_from_slice(&u32::try_from(total).unwrap_or_default().to_be_bytes());
    out.extend_from_slice(&u32::try_from(block.len()).unwrap_or_default().to_be_bytes());
    let prelude = crc32(0, out.get(start..).unwrap_or_default());
    out.extend_from_slice(&prelude.to_be_bytes());
    out.extend_from_slice(&block);
    out.extend_from_slice(payload);
    let message = crc32(0, out.get(start..).unwrap_or_default());
    out.extend_from_slice(&message.to_be_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_zip_and_png() {
        assert_eq!(crc32(0, b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(crc32(0, b"12345"), b"6789"), 0xCBF4_3926);
    }

    #[test]
    fn a_frame_reads_back_at_any_split() {
        let mut bytes = Vec::new();
        write_frame(&[(":message-type", "event"), (":event-type", "messageStop")], b"{\"a\":1}", &mut bytes);
        for at in 0..bytes.len() {
            let mut frames = Frames::default();
            let mut found = None;
            for chunk in [&bytes[..at], &bytes[at..]] {
                let mut offset = 0;
                while let Some(event) = frames.next(chunk, &mut offset) {
                    found = Some((event.kind, frames.name().to_vec(), event.data.of(chunk, frames.held()).to_vec()));
                }
            }
            assert_eq!(found, Some((Kind::Event, b"messageStop".to_vec(), b"{\"a\":1}".to_vec())), "split at {at}");
        }
    }

    #[test]
    fn a_large_frame_is_read_without_being_kept() {
        let (mut bytes, text) = (Vec::new(), "x".repeat(3 << 20));
        write_frame(&[(":event-type", "chunk")], format!("{{\"t\":\"{text}\",\"end\":1}}").as_bytes(), &mut bytes);
        for size in [1000, 70_000, bytes.len()] {
            let (mut frames, mut found) = (Frames::default(), 0);
            for chunk in bytes.chunks(size) {
                let mut at = 0;
                while let Some(event) = frames.next(chunk, &mut at) {
                    assert!(event.data.of(chunk, frames.held()).ends_with(b"x\",\"end\":1}"));
                    found += 1;
                }
                assert!(frames.capacity() <= 4 * RAW_MAX);
            }
            assert_eq!(found, 1, "chunks of {size}");
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_makes_the_frame_invalid_or_unfinished() {
        let mut bytes = Vec::new();
        write_frame(&[(":event-type", "x")], b"{}", &mut bytes);
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 0x10;
            let (mut frames, mut offset) = (Frames::default(), 0);
            let found = frames.next(&broken, &mut offset);
            assert!(found.is_none_or(|f| f.kind == Kind::Invalid), "byte {at}");
        }
    }
}
