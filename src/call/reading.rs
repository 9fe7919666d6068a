//! A body that is read as a whole before anything of it is given on: its clocks, and whether it came to its end.
//!
//! The clocks are those of a stream. A host that fills the wait with blank lines (`DeepSeek` does, before the JSON) sends
//! bytes but no content. The driver doesn't report every chunk: when the timer fires it says what has come by then.

use crate::body::JsonWalk;
use crate::headers::Headers;
use crate::policy::Policy;
use crate::protocol::Protocol;
use crate::stream::GapKind;
use crate::time::Instant;

/// Bytes of a body that is read in parts which are kept for the classifier.
const KEPT_MAX: usize = 65_536;

/// A body that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) status: u16,
    pub(super) headers: String,
    pub(super) kept: Vec<u8>,
    pub(super) bytes: u64,
    walk: JsonWalk,
    sent_at: Instant,
    last_byte_at: Instant,
    last_content_at: Option<Instant>,
}

impl Reading {
    /// A body whose head has come at `now`, of an attempt that began at `sent_at`.
    pub(super) fn new(status: u16, headers: Headers<'_>, sent_at: Instant, now: Instant) -> Self {
        Self {
            status,
            headers: headers.0.to_owned(),
            walk: JsonWalk::new(),
            kept: Vec::new(),
            bytes: 0,
            sent_at,
            last_byte_at: now,
            last_content_at: None,
        }
    }

    /// When the last byte came, and the last that is not blank, if any has come yet.
    pub(super) fn on_progress(&mut self, last_byte: Option<Instant>, last_content: Option<Instant>) {
        self.last_byte_at = last_byte.map_or(self.last_byte_at, |at| at.max(self.last_byte_at));
        self.last_content_at = last_content.or(self.last_content_at);
    }

    /// Which clock runs out next, and when.
    pub(super) fn next_deadline(&self, policy: &Policy) -> (Instant, GapKind) {
        let chunk = (self.last_byte_at.plus(policy.chunk_gap), GapKind::ChunkGap);
        let content = match self.last_content_at {
            None => (self.sent_at.plus(policy.first_token), GapKind::FirstToken),
            Some(at) => (at.plus(policy.content_gap), GapKind::ContentGap),
        };
        if content.0 < chunk.0 { content } else { chunk }
    }

    /// Takes a part of a body that is too large to cross at once; its beginning is kept for the classifier.
    pub(super) fn take(&mut self, part: &[u8]) {
        self.take_whole(part);
        let room = KEPT_MAX.saturating_sub(self.kept.len()).min(part.len());
        self.kept.extend_from_slice(part.get(..room).unwrap_or(&[]));
    }

    pub(super) fn take_whole(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.walk.feed(bytes, |_| {});
    }

    /// Whether nothing but blanks has come.
    pub(super) fn is_blank(&self) -> bool {
        self.walk.is_blank()
    }

    /// Whether an answer that should be JSON stops before its end.
    pub(super) fn is_cut_short(&self, protocol: Protocol) -> bool {
        if self.walk.is_whole() {
            return false;
        }
        let says_json =
            Headers(&self.headers).get("content-type").is_some_and(|t| t.to_ascii_lowercase().contains("json"));
        if self.is_blank() {
            return protocol != Protocol::Unknown;
        }
        says_json || (protocol != Protocol::Unknown && !self.walk.is_broken())
    }
}
