//! The same bytes mean the same, however they are cut into chunks; and whatever comes, nothing breaks or grows.
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use evenkeel::class::ErrorClass;
use evenkeel::protocol::Protocol::{self, *};
use evenkeel::stream::{CommitOn, Failure, FailureKind, GapKind, StreamFacts, StreamGuard, StreamTimes, Verdict};
use evenkeel::time::{Instant, Millis};
use proptest::prelude::*;

const SSE: &str = "text/event-stream";
const AWS: &str = "application/vnd.amazon.eventstream";

macro_rules! recorded {
    ($($protocol:ident, $type:expr, $file:literal, $ending:expr;)*) => {
        &[$(($protocol, $type, include_bytes!(concat!("data/streams/", $file)), $file, $ending)),*]
    };
}

type Recorded = (Protocol, &'static str, &'static [u8], &'static str, Option<FailureKind>);

/// Every stream of the collection with how it ends.
const RECORDED: &[Recorded] = recorded![
    OpenAiChat, SSE, "openai-chat.sse", None;
    OpenAiChat, SSE, "openai-tools.sse", None;
    OpenAiChat, SSE, "azure-filter.sse", Some(FailureKind::ContentFiltered);
    OpenAiChat, SSE, "openrouter.sse", Some(FailureKind::ErrorEvent);
    OpenAiChat, SSE, "groq.sse", None;
    OpenAiChat, SSE, "deepseek.sse", Some(FailureKind::FinishReason);
    OpenAiChat, SSE, "vllm-error.sse", Some(FailureKind::ErrorEvent);
    OpenAiChat, SSE, "llamacpp-error.sse", Some(FailureKind::ErrorEvent);
    MistralChat, SSE, "mistral.sse", None;
    AnthropicMessages, SSE, "anthropic.sse", None;
    AnthropicMessages, SSE, "anthropic-error.sse", Some(FailureKind::ErrorEvent);
    OpenAiResponses, SSE, "responses.sse", None;
    OpenAiResponses, SSE, "responses-failed.sse", Some(FailureKind::ErrorEvent);
    GeminiGenerate, SSE, "gemini.sse", None;
    GeminiGenerate, "application/json", "gemini-array.json", None;
    GeminiGenerate, SSE, "gemini-bare-error.sse", Some(FailureKind::ErrorEvent);
    GeminiInteractions, SSE, "interactions.sse", None;
    CohereChat, SSE, "cohere.sse", None;
    OllamaChat, "application/x-ndjson", "ollama.ndjson", None;
    OllamaChat, "application/x-ndjson", "ollama-error.ndjson", Some(FailureKind::ErrorEvent);
    BedrockConverseStream, AWS, "bedrock-converse.bin", None;
    BedrockConverseStream, AWS, "bedrock-throttled.bin", Some(FailureKind::ErrorEvent);
    BedrockInvokeStream, AWS, "bedrock-invoke.bin", None;
];

/// What must not depend on the chunking.
#[derive(Debug, PartialEq)]
struct Summary {
    facts: StreamFacts,
    failure: Option<(FailureKind, Vec<u8>, bool)>,
    /// Bytes of the stream up to which a failed, committed stream is delivered, an LF that belongs to a CR counted in. What
    /// there was of an invalid frame before its last chunk has been passed on, so that this one depends on chunks.
    delivered: Option<usize>,
}

fn guard(protocol: Protocol, content_type: &str, commit_on: CommitOn) -> StreamGuard {
    StreamGuard::new(protocol, content_type, commit_on, usize::MAX, StreamTimes::default(), Instant(0))
}

fn watch<'a>(mut guard: StreamGuard, chunks: impl Iterator<Item = &'a [u8]>) -> Summary {
    let (mut failure, mut read, mut delivered): (Option<Failure>, usize, _) = (None, 0, None);
    let mut bound = 0;
    for chunk in chunks {
        let verdict = guard.on_chunk(chunk, Instant(7));
        bound = bound.max(guard.held_bytes());
        if let Verdict::Failed(f) = verdict {
            let after_cr = f.pass_bytes > 0 && chunk[f.pass_bytes - 1] == b'\r';
            delivered = (f.kind != FailureKind::InvalidFrame).then_some((read + f.pass_bytes, after_cr));
            failure = Some(*f);
        }
        if let Some((end, true)) = delivered
            && read <= end
            && chunk.get(end - read) == Some(&b'\n')
        {
            delivered = Some((end + 1, false));
        }
        read += chunk.len();
    }
    if failure.is_none() {
        match guard.on_end(Instant(7)) {
            Verdict::Failed(f) => failure = Some(*f),
            verdict => assert_eq!(verdict, Verdict::Ended),
        }
    }
    assert!(bound <= 128 * 1024, "{bound} bytes held");
    Summary {
        facts: guard.facts().clone(),
        failure: failure.map(|f| (f.kind, f.event, f.in_band)),
        delivered: delivered.map(|d| d.0),
    }
}

/// Cuts `bytes` at the given places.
fn cut_at<'a>(bytes: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|p| p % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut chunks = Vec::new();
    let mut from = 0;
    for to in places {
        chunks.push(&bytes[from..to]);
        from = to;
    }
    chunks.push(&bytes[from..]);
    chunks
}

#[test]
fn recorded_streams_end_as_they_should_with_every_chunk_size() {
    for (protocol, content_type, bytes, file, ending) in RECORDED {
        for commit_on in [CommitOn::Head, CommitOn::FirstEvent, CommitOn::FirstContent, CommitOn::End] {
            let whole = watch(guard(*protocol, content_type, commit_on), std::iter::once(*bytes));
            if commit_on == CommitOn::FirstContent {
                assert_eq!(whole.failure.as_ref().map(|f| f.0), *ending, "{file}");
                assert_eq!(whole.facts.malformed_events, 0, "{file}");
            }
            for size in 1..bytes.len().min(400) {
                let split = watch(guard(*protocol, content_type, commit_on), bytes.chunks(size));
                assert_eq!(split, whole, "{file} in chunks of {size}");
            }
        }
    }
}

#[test]
fn recorded_streams_cut_at_every_byte_are_never_a_good_end_before_the_finish_reason() {
    for (protocol, content_type, bytes, file, ending) in RECORDED {
        if ending.is_some() {
            continue;
        }
        for length in 0..bytes.len() {
            let cut = watch(guard(*protocol, content_type, CommitOn::FirstContent), std::iter::once(&bytes[..length]));
            let finished = cut.facts.finish_reason.is_some();
            assert!(cut.failure.is_some() || finished, "{file} cut at {length}");
        }
    }
}

#[test]
fn every_recorded_success_has_its_facts() {
    for (protocol, content_type, bytes, file, ending) in RECORDED {
        if ending.is_none() {
            let facts = watch(guard(*protocol, content_type, CommitOn::FirstContent), std::iter::once(*bytes)).facts;
            assert!(facts.finish_reason.is_some() && facts.content_events > 0, "{file}");
            if !file.contains("tools") {
                assert!(facts.usage.input.is_some() && facts.usage.output.is_some(), "{file}");
            }
            assert_eq!(facts.bytes, bytes.len() as u64);
        }
    }
}

#[test]
fn a_line_without_an_end_and_ten_thousand_tiny_chunks_take_no_memory() {
    let chunk = vec![b'x'; 64 * 1024];
    for (protocol, content_type) in
        [(OpenAiChat, SSE), (OllamaChat, "application/x-ndjson"), (GeminiGenerate, "application/json")]
    {
        for start in [&b"data: {\"a\":\""[..], b"data: ", b"{\"a\":\"", b"[[[[", b": "] {
            let chunks = std::iter::once(start).chain(std::iter::repeat_n(chunk.as_slice(), 512));
            watch(guard(protocol, content_type, CommitOn::FirstContent), chunks);
        }
        let text = "data: {\"choices\":[{\"delta\":{\"content\":\"é\"}}]}\n\n".repeat(300);
        watch(guard(protocol, content_type, CommitOn::FirstContent), text.as_bytes().chunks(1));
    }
}

#[test]
fn an_ordinary_stream_takes_less_than_eight_kilobytes() {
    for (protocol, content_type, bytes, file, _) in RECORDED {
        for size in [1, 7, 200, 1024] {
            let mut g = guard(*protocol, content_type, CommitOn::FirstContent);
            for chunk in bytes.chunks(size) {
                g.on_chunk(chunk, Instant(1));
                // The closing event of `responses.sse` repeats the whole answer, 15 KB of it.
                assert!(g.held_bytes() <= if *file == "responses.sse" { 24 * 1024 } else { 8 * 1024 }, "{file}");
            }
            assert!(g.held_bytes() <= 16 * 1024 + 1024, "{file} keeps {} bytes", g.held_bytes());
        }
    }
}

#[test]
fn a_frame_that_claims_four_gigabytes_is_invalid_at_once() {
    let mut g = guard(BedrockConverseStream, AWS, CommitOn::Head);
    let verdict = g.on_chunk(&[0xff; 12], Instant(1));
    assert!(matches!(verdict, Verdict::Failed(f) if f.kind == FailureKind::InvalidFrame && f.pass_bytes == 0));
    assert!(g.held_bytes() < 1024);
}

#[test]
fn a_frame_with_a_wrong_checksum_is_invalid_at_any_split() {
    let converse = include_bytes!("data/streams/bedrock-converse.bin");
    let mut broken = converse.to_vec();
    let last = broken.len() - 1;
    broken[last] ^= 1;
    for size in 1..200 {
        let summary = watch(guard(BedrockConverseStream, AWS, CommitOn::Head), broken.chunks(size));
        assert_eq!(summary.failure.map(|f| f.0), Some(FailureKind::InvalidFrame), "chunks of {size}");
    }
}

#[test]
fn an_exception_frame_is_handed_over_as_headers_and_body() {
    let bytes = include_bytes!("data/streams/bedrock-throttled.bin");
    let summary = watch(guard(BedrockConverseStream, AWS, CommitOn::FirstContent), std::iter::once(&bytes[..]));
    let event: serde_json::Value = serde_json::from_slice(&summary.failure.unwrap().1).unwrap();
    assert_eq!(event["headers"][":exception-type"], "throttlingException");
    let body: serde_json::Value = serde_json::from_str(event["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["message"], "Too many requests, please wait before trying again.");
}

const LIMITS: StreamTimes =
    StreamTimes { first_token: Some(Millis(1000)), chunk_gap: Some(Millis(400)), content_gap: Some(Millis(700)) };
const TOKEN: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";

fn timed() -> StreamGuard {
    StreamGuard::new(OpenAiChat, SSE, CommitOn::FirstContent, usize::MAX, LIMITS, Instant(0))
}

#[test]
fn comments_keep_the_connection_alive_but_are_no_first_token() {
    let mut g = timed();
    assert_eq!(g.next_deadline(), Some((Instant(400), GapKind::ChunkGap)));
    for at in [300, 600, 900] {
        g.on_chunk(b": keep-alive\n\n", Instant(at));
        assert_eq!(g.on_timeout(Instant(at)), None);
    }
    assert_eq!(g.next_deadline(), Some((Instant(1000), GapKind::FirstToken)));
    let verdict = g.on_timeout(Instant(1000));
    assert!(
        matches!(verdict, Some(Verdict::Failed(f)) if f.kind == FailureKind::Gap(GapKind::FirstToken) && f.before_commit)
    );
    assert_eq!(g.next_deadline(), None);
}

#[test]
fn d4_a_stream_that_only_pings_after_content_is_stuck() {
    let mut g = timed();
    g.on_chunk(TOKEN, Instant(100));
    for at in [300, 600] {
        g.on_chunk(b"\n", Instant(at));
    }
    assert_eq!(g.next_deadline(), Some((Instant(800), GapKind::ContentGap)));
    let verdict = g.on_timeout(Instant(801));
    assert!(
        matches!(verdict, Some(Verdict::Failed(f)) if f.kind == FailureKind::Gap(GapKind::ContentGap) && !f.before_commit)
    );
    assert_eq!(g.facts().longest_gap, Millis(300));
}

#[test]
fn silence_ends_in_the_chunk_gap() {
    let mut g = timed();
    g.on_chunk(TOKEN, Instant(100));
    assert_eq!(g.on_timeout(Instant(499)), None);
    assert!(
        matches!(g.on_timeout(Instant(500)), Some(Verdict::Failed(f)) if f.kind == FailureKind::Gap(GapKind::ChunkGap))
    );
}

#[test]
fn a_whole_answer_on_a_connection_that_stays_open_or_breaks_has_ended() {
    for ending in
        [&b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"[..], b"data: [DONE]\n\n"]
    {
        let mut g = timed();
        g.on_chunk(TOKEN, Instant(100));
        g.on_chunk(ending, Instant(200));
        assert_eq!(g.clone().on_reset(Instant(300)), Verdict::Ended);
        assert_eq!(g.next_deadline(), Some((Instant(600), GapKind::ChunkGap)));
        assert_eq!(g.on_timeout(Instant(600)), Some(Verdict::Ended));
    }
}

#[test]
fn a_reset_in_the_middle_is_a_failure() {
    let mut g = timed();
    assert!(
        matches!(g.clone().on_reset(Instant(1)), Verdict::Failed(f) if f.kind == FailureKind::Reset && f.before_commit)
    );
    g.on_chunk(TOKEN, Instant(100));
    assert!(matches!(g.on_reset(Instant(200)), Verdict::Failed(f) if f.kind == FailureKind::Reset && !f.before_commit));
}

#[test]
fn a_synthesised_error_event_fails_the_stream_that_it_ends() {
    for (protocol, content_type, bytes, file, _) in RECORDED {
        if content_type == &"application/json" {
            continue; // closes only an array that is open, which the next test does
        }
        for length in [0, bytes.len()] {
            let mut g = guard(*protocol, content_type, CommitOn::Head);
            let start = &bytes[..length];
            if start.is_empty() {
                g.on_chunk(if *content_type == AWS { b"" } else { b"\n" }, Instant(1));
            } else if matches!(g.on_chunk(start, Instant(1)), Verdict::Failed(_)) {
                continue;
            }
            let mut event = Vec::new();
            g.error_event(ErrorClass::StreamInterrupted, "cut \"here\"\n", &mut event);
            let verdict = g.on_chunk(&event, Instant(2));
            assert!(
                matches!(verdict, Verdict::Failed(f) if f.kind == FailureKind::ErrorEvent && f.in_band),
                "{file}: {}",
                String::from_utf8_lossy(&event)
            );
        }
    }
}

#[test]
fn half_an_event_is_closed_before_the_error_event() {
    let whole = include_bytes!("data/streams/anthropic.sse");
    for length in 1..whole.len() {
        let mut g = guard(AnthropicMessages, SSE, CommitOn::Head);
        g.on_chunk(&whole[..length], Instant(1));
        let Verdict::Failed(_) = g.on_end(Instant(2)) else { continue };
        let mut text = whole[..length].to_vec();
        g.error_event(ErrorClass::StreamInterrupted, "cut", &mut text);
        let summary = watch(guard(AnthropicMessages, SSE, CommitOn::Head), std::iter::once(text.as_slice()));
        let (kind, event, _) = summary.failure.expect("it has failed");
        assert_eq!(kind, FailureKind::ErrorEvent, "cut at {length}");
        let event: serde_json::Value = serde_json::from_slice(&event).expect("an event of its own");
        assert_eq!(event["error"]["message"], "cut");
    }
}

#[test]
fn an_open_array_is_closed_around_the_error() {
    let mut g = guard(GeminiGenerate, "application/json", CommitOn::Head);
    let mut text = b"[{\"candidates\":[]}\n".to_vec();
    g.on_chunk(&text, Instant(1));
    g.error_event(ErrorClass::Overloaded, "m", &mut text);
    let array: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(array[1]["error"]["code"], 503);
}

#[test]
fn every_error_event_is_json_with_class_or_message() {
    for name in Protocol::names() {
        let protocol = Protocol::from_name(name).unwrap();
        let mut out = Vec::new();
        let framing = evenkeel::stream::Framing::Ndjson;
        for class in ErrorClass::all() {
            out.clear();
            let between = evenkeel::stream::Cut::Between;
            evenkeel::stream::error_event(protocol, framing, between, class, "a \"b\" \\ \u{1}\n ü", &mut out);
            let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert!(json.to_string().contains("ü"), "{name}");
        }
    }
}

fn any_protocol() -> impl Strategy<Value = (Protocol, &'static str)> {
    prop::sample::select(RECORDED.iter().map(|r| (r.0, r.1)).collect::<Vec<_>>())
}

/// Pieces that streams are made of, in any order: more trouble than random bytes are.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "data: ",
        "data:",
        "event: error",
        "event: ping",
        "error: {\"a\":1}",
        ": c",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\\\"",
        ",",
        ":",
        "{\"error\":{\"message\":\"m\"}}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}",
        "{\"choices\":[{\"index\":1,\"finish_reason\":\"stop\"}]}",
        "[DONE]",
        "\u{feff}",
        "é",
        "{\"done\":true}",
        "\"type\":\"error\"",
        "null",
        "0",
        "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]}",
        "{\"type\":\"message_stop\"}",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_split_of_a_recorded_stream_means_the_same(
        which in 0..RECORDED.len(), places in prop::collection::vec(any::<usize>(), 0..40)
    ) {
        let (protocol, content_type, bytes, ..) = RECORDED[which];
        let whole = watch(guard(protocol, content_type, CommitOn::FirstContent), std::iter::once(bytes));
        let split = watch(guard(protocol, content_type, CommitOn::FirstContent), cut_at(bytes, &places).into_iter());
        prop_assert_eq!(split, whole);
    }

    #[test]
    fn any_split_of_any_pieces_means_the_same(
        (protocol, content_type) in any_protocol(), bytes in pieces(), places in prop::collection::vec(any::<usize>(), 0..30)
    ) {
        let whole = watch(guard(protocol, content_type, CommitOn::FirstContent), std::iter::once(bytes.as_slice()));
        let split = watch(guard(protocol, content_type, CommitOn::FirstContent), cut_at(&bytes, &places).into_iter());
        prop_assert_eq!(split, whole);
    }

    #[test]
    fn any_bytes_do_no_harm(
        (protocol, content_type) in any_protocol(), bytes in prop::collection::vec(any::<u8>(), 0..600),
        places in prop::collection::vec(any::<usize>(), 0..10)
    ) {
        let whole = watch(guard(protocol, content_type, CommitOn::FirstContent), std::iter::once(bytes.as_slice()));
        let split = watch(guard(protocol, content_type, CommitOn::FirstContent), cut_at(&bytes, &places).into_iter());
        prop_assert_eq!(split, whole);
    }

    #[test]
    fn large_events_mean_the_same_at_any_split(
        fill in 7_000usize..12_000, escape in any::<bool>(), places in prop::collection::vec(any::<usize>(), 0..20)
    ) {
        let unit = if escape { "a\\\"b" } else { "abcd" };
        let text = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n",
            unit.repeat(fill / 4)
        );
        let whole = watch(guard(OpenAiChat, SSE, CommitOn::FirstContent), std::iter::once(text.as_bytes()));
        prop_assert_eq!(whole.facts.finish_reason.as_deref(), Some("stop"));
        prop_assert_eq!((whole.facts.content_events, whole.facts.malformed_events), (1, 0));
        let split = watch(guard(OpenAiChat, SSE, CommitOn::FirstContent), cut_at(text.as_bytes(), &places).into_iter());
        prop_assert_eq!(split, whole);
    }
}
