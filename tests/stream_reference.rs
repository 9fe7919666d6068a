//! The scanner against a slow reader that does everything by the book: whole body, whole lines, `serde_json`.
#![allow(missing_docs, clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "tests")]

use evenkeel::protocol::Protocol;
use evenkeel::stream::{CommitOn, StreamGuard, StreamTimes, Verdict};
use evenkeel::time::Instant;
use proptest::prelude::*;
use serde_json::{Value, json};

/// What both have to agree on.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: u64,
    content: u64,
    finish: Option<String>,
    output: Option<u64>,
    input: Option<u64>,
    model: Option<String>,
    done: bool,
    failed: bool,
}

fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value != "" && value.as_f64() != Some(0.0)
}

fn shows(value: &Value) -> bool {
    truthy(value) && value.as_array().is_none_or(|a| !a.is_empty()) && value.as_object().is_none_or(|o| !o.is_empty())
}

/// The data of every event, as the WHATWG standard has it.
fn events(body: &str) -> Vec<String> {
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let (mut found, mut data): (Vec<String>, Option<String>) = (Vec::new(), None);
    for line in body.split('\n') {
        if line.is_empty() {
            found.extend(data.take());
        } else if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            data = Some(data.map_or_else(|| value.to_owned(), |d| d + "\n" + value));
        }
    }
    found.extend(data);
    found
}

fn slow_openai(body: &str) -> Seen {
    let mut seen = Seen::default();
    for data in events(body) {
        if data == "[DONE]" {
            seen.done = true;
            continue;
        }
        let Ok(event) = serde_json::from_str::<Value>(&data) else { continue };
        seen.events += 1;
        let choices = event["choices"].as_array().cloned().unwrap_or_default();
        let shown = ["content", "reasoning_content", "tool_calls", "refusal"];
        let content = choices.iter().any(|c| shown.iter().any(|k| shows(&c["delta"][k])));
        seen.content += u64::from(content);
        if let Some(model) = event["model"].as_str().filter(|m| !m.is_empty()) {
            seen.model.get_or_insert_with(|| model.to_owned());
        }
        if let Some(n) = event["usage"]["completion_tokens"].as_u64() {
            seen.output = Some(n);
        }
        if let Some(n) = event["usage"]["prompt_tokens"].as_u64() {
            seen.input = Some(n);
        }
        for choice in &choices {
            if let Some(reason) = choice["finish_reason"].as_str().filter(|r| !r.is_empty()) {
                seen.finish = Some(reason.to_owned());
            }
        }
        if truthy(&event["error"]) || choices.iter().any(|c| truthy(&c["error"])) || event["object"] == "error" {
            seen.failed = true;
            break;
        }
    }
    seen
}

fn fast(protocol: Protocol, body: &str, size: usize) -> Seen {
    let mut guard =
        StreamGuard::new(protocol, "text/event-stream", CommitOn::Head, 0, StreamTimes::default(), Instant(0));
    let mut failed = false;
    for chunk in body.as_bytes().chunks(size) {
        if matches!(guard.on_chunk(chunk, Instant(1)), Verdict::Failed(_)) {
            failed = true;
            break;
        }
    }
    if !failed {
        guard.on_end(Instant(1));
    }
    let facts = guard.facts();
    assert_eq!(facts.malformed_events, 0, "{body}");
    Seen {
        events: facts.events,
        content: facts.content_events,
        finish: facts.finish_reason.as_deref().map(str::to_owned),
        output: facts.usage.output,
        input: facts.usage.input,
        model: facts.model.as_deref().map(str::to_owned),
        done: facts.terminal_seen,
        failed,
    }
}

/// Text with everything in it that could fool a reader which only searches.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z ]{1,12}",
        Just("\"error\":{\"x\":1}".to_owned()),
        Just("\\\",\"finish_reason\":\"stop\"".to_owned()),
        Just("data: [DONE]\n\ndata: {\"error\":1}\r\n\r\n".to_owned()),
        Just("}]}{[\\".to_owned()),
        any::<String>(),
    ]
}

fn maybe_text() -> impl Strategy<Value = Value> {
    prop_oneof![text().prop_map(Value::from), Just(Value::Null)]
}

fn event() -> impl Strategy<Value = Value> {
    let delta = (prop::option::of(maybe_text()), prop::option::of(maybe_text()), 0..3usize, any::<bool>()).prop_map(
        |(content, reasoning, tools, role)| {
            let mut delta = json!({});
            if let Some(content) = content {
                delta["content"] = content;
            }
            if let Some(reasoning) = reasoning {
                delta["reasoning_content"] = reasoning;
            }
            if tools > 0 {
                delta["tool_calls"] =
                    json!(vec![json!({ "index": 0, "function": { "arguments": "{\"a\"" } }); tools - 1]);
            }
            if role {
                delta["role"] = json!("assistant");
            }
            delta
        },
    );
    let reason = prop::sample::select(vec![Value::Null, json!(""), json!("stop"), json!("length"), json!("new_one")]);
    let choice = (delta, reason, maybe_text(), 0..2).prop_map(|(delta, reason, junk, index)| {
        json!({ "index": index, "delta": delta, "finish_reason": reason, "logprobs": { "content": [junk] } })
    });
    let error = prop_oneof![
        20 => Just(Value::Null), 1 => Just(json!({ "message": "m" })), 1 => Just(json!("text")), 1 => Just(json!(false)),
        1 => Just(json!({})), 1 => Just(json!(0)),
    ];
    let usage = prop_oneof![
        4 => Just(Value::Null), 1 => (1..1000u64, 1..1000u64).prop_map(|(a, b)| json!({ "prompt_tokens": a, "completion_tokens": b })),
    ];
    let known = prop::sample::select(vec!["gpt-5", "gpt-5-mini", ""]);
    (prop::collection::vec(choice, 0..3), error, usage, known, prop::option::of(text()), any::<bool>()).prop_map(
        |(choices, error, usage, model, junk, with_error)| {
            let mut event = json!({ "a_id": "chatcmpl-1", "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": choices, "usage": usage, "model": model });
            if with_error {
                event["error"] = error;
            }
            if let Some(junk) = junk {
                event["aaa"] = json!({ "choices": [{ "delta": { "content": junk } }], "error": { "n": [junk] } });
            }
            event
        },
    )
}

/// A stream: its events written compactly or with white space, over one data line or several, with any line ends.
fn body() -> impl Strategy<Value = String> {
    let written = (event(), 0..3, any::<bool>()).prop_map(|(event, style, comment)| {
        let json = if style == 0 { serde_json::to_string(&event) } else { serde_json::to_string_pretty(&event) };
        let lines: Vec<String> = json.unwrap_or_default().lines().map(|line| format!("data: {line}\n")).collect();
        format!("{}{}\n", if comment { ": keep-alive\n\n" } else { "" }, lines.concat())
    });
    (prop::collection::vec(written, 0..12), any::<bool>(), prop::sample::select(vec!["\n", "\r\n", "\r"])).prop_map(
        |(events, done, eol)| {
            let tail = if done { "data: [DONE]\n\n" } else { "" };
            // A lone CR inside of JSON text is always escaped, so that line ends can be changed in the text as a whole.
            (events.concat() + tail).replace('\n', eol)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_scanner_sees_what_a_slow_reader_sees(body in body(), size in 1usize..400) {
        let slow = slow_openai(&body);
        prop_assert_eq!(fast(Protocol::OpenAiChat, &body, size), slow);
    }
}
