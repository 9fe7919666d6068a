//! How fast a streamed answer is watched: bytes a second through [`StreamGuard`], natively, by size of chunk.
//!
//! `cargo bench --bench stream`; the best of several rounds is printed, since whatever else runs on the machine can only
//! take time away.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::cast_precision_loss,
    reason = "a benchmark needs a clock"
)]
#![allow(clippy::arithmetic_side_effects, reason = "a benchmark")]

use evenkeel::protocol::Protocol;
use evenkeel::stream::{CommitOn, StreamGuard, StreamTimes, Verdict};
use evenkeel::time::Instant;
use std::hint::black_box;
use std::time::Instant as Clock;

const ROUNDS: usize = 15;
const EVENTS: usize = 12_000;
const WORDS: &[&str] =
    &[" the", " stream", "Hello", ",", " \\\"quoted\\\"", " größer", "\\n\\n", " of", " answer", "ing", " 42", "."];

/// A name, its protocol and content type, and what writes its event of a number.
type Stream = (&'static str, Protocol, &'static str, fn(usize) -> String);

fn word(i: usize) -> &'static str {
    WORDS.get(i * 7 % WORDS.len()).copied().unwrap_or_default()
}

fn openai(i: usize) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-CQp3V6lZyH9uB2kZ1mXr8sT4wYfGd\",\"object\":\"chat.completion.chunk\",\"created\":1795996800,\
         \"model\":\"gpt-4o-2024-08-06\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_cbf1785567\",\"choices\":[{{\"index\":0,\
         \"delta\":{{\"content\":\"{}\"}},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null,\"obfuscation\":\"aB3x{}\"}}\n\n",
        word(i),
        i % 97
    )
}

fn responses(i: usize) -> String {
    format!(
        "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{i},\
         \"item_id\":\"msg_68c4e1f0a2b88193\",\"output_index\":0,\"content_index\":0,\"delta\":\"{}\",\"logprobs\":[],\
         \"obfuscation\":\"kQ2\"}}\n\n",
        word(i)
    )
}

fn anthropic(i: usize) -> String {
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\
         \"text\":\"{}\"}}}}\n\n",
        word(i)
    )
}

fn gemini(i: usize) -> String {
    format!(
        "data: {{\"candidates\": [{{\"content\": {{\"parts\": [{{\"text\": \"{}\"}}],\"role\": \"model\"}},\"index\": 0}}],\
         \"usageMetadata\": {{\"promptTokenCount\": 12,\"candidatesTokenCount\": {i},\"totalTokenCount\": 99}},\
         \"modelVersion\": \"gemini-2.5-flash\",\"responseId\": \"xyz\"}}\r\n\r\n",
        word(i)
    )
}

fn ollama(i: usize) -> String {
    format!(
        "{{\"model\":\"llama3.2\",\"created_at\":\"2026-11-30T00:00:00.000000Z\",\"message\":{{\"role\":\"assistant\",\
         \"content\":\"{}\"}},\"done\":false}}\n",
        word(i)
    )
}

/// Seconds that watching `body` takes in chunks of `size`.
fn round(protocol: Protocol, content_type: &str, body: &[u8], size: usize) -> f64 {
    let started = Clock::now();
    let mut guard =
        StreamGuard::new(protocol, content_type, CommitOn::FirstContent, 1 << 20, StreamTimes::default(), Instant(0));
    for (i, chunk) in body.chunks(size).enumerate() {
        let verdict = guard.on_chunk(black_box(chunk), Instant(i as u64));
        assert!(!matches!(verdict, Verdict::Failed(_)), "the benchmark's stream is a good one");
    }
    let events = black_box(guard.facts()).content_events;
    assert!(events + 1 >= EVENTS as u64, "every event is content, the one that the end cuts excepted");
    started.elapsed().as_secs_f64()
}

fn main() {
    let sse = "text/event-stream";
    let streams: [Stream; 5] = [
        ("openai.chat", Protocol::OpenAiChat, sse, openai),
        ("openai.responses", Protocol::OpenAiResponses, sse, responses),
        ("anthropic.messages", Protocol::AnthropicMessages, sse, anthropic),
        ("gemini.generate", Protocol::GeminiGenerate, sse, gemini),
        ("ollama.chat", Protocol::OllamaChat, "application/x-ndjson", ollama),
    ];
    println!("{:<20} {:>12} {:>12} {:>12} {:>14}", "GB/s", "16 KiB", "1 KiB", "200 B", "ns per event");
    for (name, protocol, content_type, event) in streams {
        let body: String = (0..EVENTS).map(event).collect();
        let best = |size| {
            (0..ROUNDS).map(|_| round(protocol, content_type, body.as_bytes(), size)).fold(f64::INFINITY, f64::min)
        };
        let [large, middle, small] = [16 * 1024, 1024, 200].map(best);
        let rate = |seconds: f64| body.len() as f64 / seconds / 1e9;
        let ns = large * 1e9 / EVENTS as f64;
        println!("{name:<20} {:>12.2} {:>12.2} {:>12.2} {ns:>14.0}", rate(large), rate(middle), rate(small));
    }
}
