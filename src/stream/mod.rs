//! Streams that never lie: where a streamed answer stands, whether it may be delivered, and whether it ended well.
//!
//! - scanners find events in chunks, whatever the chunking: SSE, NDJSON, a JSON array, AWS frames;
//! - readers say what an event means, per protocol: content, ending, error, tokens;
//! - [`StreamGuard`] decides: hold, commit, pass, failed, ended; and keeps the clocks.
//!
//! Nothing here does I/O or changes a byte. Memory is bounded whatever is sent: see [`StreamGuard::held_bytes`].
//!
//! ```
//! use evenkeel::{protocol::Protocol, stream::{CommitOn, StreamGuard, StreamTimes, Verdict}, time::Instant};
//!
//! let mut guard = StreamGuard::new(
//!     Protocol::OpenAiChat, "text/event-stream", CommitOn::FirstContent, 65_536, StreamTimes::default(), Instant(0),
//! );
//! let role = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
//! assert_eq!(guard.on_chunk(role, Instant(1)), Verdict::Hold);
//! let token = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
//! assert_eq!(guard.on_chunk(token, Instant(2)), Verdict::Commit);
//! // The connection is closed here, cleanly, in the middle of the answer:
//! assert!(matches!(guard.on_end(Instant(3)), Verdict::Failed(failure) if !failure.before_commit));
//! ```

mod aws_frame;
mod error_event;
mod facts;
mod guard;
mod held;
mod json_array;
mod lines;
mod member;
mod ndjson;
mod protocol;
mod scan;
mod sse;
mod template;
mod word;

pub use error_event::error_event;
pub use facts::{StreamFacts, StreamUsage};
pub use guard::{CommitOn, Failure, FailureKind, GapKind, MAX_ERROR_BYTES, StreamGuard, StreamTimes, Verdict};
pub use scan::{Cut, Framing};
