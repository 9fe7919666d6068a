//! One streamed answer, from its head to its last byte: what may be delivered, and when it has failed.
//!
//! ```text
//!            chunk: not yet content          chunk: content            chunk
//!          ┌──────────┐                                           ┌──────────┐
//!          │          ▼                                           │          ▼
//!  new ──► HELD ──────────────── Commit ───────────────────────► COMMITTED ──── end ──► Ended
//!          │ │                                                        │
//!          │ └─ end, whole ──► Ended (release what is held)           │
//!          └─ error event, cut, gap, reset ──► Failed { before_commit }
//! ```
//!
//! The bytes are the host's: it holds them or passes them on, as told. The guard keeps what an unfinished event needs.
//! Chunk boundaries change nothing but the moment: the same bytes give the same facts and the same outcome. One thing is used
//! that a boundary gives: a failure in the very chunk that would have committed is still before the commit.

use super::error_event::{error_event, quote_inside};
use super::facts::StreamFacts;
use super::lines::Place;
use super::protocol::{Finish, Meaning, Reader};
use super::scan::{Cut, Found, Framing, Kind, Scanner};
use crate::class::ErrorClass;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::time::{Instant, Millis};

/// Bytes of an error event that a [`Failure`] carries at most.
pub const MAX_ERROR_BYTES: usize = 8 * 1024;

/// Up to where a stream is held back, so that it can still be retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitOn {
    /// Nothing is held: the head is passed on as it comes.
    Head,
    /// To the first event, whatever it says, errors and pings excepted.
    FirstEvent,
    /// To the first event that a reader of the answer sees something of. The default.
    #[default]
    FirstContent,
    /// To the end: nothing but whole answers is delivered.
    End,
}

/// Which clock ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// No token came in time.
    FirstToken,
    /// No byte came in time.
    ChunkGap,
    /// Bytes came, content did not.
    ContentGap,
}

/// The limits of one stream. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTimes {
    /// From the guard's start to the first generated token. Comments, pings and blank lines don't count.
    pub first_token: Option<Millis>,
    /// From any byte to the next.
    pub chunk_gap: Option<Millis>,
    /// From any generated token to the next.
    pub content_gap: Option<Millis>,
}

/// What to do with a chunk, or with the stream at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Keep holding.
    Hold,
    /// Deliver all that was held, this chunk included, and go on.
    Commit,
    /// Deliver this chunk.
    Pass,
    /// The stream has failed; stop reading it.
    Failed(Box<Failure>),
    /// The answer is whole. Deliver what is still held, if anything, and end the stream cleanly.
    Ended,
}

/// Why a stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The upstream sent an error event: classify [`Failure::event`].
    ErrorEvent,
    /// The finish reason says that the provider broke off or that the output is unusable.
    FinishReason,
    /// The finish reason says that a safety system refused, and nothing was delivered. See [`StreamGuard::deliver_anyway`].
    ContentFiltered,
    /// It ended without a terminal marker and without a finish reason.
    EndWithoutTerminal,
    /// It ended without having said anything.
    Empty,
    /// The connection broke.
    Reset,
    /// A frame's checksum or length is wrong.
    InvalidFrame,
    /// A clock ran out.
    Gap(GapKind),
}

/// A failed stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub kind: FailureKind,
    /// Nothing was delivered: the attempt may be retried.
    pub before_commit: bool,
    /// The error event's JSON, at most [`MAX_ERROR_BYTES`]; an AWS frame as `{"headers":{…},"body":"…"}`. For a finish reason
    /// the event that carries it. Else empty.
    pub event: Vec<u8>,
    /// How many bytes of the chunk are to be delivered still, if the stream is committed: up to the end of the event that
    /// failed it, so that an upstream's error event is passed on and what follows it is not.
    pub pass_bytes: usize,
    /// Those bytes end in an error event that the protocol's clients understand: don't add another.
    pub in_band: bool,
}

/// Watches one streamed answer.
#[derive(Clone, Debug)]
pub struct StreamGuard {
    protocol: Protocol,
    framing: Framing,
    scanner: Option<Scanner>,
    reader: Reader,
    facts: StreamFacts,
    commit_on: CommitOn,
    committed: bool,
    /// An event to commit on has come.
    commit_due: bool,
    max_held: usize,
    held: usize,
    times: StreamTimes,
    started_at: Instant,
    last_token_at: Instant,
    failure: Option<Box<Failure>>,
    /// Filtered or unusable answers are delivered as they are.
    deliver_anyway: bool,
    /// Where the body ended, before its end closed the last event.
    end_cut: Option<Cut>,
}

impl StreamGuard {
    /// The guard of an answer whose head has come. `content_type` is the head's header (empty if there is none).
    ///
    /// `now` is where the clocks of `times` begin; a first-token limit that counts from the request is given less what has
    /// passed. `max_held` bounds what is held before the commit point, in bytes: past it the stream is let go, which
    /// [`StreamFacts::commit_forced`] says.
    #[must_use]
    pub fn new(
        protocol: Protocol,
        content_type: &str,
        commit_on: CommitOn,
        max_held: usize,
        times: StreamTimes,
        now: Instant,
    ) -> Self {
        let framing = Framing::of(protocol, content_type);
        Self {
            protocol,
            framing,
            scanner: None,
            reader: Reader::new(protocol),
            facts: StreamFacts { understood: framing != Framing::Opaque, ..StreamFacts::default() },
            commit_on,
            committed: commit_on == CommitOn::Head,
            commit_due: false,
            max_held,
            held: 0,
            times,
            started_at: now,
            last_token_at: now,
            failure: None,
            deliver_anyway: false,
            end_cut: None,
        }
    }

    /// Scans the next chunk. After a failure nothing is scanned any more, and the answer is `Hold` or `Pass` as before it.
    pub fn on_chunk(&mut self, chunk: &[u8], now: Instant) -> Verdict {
        let Some(first) = chunk.first() else { return self.idle() };
        self.note_bytes(chunk.len(), now);
        if self.has_stopped() {
            return self.idle();
        }
        let failed_before = self.failure.is_some();
        let mut scanner = match self.scanner.take() {
            Some(scanner) => scanner,
            None => self.first_scanner(*first),
        };
        let opaque = matches!(scanner, Scanner::Opaque);
        self.commit_due |= opaque;
        let mut at = 0;
        while let Some(found) = scanner.next(chunk, &mut at) {
            self.on_event(&scanner, &found, chunk, at, now);
            if self.has_stopped() {
                break;
            }
        }
        self.scanner = Some(scanner);
        if !failed_before && let Some(failed) = self.failed() {
            return failed;
        }
        if self.committed || failed_before {
            return self.idle();
        }
        self.held = self.held.saturating_add(chunk.len());
        if self.commit_due && self.commit_on != CommitOn::End {
            self.committed = true;
        } else if self.held > self.max_held {
            self.committed = true;
            self.facts.commit_forced = true;
        }
        if self.committed { Verdict::Commit } else { Verdict::Hold }
    }

    /// The body ended, without an error of the connection.
    pub fn on_end(&mut self, now: Instant) -> Verdict {
        if self.has_stopped() {
            return self.failed().unwrap_or(Verdict::Ended);
        }
        self.end_cut = Some(self.cut());
        if let Some(mut scanner) = self.scanner.take() {
            if let Some(found) = scanner.end() {
                self.on_event(&scanner, &found, &[], 0, now);
            }
            self.scanner = Some(scanner);
        }
        if let Some(failed) = self.failed() {
            return failed;
        }
        if matches!(self.scanner, Some(Scanner::Opaque)) || self.framing == Framing::Opaque {
            return Verdict::Ended;
        }
        let finished = self.reader.has_finished();
        if self.framing == Framing::Json && self.cut() != Cut::Between {
            return self.fail(FailureKind::EndWithoutTerminal);
        }
        if finished || (self.facts.terminal_seen && self.facts.content_events > 0) {
            return Verdict::Ended;
        }
        if self.facts.events == 0 || self.facts.terminal_seen {
            return self.fail(FailureKind::Empty);
        }
        self.fail(FailureKind::EndWithoutTerminal)
    }

    /// The connection broke. An answer that had finished by then is whole all the same.
    pub fn on_reset(&mut self, _now: Instant) -> Verdict {
        self.broken(FailureKind::Reset)
    }

    /// Nothing was read for `idle`, since the reader of the answer was slow: that time is not the provider's, and no
    /// clock counts it.
    pub fn on_idle(&mut self, idle: Millis) {
        self.started_at = self.started_at.plus(idle);
        self.last_token_at = self.last_token_at.plus(idle);
        self.facts.last_byte_at = self.facts.last_byte_at.map(|at| at.plus(idle));
    }

    /// When a clock runs out next, and which.
    #[must_use]
    pub fn next_deadline(&self) -> Option<(Instant, GapKind)> {
        if self.failure.is_some() {
            return None;
        }
        let last_byte = self.facts.last_byte_at.unwrap_or(self.started_at);
        let over = self.is_whole();
        let watched = self.facts.understood && !over;
        let token = match self.facts.first_token_at {
            None => self.times.first_token.map(|limit| (self.started_at.plus(limit), GapKind::FirstToken)),
            Some(_) => self.times.content_gap.map(|limit| (self.last_token_at.plus(limit), GapKind::ContentGap)),
        };
        let chunk = self.times.chunk_gap.map(|limit| (last_byte.plus(limit), GapKind::ChunkGap));
        [token.filter(|_| watched), chunk].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// A timer fired. `None`: no clock has run out yet. An answer that is whole but whose connection stays open has ended.
    pub fn on_timeout(&mut self, now: Instant) -> Option<Verdict> {
        let (at, kind) = self.next_deadline()?;
        (at <= now).then(|| self.broken(FailureKind::Gap(kind)))
    }

    /// What was seen so far.
    #[must_use]
    pub const fn facts(&self) -> &StreamFacts {
        &self.facts
    }

    /// Whether the commit point has been reached.
    #[must_use]
    pub const fn is_committed(&self) -> bool {
        self.committed
    }

    /// How the stream is framed.
    #[must_use]
    pub const fn framing(&self) -> Framing {
        self.framing
    }

    /// Where the stream stands: between two events, or in one.
    #[must_use]
    pub fn cut(&self) -> Cut {
        self.end_cut.unwrap_or_else(|| self.scanner.as_ref().map_or(Cut::Between, Scanner::cut))
    }

    /// Memory of the scanner, in bytes; what the host holds is not counted.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.scanner.as_ref().map_or(0, Scanner::capacity).saturating_add(self.reader.capacity())
    }

    /// Takes a refused answer for what it is: after [`FailureKind::ContentFiltered`] the host delivers what it held and what
    /// still comes, and the stream may end well.
    pub fn deliver_anyway(&mut self) {
        self.committed = true;
        self.deliver_anyway = true;
        if self.failure.as_ref().is_some_and(|f| f.kind == FailureKind::ContentFiltered) {
            self.failure = None;
        }
    }

    /// Appends the error event that ends this stream, as [`error_event`] does.
    pub fn error_event(&self, class: ErrorClass, message: &str, out: &mut Vec<u8>) {
        error_event(self.protocol, self.framing, self.cut(), class, message, out);
    }

    /// Whether nothing is scanned any more. A refused answer is read on, should it be delivered after all.
    fn has_stopped(&self) -> bool {
        self.failure.as_ref().is_some_and(|f| f.kind != FailureKind::ContentFiltered)
    }

    fn idle(&self) -> Verdict {
        if self.committed { Verdict::Pass } else { Verdict::Hold }
    }

    fn note_bytes(&mut self, count: usize, now: Instant) {
        let facts = &mut self.facts;
        facts.bytes = facts.bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if let Some(last) = facts.last_byte_at {
            facts.longest_gap = facts.longest_gap.max(now.since(last));
        } else {
            facts.first_byte_at = Some(now);
        }
        facts.last_byte_at = Some(now);
    }

    #[cold]
    fn first_scanner(&mut self, first: u8) -> Scanner {
        let scanner = Scanner::new(self.framing, first);
        self.framing = match scanner {
            Scanner::Sse(_) => Framing::Sse,
            Scanner::Ndjson(_) => Framing::Ndjson,
            Scanner::Json(_) => Framing::Json,
            Scanner::Aws(_) => Framing::AwsFrames,
            Scanner::Opaque => Framing::Opaque,
        };
        self.facts.understood = self.framing != Framing::Opaque;
        scanner
    }

    /// Takes an event in.
    #[inline]
    fn on_event(&mut self, scanner: &Scanner, found: &Found, chunk: &[u8], end: usize, now: Instant) {
        let Some(held) = scanner.held() else { return };
        let data = found.data.of(chunk, held);
        let truncated = found.data == Place::Held && held.truncated();
        let m = self.reader.read(found.kind, scanner.name(), data, truncated, &mut self.facts);
        self.note(m, now);
        // Content that comes with a bad ending is content: it counts before the ending does.
        self.commit_due |= m.content;
        if m.error || (m.finish > Finish::Good) {
            self.failed_event(m, found.kind, scanner.name(), data, end);
        }
        self.commit_due |= match self.commit_on {
            CommitOn::FirstEvent => !m.aside,
            _ => self.facts.terminal_seen && self.reader.has_finished(),
        };
    }

    #[inline]
    fn note(&mut self, m: Meaning, now: Instant) {
        let facts = &mut self.facts;
        if facts.terminal_seen && (m.terminal || !m.aside) {
            facts.events_after_end = facts.events_after_end.saturating_add(1);
        }
        facts.terminal_seen |= m.terminal && !m.error;
        facts.events = facts.events.saturating_add(u64::from(!m.aside));
        facts.malformed_events = facts.malformed_events.saturating_add(u64::from(m.malformed));
        facts.content_events = facts.content_events.saturating_add(u64::from(m.content));
        if m.content || m.progress {
            self.last_token_at = now;
            facts.first_token_at = facts.first_token_at.or(Some(now));
        }
    }

    #[cold]
    fn failed_event(&mut self, m: Meaning, kind: Kind, name: &[u8], data: &[u8], end: usize) {
        let shown = self.committed || (self.commit_due && self.commit_on != CommitOn::End);
        let kind_of_failure = match (m.error, m.finish) {
            (true, _) if kind == Kind::Invalid => FailureKind::InvalidFrame,
            (true, _) => FailureKind::ErrorEvent,
            (_, Finish::Broken) => FailureKind::FinishReason,
            // What was shown ends as the provider ended it: its readers know these reasons.
            _ if shown || self.deliver_anyway => return,
            (_, Finish::Filtered) => FailureKind::ContentFiltered,
            _ => FailureKind::FinishReason,
        };
        if self.failure.is_some() {
            return;
        }
        let in_band = m.error && !m.overlooked && kind != Kind::Invalid;
        let mut event = Vec::new();
        match kind {
            Kind::Exception | Kind::FrameError => frame_as_json(kind, name, data, &mut event),
            Kind::ErrorField => {
                let value = data.strip_prefix(b"error:").unwrap_or(data);
                event.extend_from_slice(value.trim_ascii());
            }
            Kind::Invalid => {}
            Kind::Event | Kind::Bare => event.extend_from_slice(data.trim_ascii()),
        }
        event.truncate(MAX_ERROR_BYTES);
        self.failure = Some(Box::new(Failure {
            kind: kind_of_failure,
            before_commit: !self.committed,
            event,
            pass_bytes: if kind == Kind::Invalid { 0 } else { end },
            in_band,
        }));
    }

    /// Whether nothing more is needed: the stream may stop here without harm.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.reader.has_finished() || (self.facts.terminal_seen && self.facts.content_events > 0)
    }

    fn broken(&mut self, kind: FailureKind) -> Verdict {
        if let Some(failed) = self.failed() {
            return failed;
        }
        // A JSON array that is not closed can't be parsed, whatever it said.
        if self.is_whole() && (self.framing != Framing::Json || self.cut() == Cut::Between) {
            return Verdict::Ended;
        }
        self.fail(kind)
    }

    #[inline(never)]
    fn fail(&mut self, kind: FailureKind) -> Verdict {
        let failure =
            Failure { kind, before_commit: !self.committed, event: Vec::new(), pass_bytes: 0, in_band: false };
        self.failure = Some(Box::new(failure));
        self.failed().unwrap_or(Verdict::Ended)
    }

    /// The verdict on a stream that has failed.
    #[inline(never)]
    fn failed(&self) -> Option<Verdict> {
        self.failure.clone().map(Verdict::Failed)
    }
}

/// A frame in the form that error bodies of Bedrock streams are classified in.
fn frame_as_json(kind: Kind, name: &[u8], data: &[u8], out: &mut Vec<u8>) {
    // Room for the escapes: every byte may take six.
    let body = data.get(..MAX_ERROR_BYTES.saturating_div(8)).unwrap_or(data);
    let (kind, key) = match kind {
        Kind::FrameError => ("error", ":error-code"),
        _ => ("exception", ":exception-type"),
    };
    for part in ["{\"headers\":{\":message-type\":\"", kind, "\",\"", key, "\":\""] {
        out.extend_from_slice(part.as_bytes());
    }
    quote_inside(name, out);
    if kind == "error" {
        out.extend_from_slice(b"\",\":error-message\":\"");
        quote_inside(body, out);
        out.extend_from_slice(b"\"},\"body\":\"\"}");
    } else {
        out.extend_from_slice(b"\"},\"body\":\"");
        quote_inside(body, out);
        out.extend_from_slice(b"\"}");
    }
}
