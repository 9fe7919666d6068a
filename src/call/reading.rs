//! A body that is read as a whole before anything of it is given on: its clocks, and whether it came to its end.
//!
//! The clocks are those of a stream. A host that fills the wait with blank lines (`DeepSeek` does, before the JSON) sends
//! bytes but no content. The driver doesn't report every chunk: when the timer fires it says what has come by then.

use crate::body::JsonWalk;
use crate::headers::Headers;
use crate::policy::Policy;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::stream::GapKind;
use crate::text;
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
    /// Seen to be whole JSON without a walk.
    whole: bool,
    head_at: Instant,
    last_byte_at: Instant,
    last_content_at: Option<Instant>,
    looked_at: Instant,
}

impl Reading {
    /// A body whose head has come at `now`. The clocks begin here and not with the attempt: the head of an answer that is
    /// not streamed comes when the answer is written, however long that took, and its body comes with it.
    pub(super) fn new(status: u16, headers: Headers<'_>, now: Instant) -> Self {
        Self {
            status,
            headers: headers.0.to_owned(),
            walk: JsonWalk::new(),
            kept: Vec::new(),
            bytes: 0,
            whole: false,
            head_at: now,
            last_byte_at: now,
            last_content_at: None,
            looked_at: now,
        }
    }

    /// When the last byte came, and the last that is not blank, if any has come yet.
    pub(super) fn on_progress(&mut self, last_byte: Option<Instant>, last_content: Option<Instant>, now: Instant) {
        self.looked_at = now;
        self.last_byte_at = last_byte.map_or(self.last_byte_at, |at| at.max(self.last_byte_at));
        self.last_content_at = last_content.or(self.last_content_at);
    }

    /// Which clock runs out next, and when.
    pub(super) fn next_deadline(&self, policy: &Policy) -> (Instant, GapKind) {
        let chunk = (self.last_byte_at.plus(policy.chunk_gap), GapKind::ChunkGap);
        let content = match self.last_content_at {
            None => (self.head_at.plus(policy.first_token), GapKind::FirstToken),
            Some(at) => (at.plus(policy.content_gap), GapKind::ContentGap),
        };
        if content.0 < chunk.0 { content } else { chunk }
    }

    /// When to look again: content that came since the last look may have started a clock.
    pub(super) fn next_look(&self, policy: &Policy) -> Instant {
        let due = self.next_deadline(policy).0;
        if self.last_content_at.is_some() { due } else { due.min(self.looked_at.plus(policy.content_gap)) }
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

    /// Takes what is left of a body. `whole`: it is all of it, and a whole JSON object or array.
    pub(super) fn take_last(&mut self, bytes: &[u8], whole: bool) {
        if whole {
            self.whole = true;
            self.bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        } else {
            self.take_whole(bytes);
        }
    }

    /// Whether nothing but blanks has come.
    pub(super) fn is_blank(&self) -> bool {
        !self.whole && self.walk.is_blank()
    }

    /// Whether an answer that should be JSON stops before its end.
    pub(super) fn is_cut_short(&self, protocol: Protocol) -> bool {
        if self.whole || self.walk.is_whole() {
            return false;
        }
        let says_json =
            Headers(&self.headers).get("content-type").is_some_and(|t| text::has(&t.to_ascii_lowercase(), "json"));
        if self.is_blank() {
            return protocol != Protocol::Unknown;
        }
        says_json || (protocol != Protocol::Unknown && !self.walk.is_broken())
    }
}
