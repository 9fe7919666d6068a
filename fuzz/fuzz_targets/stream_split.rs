// Shared by the stream targets: the same bytes, whole and split, have to mean the same and stay bounded.

use evenkeel::protocol::Protocol;
use evenkeel::stream::{CommitOn, FailureKind, StreamFacts, StreamGuard, StreamTimes, Verdict};
use evenkeel::time::Instant;

fn watch<'a>(
    protocol: Protocol,
    content_type: &str,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (StreamFacts, Option<FailureKind>) {
    let mut guard = StreamGuard::new(
        protocol,
        content_type,
        CommitOn::FirstContent,
        usize::MAX,
        StreamTimes::default(),
        Instant(0),
    );
    let mut failure = None;
    for chunk in chunks {
        if let Verdict::Failed(f) = guard.on_chunk(chunk, Instant(1)) {
            failure = Some(f.kind);
        }
        assert!(guard.held_bytes() <= 128 * 1024);
    }
    if failure.is_none() {
        if let Verdict::Failed(f) = guard.on_end(Instant(1)) {
            failure = Some(f.kind);
        }
    }
    (guard.facts().clone(), failure)
}

/// The first byte chooses the protocol, the second the size of the chunks.
pub fn check(data: &[u8], protocols: &[Protocol], content_type: &str) {
    let [which, size, body @ ..] = data else { return };
    let protocol = protocols[usize::from(*which) % protocols.len()];
    let whole = watch(protocol, content_type, std::iter::once(body));
    let split = watch(protocol, content_type, body.chunks(usize::from(*size).max(1)));
    assert_eq!(whole, split);
}
