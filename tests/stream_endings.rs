//! What becomes of a stream: one line a behaviour, from what upstreams really send.
#![allow(missing_docs, clippy::arithmetic_side_effects, clippy::panic, reason = "tests")]

use evenkeel::protocol::Protocol::{self, *};
use evenkeel::stream::{CommitOn, Failure, FailureKind, StreamFacts, StreamGuard, StreamTimes, Verdict};
use evenkeel::time::Instant;

fn content_type(protocol: Protocol) -> &'static str {
    match protocol {
        OllamaChat => "application/x-ndjson",
        BedrockConverseStream | BedrockInvokeStream => "application/vnd.amazon.eventstream",
        _ => "text/event-stream; charset=utf-8",
    }
}

use Verdict::{Commit, Ended, Hold, Pass};

struct Outcome {
    committed: bool,
    failure: Option<Failure>,
    facts: StreamFacts,
}

fn run_with(protocol: Protocol, content_type: &str, commit_on: CommitOn, chunks: &[&[u8]]) -> Outcome {
    let mut guard = StreamGuard::new(protocol, content_type, commit_on, 1 << 20, StreamTimes::default(), Instant(0));
    let mut failure = None;
    for chunk in chunks {
        if let Verdict::Failed(f) = guard.on_chunk(chunk, Instant(1)) {
            failure = Some(*f);
            break;
        }
    }
    if failure.is_none()
        && let Verdict::Failed(f) = guard.on_end(Instant(2))
    {
        failure = Some(*f);
    }
    Outcome { committed: guard.is_committed(), failure, facts: guard.facts().clone() }
}

fn run(protocol: Protocol, text: &str) -> Outcome {
    // One event a chunk, as a network under no load delivers them.
    let mut chunks: Vec<&[u8]> = Vec::new();
    let separator = if protocol == OllamaChat { "\n" } else { "\n\n" };
    let mut rest = text;
    while let Some(at) = rest.find(separator) {
        let (event, behind) = rest.split_at(at + separator.len());
        chunks.push(event.as_bytes());
        rest = behind;
    }
    if !rest.is_empty() {
        chunks.push(rest.as_bytes());
    }
    run_with(protocol, content_type(protocol), CommitOn::FirstContent, &chunks)
}

#[track_caller]
fn fails(protocol: Protocol, text: &str, kind: FailureKind, before_commit: bool) -> Failure {
    let outcome = run(protocol, text);
    let failure = outcome.failure.unwrap_or_else(|| panic!("ended well: {text}"));
    assert_eq!((failure.kind, failure.before_commit), (kind, before_commit), "{text}");
    failure
}

#[track_caller]
fn ends_well(protocol: Protocol, text: &str) -> StreamFacts {
    let outcome = run(protocol, text);
    assert_eq!(outcome.failure, None, "{text}");
    outcome.facts
}

const ROLE: &str = "data: {\"id\":\"c\",\"model\":\"gpt-5\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n";
const TOKEN: &str =
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"},\"finish_reason\":null}]}\n\n";
const STOP: &str = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":4},\"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn sse(parts: &[&str]) -> String {
    parts.concat()
}

#[test]
fn a_clean_openai_stream_ends_well_and_its_facts_are_read() {
    let facts = ends_well(OpenAiChat, &sse(&[ROLE, TOKEN, TOKEN, STOP, USAGE, DONE]));
    assert_eq!((facts.events, facts.content_events, facts.malformed_events), (5, 2, 0));
    assert!(facts.terminal_seen && facts.understood && !facts.commit_forced);
    assert_eq!(facts.finish_reason.as_deref(), Some("stop"));
    assert_eq!(facts.model.as_deref(), Some("gpt-5"));
    let usage = facts.usage;
    assert_eq!((usage.input, usage.output, usage.cached, usage.reasoning), (Some(12), Some(3), Some(4), Some(1)));
}

#[test]
fn d1_a_cut_before_the_terminal_marker_is_a_failure() {
    fails(OpenAiChat, &sse(&[ROLE, TOKEN]), FailureKind::EndWithoutTerminal, false);
    fails(OpenAiChat, &sse(&[ROLE]), FailureKind::EndWithoutTerminal, true);
    fails(
        AnthropicMessages,
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
        FailureKind::EndWithoutTerminal,
        false,
    );
    fails(
        GeminiGenerate,
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hello\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":3}}\r\n\r\n",
        FailureKind::EndWithoutTerminal,
        false,
    );
    fails(
        OllamaChat,
        "{\"model\":\"llama3\",\"message\":{\"role\":\"assistant\",\"content\":\"Hel\"},\"done\":false}\n",
        FailureKind::EndWithoutTerminal,
        false,
    );
    fails(
        OpenAiResponses,
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\",\"error\":null}}\n\n",
        FailureKind::EndWithoutTerminal,
        true,
    );
}

#[test]
fn a_finish_reason_without_a_terminal_marker_is_a_whole_answer() {
    for reason in ["stop", "length", "tool_calls", "some_new_reason"] {
        let stop = STOP.replace("\"stop\"", &format!("\"{reason}\""));
        let facts = ends_well(OpenAiChat, &sse(&[ROLE, TOKEN, &stop]));
        assert!(!facts.terminal_seen);
        assert_eq!(facts.finish_reason.as_deref(), Some(reason));
    }
}

#[test]
fn every_choice_has_to_finish() {
    let second = TOKEN.replace("\"index\":0", "\"index\":1");
    fails(OpenAiChat, &sse(&[TOKEN, &second, STOP]), FailureKind::EndWithoutTerminal, false);
    ends_well(OpenAiChat, &sse(&[TOKEN, &second, STOP, &STOP.replace("\"index\":0", "\"index\":1")]));
}

#[test]
fn an_error_event_before_content_can_be_retried_and_is_handed_over_whole() {
    let error = "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":\"server_is_overloaded\"}}\n\n";
    let failure = fails(OpenAiChat, &sse(&[ROLE, error]), FailureKind::ErrorEvent, true);
    assert_eq!(failure.event, error.trim().trim_start_matches("data: ").as_bytes());
    let failure = fails(OpenAiChat, &sse(&[ROLE, TOKEN, error, DONE]), FailureKind::ErrorEvent, false);
    assert!(failure.in_band);
    assert_eq!(failure.pass_bytes, error.len());
}

#[test]
fn every_shape_of_error_event_is_one() {
    for (protocol, event) in [
        (
            OpenAiChat,
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\",\"error\":{\"code\":502,\"message\":\"x\"}}]}\n\n",
        ),
        (
            OpenAiChat,
            "data: {\"id\":\"x\",\"error\":{\"code\":\"server_error\",\"message\":\"Provider disconnected\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
        ),
        (OpenAiChat, "data: {\"object\":\"error\",\"message\":\"m\",\"type\":\"BadRequestError\",\"code\":400}\n\n"),
        (OpenAiChat, "data: {\"id\":\"x\",\"choices\":[],\"x_groq\":{\"id\":\"r\",\"error\":\"over capacity\"}}\n\n"),
        (OpenAiChat, "data: {\"error\":\"text\"}\n\n"),
        (OpenAiChat, "event: error\ndata: {\"message\":\"no error member\"}\n\n"),
        (OpenAiChat, "event: error\ndata: {\"broken\": \n\n"),
        (OpenAiChat, "event: error\ndata: not json\n\n"),
        (MistralChat, "data: {\"object\":\"error\",\"message\":\"m\",\"type\":\"rate_limited\",\"code\":\"1300\"}\n\n"),
        (
            OpenAiResponses,
            "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"m\",\"param\":null,\"sequence_number\":1}\n\n",
        ),
        (
            OpenAiResponses,
            "data: {\"type\":\"error\",\"error\":{\"type\":\"t\",\"code\":\"insufficient_quota\",\"message\":\"m\"}}\n\n",
        ),
        (
            OpenAiResponses,
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}}}\n\n",
        ),
        (
            OpenAiResponses,
            "event: response.error\ndata: {\"type\":\"response.error\",\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n",
        ),
        (
            AnthropicMessages,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"details\":null,\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        ),
        (AnthropicMessages, "data: {\"type\":\"error\",\"error\":{\"type\":\"some_new_error\"}}\n\n"),
        (GeminiGenerate, "data: {\"error\":{\"code\":500,\"message\":\"m\",\"status\":\"INTERNAL\"}}\r\n\r\n"),
        (GeminiGenerate, "{\"error\":{\"code\":503,\"message\":\"m\",\"status\":\"UNAVAILABLE\"}}"),
        (GeminiGenerate, "[{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"m\"\n  }\n}\n]"),
        (
            GeminiInteractions,
            "event: error\ndata: {\"event_type\":\"error\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}}\n\n",
        ),
        (
            CohereChat,
            "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"ERROR\",\"error\":\"m\"}}\n\n",
        ),
        (
            CohereChat,
            "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"TIMEOUT\"}}\n\n",
        ),
        (OllamaChat, "{\"error\":\"an error was encountered while running the model: unexpected EOF\"}\n"),
        (OllamaChat, "{\n  \"error\": \"pretty\"\n}\n"),
        (TgiGenerate, "data: {\"error\":\"Request failed\",\"error_type\":\"generation\"}\n\n"),
    ] {
        let failure = fails(protocol, event, FailureKind::ErrorEvent, true);
        assert!(!failure.event.is_empty(), "{event}");
    }
}

#[test]
fn an_error_that_clients_overlook_is_not_counted_as_told() {
    let field = "error: {\"code\":400,\"message\":\"too long\",\"type\":\"exceed_context_size_error\"}\n\n";
    let failure = fails(OpenAiChat, &sse(&[TOKEN, field]), FailureKind::ErrorEvent, false);
    assert!(!failure.in_band);
    assert!(failure.event.starts_with(b"{\"code\":400"));
    let bare = "{\n \"error\": {\"message\": \"m\"}\n}\n\n";
    assert!(!fails(OpenAiChat, &sse(&[TOKEN, bare]), FailureKind::ErrorEvent, false).in_band);
    assert!(fails(GeminiGenerate, bare, FailureKind::ErrorEvent, true).in_band);
}

#[test]
fn null_errors_are_none() {
    ends_well(OpenAiChat, &sse(&[&TOKEN.replace("\"id\"", "\"error\":null,\"id\""), STOP, DONE]));
}

#[test]
fn done_after_an_error_has_not_ended_well_and_done_alone_is_empty() {
    let error =
        "data: {\"error\":{\"object\":\"error\",\"message\":\"EngineCore encountered an issue.\",\"code\":500}}\n\n";
    fails(OpenAiChat, &sse(&[TOKEN, error, DONE]), FailureKind::ErrorEvent, false);
    fails(OpenAiChat, DONE, FailureKind::Empty, true);
    fails(OpenAiChat, "", FailureKind::Empty, true);
    fails(OpenAiChat, ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n", FailureKind::Empty, true);
    fails(OpenAiChat, &sse(&[ROLE, DONE]), FailureKind::Empty, true);
    fails(AnthropicMessages, "event: ping\ndata: {\"type\":\"ping\"}\n\n", FailureKind::Empty, true);
}

#[test]
fn an_empty_answer_with_a_finish_reason_is_one_and_says_so() {
    let facts = ends_well(OpenAiChat, &sse(&[ROLE, STOP, DONE]));
    assert_eq!(facts.content_events, 0);
}

#[test]
fn a_refusal_before_content_fails_as_filtered_and_after_it_is_the_answers_own_end() {
    let filtered = STOP.replace("\"stop\"", "\"content_filter\"");
    let failure = fails(OpenAiChat, &sse(&[ROLE, &filtered, DONE]), FailureKind::ContentFiltered, true);
    assert!(!failure.in_band);
    assert_eq!(ends_well(OpenAiChat, &sse(&[TOKEN, &filtered, DONE])).finish_reason.as_deref(), Some("content_filter"));
    fails(
        AnthropicMessages,
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":5}}\n\n",
        FailureKind::ContentFiltered,
        true,
    );
    fails(
        OpenAiResponses,
        "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"},\"error\":null}}\n\n",
        FailureKind::ContentFiltered,
        true,
    );
    fails(
        GeminiGenerate,
        "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\r\n\r\n",
        FailureKind::ContentFiltered,
        true,
    );
    fails(
        GeminiGenerate,
        "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"index\":0}]}\r\n\r\n",
        FailureKind::FinishReason,
        true,
    );
}

#[test]
fn a_refused_answer_can_be_delivered_as_it_came() {
    let filtered = STOP.replace("\"stop\"", "\"content_filter\"");
    let mut guard = StreamGuard::new(
        OpenAiChat,
        "text/event-stream",
        CommitOn::FirstContent,
        1 << 20,
        StreamTimes::default(),
        Instant(0),
    );
    assert!(matches!(guard.on_chunk(filtered.as_bytes(), Instant(1)), Verdict::Failed(_)));
    guard.deliver_anyway();
    assert_eq!(guard.on_chunk(DONE.as_bytes(), Instant(2)), Pass);
    assert_eq!(guard.on_end(Instant(3)), Ended);
}

#[test]
fn a_length_stop_is_a_success() {
    let text = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\ndata: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"error\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":9}}}\n\n";
    let facts = ends_well(OpenAiResponses, text);
    assert_eq!(facts.finish_reason.as_deref(), Some("max_output_tokens"));
    assert_eq!(facts.usage.output, Some(9));
}

#[test]
fn a_provider_that_broke_off_has_failed_even_behind_content() {
    let broken = STOP.replace("\"stop\"", "\"insufficient_system_resource\"");
    let failure = fails(OpenAiChat, &sse(&[TOKEN, &broken, DONE]), FailureKind::FinishReason, false);
    assert!(!failure.in_band);
}

#[test]
fn what_follows_the_terminal_marker_is_passed_on_and_noted() {
    let facts = ends_well(OpenAiChat, &sse(&[TOKEN, STOP, DONE, DONE, TOKEN]));
    assert_eq!(facts.events_after_end, 2);
}

#[test]
fn a_malformed_event_in_the_middle_is_counted_and_ends_nothing() {
    for broken in ["data: {\"choices\":[{\"delta\":\n\n", "data: garbage\n\n", "data: {\"a\":1}}\n\n"] {
        let facts = ends_well(OpenAiChat, &sse(&[TOKEN, broken, TOKEN, STOP, DONE]));
        assert_eq!(facts.malformed_events, 1, "{broken}");
    }
    let facts = ends_well(
        OllamaChat,
        "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"message\":{\"con\n{\"message\":{\"content\":\"b\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":5,\"eval_count\":2}\n",
    );
    assert_eq!((facts.content_events, facts.usage.input, facts.usage.output), (2, Some(5), Some(2)));
}

#[test]
fn first_content_is_what_a_reader_sees() {
    let content = |protocol, text: &str| run(protocol, text).facts.content_events;
    for delta in [
        "\"content\":\"x\"",
        "\"content\":[{\"type\":\"text\",\"text\":\"x\"}]",
        "\"reasoning_content\":\"x\"",
        "\"reasoning\":\"x\"",
        "\"tool_calls\":[{\"index\":0}]",
        "\"refusal\":\"x\"",
        "\"audio\":{\"id\":\"a\"}",
        "\"function_call\":{\"name\":\"f\"}",
    ] {
        assert_eq!(
            content(OpenAiChat, &format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{{delta}}}}}]}}\n\n")),
            1,
            "{delta}"
        );
    }
    for event in [
        "{\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0}]}",
        "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}}]}",
        "{\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":[]}}]}",
        "{\"choices\":[],\"debug\":{\"a\":1}}",
    ] {
        assert_eq!(content(OpenAiChat, &format!("data: {event}\n\n")), 0, "{event}");
    }
    assert_eq!(content(OpenAiCompletions, "data: {\"choices\":[{\"text\":\"x\",\"index\":0}]}\n\n"), 1);
    for (event, seen) in [
        ("{\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":1}}}", 0),
        ("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}", 0),
        (
            "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}",
            0,
        ),
        (
            "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}",
            1,
        ),
        (
            "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"x\"}}",
            1,
        ),
        (
            "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}",
            0,
        ),
        (
            "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\"}}",
            1,
        ),
        (
            "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"x\"}}",
            0,
        ),
    ] {
        assert_eq!(content(AnthropicMessages, &format!("data: {event}\n\n")), seen, "{event}");
    }
    for (event, seen) in [
        ("{\"usageMetadata\":{\"promptTokenCount\":1}}", 0),
        ("{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true}]}}]}", 0),
        ("{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{}}}]}}]}", 1),
        ("{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}", 1),
    ] {
        let facts = run(GeminiGenerate, &format!("data: {event}\r\n\r\n")).facts;
        assert_eq!(facts.content_events, seen, "{event}");
    }
    let thought = run(
        GeminiGenerate,
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true}]}}]}\r\n\r\n",
    );
    assert!(thought.facts.first_token_at.is_some() && !thought.committed);
    for (event, seen) in [
        ("{\"type\":\"response.output_item.added\",\"item\":{}}", 0),
        ("{\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{\"}", 1),
        ("{\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"x\"}", 1),
        ("{\"type\":\"response.output_text.done\",\"text\":\"x\"}", 0),
    ] {
        assert_eq!(content(OpenAiResponses, &format!("data: {event}\n\n")), seen, "{event}");
    }
    for (event, seen) in [
        ("{\"type\":\"message-start\",\"delta\":{\"message\":{\"role\":\"assistant\",\"content\":[]}}}", 0),
        ("{\"type\":\"content-start\",\"delta\":{\"message\":{\"content\":{\"type\":\"text\",\"text\":\"\"}}}}", 0),
        ("{\"type\":\"content-delta\",\"delta\":{\"message\":{\"content\":{\"text\":\"x\"}}}}", 1),
        ("{\"type\":\"tool-plan-delta\",\"delta\":{\"message\":{\"tool_plan\":\"x\"}}}", 1),
    ] {
        assert_eq!(content(CohereChat, &format!("data: {event}\n\n")), seen, "{event}");
    }
}

#[test]
fn the_commit_point_is_where_it_was_asked_for() {
    let verdicts = |commit_on| {
        let mut guard =
            StreamGuard::new(OpenAiChat, "text/event-stream", commit_on, 1 << 20, StreamTimes::default(), Instant(0));
        let mut found: Vec<Verdict> = [": hi\n\n", ROLE, TOKEN, TOKEN, STOP, DONE]
            .iter()
            .map(|chunk| guard.on_chunk(chunk.as_bytes(), Instant(1)))
            .collect();
        found.push(guard.on_end(Instant(2)));
        found
    };

    assert_eq!(verdicts(CommitOn::Head), [Pass, Pass, Pass, Pass, Pass, Pass, Ended]);
    assert_eq!(verdicts(CommitOn::FirstEvent), [Hold, Commit, Pass, Pass, Pass, Pass, Ended]);
    assert_eq!(verdicts(CommitOn::FirstContent), [Hold, Hold, Commit, Pass, Pass, Pass, Ended]);
    assert_eq!(verdicts(CommitOn::End), [Hold, Hold, Hold, Hold, Hold, Hold, Ended]);
}

#[test]
fn commit_on_end_can_retry_whatever_broke() {
    for cut in [sse(&[ROLE, TOKEN]), sse(&[TOKEN, "data: {\"error\":{\"message\":\"m\"}}\n\n"])] {
        let outcome = run_with(OpenAiChat, "text/event-stream", CommitOn::End, &[cut.as_bytes()]);
        assert!(outcome.failure.is_some_and(|f| f.before_commit));
    }
}

#[test]
fn more_than_may_be_held_is_let_go_and_noted() {
    for commit_on in [CommitOn::FirstContent, CommitOn::End] {
        let mut guard =
            StreamGuard::new(OpenAiChat, "text/event-stream", commit_on, 100, StreamTimes::default(), Instant(0));
        assert_eq!(guard.on_chunk(&[b':'; 100], Instant(1)), Hold);
        assert_eq!(guard.on_chunk(b":", Instant(1)), Commit);
        assert!(guard.facts().commit_forced);
    }
}

#[test]
fn a_failure_in_the_chunk_that_would_have_committed_is_still_before_the_commit() {
    let text = sse(&[TOKEN, "data: {\"error\":{\"message\":\"m\"}}\n\n"]);
    let outcome = run_with(OpenAiChat, "text/event-stream", CommitOn::FirstContent, &[text.as_bytes()]);
    assert!(outcome.failure.is_some_and(|f| f.before_commit));
}

#[test]
fn a_last_event_that_only_the_end_closes_counts() {
    ends_well(OpenAiChat, &sse(&[TOKEN, STOP.trim_end()]));
    ends_well(OpenAiChat, &sse(&[TOKEN, STOP, "data: [DONE]"]));
    let half = STOP.split_at(STOP.len() - 6).0;
    fails(OpenAiChat, &sse(&[TOKEN, half]), FailureKind::EndWithoutTerminal, false);
}

#[test]
fn an_array_of_events_ends_with_its_bracket() {
    let event = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi ]}\"}]},\"finishReason\":\"STOP\",\"index\":0}],\"modelVersion\":\"g\"}";
    let json = "application/json; charset=UTF-8";
    let run = |text: &str| run_with(GeminiGenerate, json, CommitOn::FirstContent, &[text.as_bytes()]);
    let whole = run(&format!("[{event}\n,\n{event}]"));
    assert_eq!((whole.failure, whole.facts.events), (None, 2));
    assert_eq!(run(&format!("[{event}\n")).failure.map(|f| f.kind), Some(FailureKind::EndWithoutTerminal));
}

#[test]
fn a_finish_reason_behind_megabytes_is_found() {
    let image = "A".repeat(3 << 20);
    let text = format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"inlineData\":{{\"mimeType\":\"image/png\",\"data\":\"{image}\"}}}}]}},\"finishReason\":\"STOP\",\"index\":0}}],\"usageMetadata\":{{\"candidatesTokenCount\":1290}}}}\r\n\r\n"
    );
    let facts = ends_well(GeminiGenerate, &text);
    assert_eq!((facts.content_events, facts.usage.output, facts.malformed_events), (1, Some(1290), 0));
}

#[test]
fn unknown_protocols_and_undecoded_bodies_are_passed_and_said_so() {
    for (protocol, body) in
        [(Unknown, &b"anything"[..]), (OpenAiChat, b"\x1f\x8b\x08\x00junk"), (OpenAiChat, b"\x28\xb5\x2f\xfd")]
    {
        let outcome = run_with(protocol, "text/event-stream", CommitOn::FirstContent, &[body]);
        assert!(outcome.failure.is_none() && outcome.committed && !outcome.facts.understood);
    }
}
