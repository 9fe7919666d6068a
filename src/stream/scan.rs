//! What every scanner has in common: what it finds, and which one reads which stream.
//!
//! A scanner is pulled: `next` gives the next finished event of a chunk and moves the offset behind it. An event that
//! lies wholly in the chunk is read where it is; only what is unfinished at the chunk's end is copied.

use super::aws_frame::Frames;
use super::held::Held;
use super::json_array::JsonValues;
use super::lines::Place;
use super::ndjson::Ndjson;
use super::sse::Sse;
use crate::prelude::*;
use crate::protocol::Protocol;

/// How events are set apart in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`.
    Sse,
    /// A JSON value a line.
    Ndjson,
    /// One JSON array of events, or a single JSON object.
    Json,
    /// `application/vnd.amazon.eventstream`.
    AwsFrames,
    /// Not known: bytes only.
    Opaque,
}

impl Framing {
    /// The framing of an answer. The content type decides where it is one of a stream; where it is missing or says nothing
    /// the protocol does.
    #[must_use]
    pub fn of(protocol: Protocol, content_type: &str) -> Self {
        let is = |name: &str| is_type(content_type.as_bytes(), name.as_bytes());
        if protocol == Protocol::Unknown || protocol == Protocol::OpenAiEmbeddings {
            Self::Opaque
        } else if is("text/event-stream") {
            Self::Sse
        } else if is("application/vnd.amazon.eventstream") {
            Self::AwsFrames
        } else if protocol == Protocol::OllamaChat || is("application/x-ndjson") || is("application/jsonl") {
            Self::Ndjson
        } else if is("application/json") {
            Self::Json
        } else if is_bedrock(protocol) {
            Self::AwsFrames
        } else {
            Self::Sse
        }
    }
}

/// Whether a content type is `name`, whatever its case and its parameters.
#[inline(never)]
fn is_type(content_type: &[u8], name: &[u8]) -> bool {
    content_type.trim_ascii_start().split_at_checked(name.len()).is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(name) && matches!(rest.trim_ascii_start().first(), None | Some(b';'))
    })
}

/// Whether the protocol is one of Bedrock's.
pub(crate) const fn is_bedrock(protocol: Protocol) -> bool {
    matches!(
        protocol,
        Protocol::BedrockConverse
            | Protocol::BedrockConverseStream
            | Protocol::BedrockInvoke
            | Protocol::BedrockInvokeStream
    )
}

/// What kind of thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An event of the framing.
    Event,
    /// JSON that stands in the stream without the framing's own wrapping.
    Bare,
    /// The SSE field `error:`, which parsers drop; the data is the whole line.
    ErrorField,
    /// An AWS frame with `:message-type: exception`; its name is the exception's type.
    Exception,
    /// An AWS frame with `:message-type: error`; its name is the code, its data the message.
    FrameError,
    /// A frame that can't be one; nothing after it can be read.
    Invalid,
}

/// A finished event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) data: Place,
}

/// A short name: an SSE event's, a frame's event or exception type. Longer ones are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    bytes: [u8; 63],
    length: u8,
}

impl Default for Name {
    fn default() -> Self {
        Self { bytes: [0; 63], length: 0 }
    }
}

impl Name {
    pub(crate) fn set(&mut self, name: &[u8]) {
        self.length = 0;
        for (to, from) in self.bytes.iter_mut().zip(name) {
            *to = *from;
            self.length = self.length.wrapping_add(1);
        }
    }

    pub(crate) const fn clear(&mut self) {
        self.length = 0;
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// The scanner of one stream.
#[derive(Clone, Debug)]
pub(crate) enum Scanner {
    Sse(Sse),
    Ndjson(Ndjson),
    Json(JsonValues),
    Aws(Box<Frames>),
    Opaque,
}

impl Scanner {
    /// The scanner for a framing. The first byte of the body may know better: JSON where frames or events were
    /// announced, compressed bytes that nobody decoded.
    pub(crate) fn new(framing: Framing, first: u8) -> Self {
        match (framing, first) {
            // gzip (1f 8b) and zstd (28 b5 2f fd); neither byte begins an event of any framing.
            (Framing::Opaque, _) | (Framing::Sse | Framing::Ndjson | Framing::Json, 0x1f | 0x28) => Self::Opaque,
            (Framing::Json, b'd' | b'e' | b':') => Self::Sse(Sse::default()),
            (Framing::Json, _) | (Framing::AwsFrames, b'{' | b'[') | (Framing::Sse, b'[') => {
                Self::Json(JsonValues::default())
            }
            (Framing::Sse, _) => Self::Sse(Sse::default()),
            (Framing::Ndjson, _) => Self::Ndjson(Ndjson::default()),
            (Framing::AwsFrames, _) => Self::Aws(Box::default()),
        }
    }

    /// The next finished event of `chunk` from `at` on, which moves behind it.
    #[inline]
    pub(crate) fn next(&mut self, chunk: &[u8], at: &mut usize) -> Option<Found> {
        match self {
            Self::Sse(s) => s.next(chunk, at),
            Self::Ndjson(s) => s.next(chunk, at),
            Self::Json(s) => s.next(chunk, at),
            Self::Aws(s) => s.next(chunk, at),
            Self::Opaque => {
                *at = chunk.len();
                None
            }
        }
    }

    /// What the end of the body finishes: the last event, which nothing but the end closed.
    pub(crate) fn end(&mut self) -> Option<Found> {
        match self {
            Self::Sse(s) => s.end(),
            Self::Ndjson(s) => s.end(),
            _ => None,
        }
    }

    /// The buffer that [`Place::Held`] speaks of.
    #[inline]
    pub(crate) const fn held(&self) -> Option<&Held> {
        match self {
            Self::Sse(s) => Some(s.held()),
            Self::Ndjson(s) => Some(s.held()),
            Self::Json(s) => Some(s.held()),
            Self::Aws(s) => Some(s.held()),
            Self::Opaque => None,
        }
    }

    /// The name of the event that was found last.
    #[inline]
    pub(crate) fn name(&self) -> &[u8] {
        match self {
            Self::Sse(s) => s.name(),
            Self::Aws(s) => s.name(),
            _ => &[],
        }
    }

    /// Where an unfinished event stands.
    pub(crate) fn cut(&self) -> Cut {
        match self {
            Self::Sse(s) => s.cut(),
            Self::Ndjson(s) => s.cut(),
            Self::Json(s) => s.cut(),
            Self::Aws(s) => s.cut(),
            Self::Opaque => Cut::Between,
        }
    }

    /// Memory that is taken, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Sse(s) => s.capacity(),
            Self::Ndjson(s) => s.capacity(),
            Self::Json(s) => s.held().capacity(),
            Self::Aws(s) => s.capacity(),
            Self::Opaque => 0,
        }
    }
}

/// Where a stream stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Between two events.
    Between,
    /// Behind a line of an event whose blank line is missing.
    AfterLine,
    /// Inside of a line, a JSON value or a frame.
    Inside,
}
