//! What users suffer from, row by row, as far as classification and hints go. Tests are named after the rows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use evenkeel::class::{ErrorClass, Scope};
use evenkeel::classify::{Classification, CustomRule, Delivery, Signal, TransportError, classify, delivery};
use evenkeel::headers::Headers;
use evenkeel::protocol::Protocol;
use evenkeel::time::{Instant, Millis};
use evenkeel::wait_hint::wait_hint;

const NOW: Instant = Instant(1_795_996_800_000); // 2026-11-30T00:00:00Z

fn chat(status: u16, body: &str) -> Option<Classification> {
    classify(&Signal {
        provider: "openai",
        protocol: Protocol::OpenAiChat,
        status: Some(status),
        body: body.as_bytes(),
        now: NOW,
        ..Signal::EMPTY
    })
}

fn thrown(causes: &[(&str, &str, &str)]) -> Classification {
    let packed = causes.iter().map(|(n, c, m)| [*n, *c, *m].join("\u{1f}")).collect::<Vec<_>>().join("\u{1e}");
    classify(&Signal { error: Some(TransportError(&packed)), now: NOW, ..Signal::EMPTY }).unwrap()
}

#[test]
fn a1_insufficient_quota_is_terminal_as_429_and_inside_a_failed_background_response() {
    let error =
        r#"{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}"#;
    let plain = chat(429, &format!(r#"{{"error":{error}}}"#)).unwrap();
    let background = chat(200, &format!(r#"{{"id":"resp_1","status":"failed","error":{error},"output":[]}}"#)).unwrap();
    for verdict in [plain, background] {
        assert_eq!((verdict.class, verdict.retryable, verdict.scope), (ErrorClass::QuotaExhausted, false, Scope::Key));
        assert!(!verdict.class.is_health_failure(), "it is no failure of the provider");
    }
}

#[test]
fn a3_a_4xx_is_terminal_unless_it_is_named() {
    for status in (400..500).filter(|s| ![408, 409, 423, 424, 425, 429].contains(s)) {
        let verdict = chat(status, r#"{"error":{"message":"no"}}"#).unwrap();
        assert!(!verdict.retryable, "{status}: {verdict:?}");
    }
    for status in [408, 409, 423, 424, 425, 429] {
        assert!(chat(status, r#"{"error":{"message":"no"}}"#).unwrap().retryable, "{status}");
    }
}

#[test]
fn a4_undici_terminated_is_recognised_through_its_cause_chain() {
    for causes in [
        &[("TypeError", "", "terminated"), ("SocketError", "UND_ERR_SOCKET", "other side closed")][..],
        &[("TypeError", "", "terminated"), ("Error", "ECONNRESET", "read ECONNRESET")],
        &[("TypeError", "", "terminated")],
        &[
            ("APIConnectionError", "", "Connection error."),
            ("TypeError", "", "fetch failed"),
            ("Error", "", "read ECONNRESET"),
        ],
        &[
            ("Error", "", "wrapper"),
            ("Error", "", "wrapper"),
            ("Error", "ERR_STREAM_PREMATURE_CLOSE", "Premature close"),
        ],
    ] {
        let verdict = thrown(causes);
        assert_eq!((verdict.class, verdict.retryable), (ErrorClass::ConnectionError, true), "{causes:?}");
    }
    let deep = vec![("Error", "", "wrapper"); 100];
    assert_eq!(thrown(&deep).class, ErrorClass::Unknown, "a chain without an end is looked at to a depth");
}

#[test]
fn a5_workerd_wordings_are_known_before_and_while_a_body_is_read() {
    let lost = "Error\u{1f}\u{1f}Network connection lost.";
    for (status, stream) in [(None, false), (Some(200), false), (Some(200), true)] {
        let verdict = classify(&Signal {
            status,
            stream,
            protocol: Protocol::OpenAiChat,
            error: Some(TransportError(lost)),
            now: NOW,
            ..Signal::EMPTY
        })
        .unwrap();
        assert_eq!((verdict.class, verdict.retryable), (ErrorClass::ConnectionError, true));
        assert_eq!(&*verdict.rule, "transport.workerd_lost");
    }
}

#[test]
fn a6_an_error_in_a_stream_is_the_same_class_as_its_http_twin() {
    for (status, error) in [
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        (503, r#"{"error":{"code":"server_is_overloaded","message":"Our servers are currently overloaded."}}"#),
        (429, r#"{"error":{"code":"rate_limit_exceeded","message":"Please try again in 2s."}}"#),
        (401, r#"{"error":{"type":"authentication_error","message":"no"}}"#),
        (500, r#"{"error":{"message":"The operation was aborted"}}"#),
    ] {
        let twin = chat(status, error).unwrap();
        let event = format!("event: error\ndata: {error}\n\n");
        let inside = classify(&Signal {
            provider: "openai",
            protocol: Protocol::OpenAiChat,
            status: Some(200),
            body: event.as_bytes(),
            stream: true,
            now: NOW,
            ..Signal::EMPTY
        })
        .unwrap();
        assert_eq!(
            (inside.class, inside.retryable, inside.scope, inside.wait_hint),
            (twin.class, twin.retryable, twin.scope, twin.wait_hint),
            "{error}"
        );
    }
}

#[test]
fn a8_what_the_request_is_to_blame_for_is_no_failure_of_the_provider() {
    let verdict = chat(400, r#"{"error":{"message":"Invalid image size: 30000 x 30000","type":"invalid_request_error","code":"invalid_image_size"}}"#).unwrap();
    assert_eq!((verdict.class, verdict.scope, verdict.retryable), (ErrorClass::BadRequest, Scope::Request, false));
    assert!(!verdict.class.is_health_failure());
}

#[test]
fn a9_every_servers_words_for_a_prompt_that_is_too_long_are_known_on_any_host() {
    for message in [
        "This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens.",
        "Your input exceeds the context window of this model.",
        "prompt is too long: 212345 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "Input is too long for requested model.",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "Requested token count exceeds the model's maximum context length of 8192 tokens.",
        "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "max_tokens must be at least 1, got -186.",
        "Prompt contains 70000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000",
        "Please reduce the length of the messages or completion.",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        let verdict = classify(&Signal {
            provider: "10.0.0.7",
            protocol: Protocol::OpenAiChat,
            status: Some(400),
            body: body.as_bytes(),
            now: NOW,
            ..Signal::EMPTY
        })
        .unwrap();
        assert_eq!(verdict.class, ErrorClass::RequestTooLarge, "{message}");
    }
}

#[test]
fn a9_a_users_own_pattern_is_tried_before_everything_built_in() {
    let rules = CustomRule::parse_all(
        r#"[{"name":"too_long","status":400,"text":"prompt budget blown","class":"request_too_large"}]"#,
    )
    .unwrap();
    let verdict = classify(&Signal {
        provider: "my-gateway",
        status: Some(400),
        body: br#"{"oops":1,"message":"Prompt budget blown by 12"}"#,
        custom: &rules,
        now: NOW,
        ..Signal::EMPTY
    })
    .unwrap();
    assert_eq!((verdict.class, &*verdict.rule), (ErrorClass::RequestTooLarge, "my-gateway.too_long"));
}

#[test]
fn a10_a_gateway_that_wraps_upstream_failures_in_400_is_overridden_by_a_rule() {
    let body = br#"{"error":{"message":"Upstream request failed"}}"#;
    let signal = Signal { provider: "gateway", status: Some(400), body, now: NOW, ..Signal::EMPTY };
    assert_eq!(classify(&signal).unwrap().class, ErrorClass::BadRequest);
    let rules = CustomRule::parse_all(
        r#"[{"name":"wrapped","status":400,"text":"upstream request failed","class":"server_error"}]"#,
    )
    .unwrap();
    let verdict = classify(&Signal { custom: &rules, ..signal }).unwrap();
    assert_eq!((verdict.class, verdict.retryable), (ErrorClass::ServerError, true));
}

#[test]
fn b2_a_wait_of_sixteen_days_is_reported_in_full_for_the_policy_to_refuse() {
    let verdict =
        chat(429, r#"{"error":{"message":"Usage limit reached. Resets in 16 days.","type":"rate_limit_error"}}"#)
            .unwrap();
    assert_eq!(verdict.wait_hint, Some(Millis(1_382_400_000)));
}

#[test]
fn b3_a_malformed_date_is_no_hint() {
    for value in ["Mon, 30 Nov 2026 99:00:00 GMT", "Foo, 30 Bar 2026", "NaN", "", "tomorrow"] {
        assert_eq!(wait_hint("openai", Headers(&format!("retry-after:{value}\n")), b"", NOW), None, "{value}");
    }
}

#[test]
fn b4_a_negative_number_is_no_date_and_a_past_date_means_now() {
    assert_eq!(wait_hint("", Headers("retry-after:-5\n"), b"", NOW), None);
    assert_eq!(wait_hint("", Headers("retry-after:Wed, 21 Oct 2015 07:28:00 GMT\n"), b"", NOW), Some(Millis(0)));
}

#[test]
fn b7_the_hint_is_26_seconds_wherever_it_stands() {
    for (headers, body) in [
        ("retry-after:26\n", ""),
        ("retry-after-ms:26000\n", ""),
        ("retry-after:Mon, 30 Nov 2026 00:00:26 GMT\n", ""),
        ("x-ratelimit-remaining-tokens:0\nx-ratelimit-reset-tokens:26s\n", ""),
        ("ratelimit:\"a\";r=0;t=26\n", ""),
        ("", r#"{"error":{"details":[{"@type":"x","retryDelay":"26s"}]}}"#),
        ("", r#"{"error":{"message":"Please try again in 26s."}}"#),
        ("", r#"{"error":{"message":"Please try again at 2026-11-30T00:00:26Z."}}"#),
    ] {
        assert_eq!(wait_hint("", Headers(headers), body.as_bytes(), NOW), Some(Millis(26_000)), "{headers}{body}");
    }
}

#[test]
fn b8_seconds_and_dates_are_both_read_from_retry_after() {
    assert_eq!(wait_hint("", Headers("retry-after:120\n"), b"", NOW), Some(Millis(120_000)));
    assert_eq!(wait_hint("", Headers("retry-after:Mon, 30 Nov 2026 00:02:00 GMT\n"), b"", NOW), Some(Millis(120_000)));
}

#[test]
fn b9_a_gateways_429_without_a_hint_has_none_made_up() {
    let verdict = chat(429, r#"{"error":{"message":"No deployments available","type":"None","code":"429"}}"#).unwrap();
    assert_eq!((verdict.class, verdict.wait_hint), (ErrorClass::RateLimited, None));
}

#[test]
fn what_was_never_sent_is_told_from_what_may_have_been_billed() {
    let of = |code: &str| {
        delivery(
            None,
            Some(TransportError(&format!("TypeError\u{1f}\u{1f}fetch failed\u{1e}Error\u{1f}{code}\u{1f}x"))),
        )
    };
    for code in ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT", "CERT_HAS_EXPIRED"] {
        assert_eq!(of(code), Delivery::NotSent, "{code}");
    }
    assert_eq!(
        delivery(
            None,
            Some(TransportError(
                "Error\u{1f}ERR_HTTP2_STREAM_ERROR\u{1f}Stream closed with error code NGHTTP2_REFUSED_STREAM"
            ))
        ),
        Delivery::NotSent
    );
    for code in ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"] {
        assert_eq!(of(code), Delivery::MaybeSent, "{code}");
    }
    for (status, expected) in [
        (504, Delivery::MaybeSent),
        (524, Delivery::MaybeSent),
        (521, Delivery::NotSent),
        (522, Delivery::NotSent),
        (429, Delivery::Answered),
        (500, Delivery::Answered),
    ] {
        assert_eq!(delivery(Some(status), None), expected, "{status}");
    }
    let reset = TransportError("Error\u{1f}ECONNREFUSED\u{1f}x");
    assert_eq!(delivery(Some(200), Some(reset)), Delivery::MaybeSent, "a head that came proves that it was sent");
}

#[test]
fn an_echoed_prompt_never_changes_the_class_of_a_400() {
    for echo in [
        "429 rate limit, overloaded, quota",
        "maximum context length",
        "insufficient_quota",
        "Incorrect API key provided",
        "is not a valid model ID",
        "credit balance is too low",
    ] {
        for quote in ["'", "\"", "`"] {
            let message = format!("Invalid value: {quote}you said {echo} to me{quote}. Expected one of a, b.");
            let body = serde_json::json!({"error": {"message": message, "type": "invalid_request_error", "param": echo, "code": "invalid_value"}}).to_string();
            for provider in evenkeel::classify::providers::all().map(|p| p.name).chain(["", "unknown.example"]) {
                let verdict =
                    classify(&Signal { provider, status: Some(400), body: body.as_bytes(), now: NOW, ..Signal::EMPTY })
                        .unwrap();
                assert_eq!(
                    (verdict.class, verdict.retryable, verdict.wait_hint),
                    (ErrorClass::BadRequest, false, None),
                    "{provider}: {body}: {}",
                    verdict.rule
                );
            }
        }
    }
}
