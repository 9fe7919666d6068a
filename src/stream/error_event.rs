//! The protocol's own error event, for a stream that failed after part of it was delivered.
//!
//! The shapes are those that the official SDKs raise as an error; the tables in `protocol/*.rs` name the sources. Where
//! the protocol has room for it our class stands beside the provider's nearest word, so that it can be read at the other end.

use super::aws_frame::write_frame;
use super::scan::{Cut, Framing};
use crate::class::ErrorClass::{
    self, AuthError, BadRequest, Cancelled, ConnectionError, ContentFiltered, Overloaded, PermissionError,
    QuotaExhausted, RateLimited, RequestTooLarge, StreamInterrupted, Timeout,
};
use crate::prelude::*;
use crate::protocol::Protocol;

/// Appends the error event to `out`.
///
/// `cut` says where the stream stopped: half an event is closed first, so that a parser does not glue the two together. A
/// frame or a JSON value that was cut can't be closed; the event follows it all the same, and its reader fails either way.
/// Nothing is written for an opaque stream.
pub fn error_event(
    protocol: Protocol,
    framing: Framing,
    cut: Cut,
    class: ErrorClass,
    message: &str,
    out: &mut Vec<u8>,
) {
    match framing {
        Framing::Sse => {
            let eol: &[u8] = if protocol == Protocol::GeminiGenerate { b"\r\n" } else { b"\n" };
            match cut {
                Cut::Between => {}
                Cut::AfterLine => out.extend_from_slice(eol),
                Cut::Inside => {
                    out.extend_from_slice(eol);
                    out.extend_from_slice(eol);
                }
            }
            out.extend_from_slice(event_line(protocol).as_bytes());
            out.extend_from_slice(b"data: ");
            body(protocol, class, message, out);
            out.extend_from_slice(eol);
            out.extend_from_slice(eol);
        }
        Framing::Ndjson => {
            if cut != Cut::Between {
                out.push(b'\n');
            }
            body(protocol, class, message, out);
            out.push(b'\n');
        }
        Framing::Json => {
            // An array that is open between two elements is closed, and stays readable.
            if cut != Cut::Between {
                out.push(b',');
            }
            body(protocol, class, message, out);
            if cut != Cut::Between {
                out.push(b']');
            }
        }
        Framing::AwsFrames => {
            let exception = match class {
                RateLimited | QuotaExhausted => "throttlingException",
                Overloaded => "serviceUnavailableException",
                BadRequest | RequestTooLarge => "validationException",
                StreamInterrupted | Timeout | ConnectionError => "modelStreamErrorException",
                _ => "internalServerException",
            };
            let mut payload = Vec::new();
            body(protocol, class, message, &mut payload);
            let headers =
                [(":message-type", "exception"), (":exception-type", exception), (":content-type", "application/json")];
            write_frame(&headers, &payload, out);
        }
        Framing::Opaque => {}
    }
}

/// The line that names the event, where the protocol has one.
const fn event_line(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::AnthropicMessages
        | Protocol::OpenAiResponses
        | Protocol::OpenAiImages
        | Protocol::GeminiInteractions => "event: error\n",
        Protocol::CohereChat => "event: message-end\n",
        _ => "",
    }
}

/// The JSON around the message, in which `$c` stands for the class and `$t` for the provider's word for it.
fn body(protocol: Protocol, class: ErrorClass, message: &str, out: &mut Vec<u8>) {
    let (before, after) = match protocol {
        Protocol::AnthropicMessages => (r#"{"type":"error","error":{"type":"$t","message":"#, "}}"),
        // Nested as captured, flat as documented: readers of either find theirs.
        Protocol::OpenAiResponses | Protocol::OpenAiImages => (
            r#"{"type":"error","sequence_number":0,"code":"$c","param":null,"error":{"type":"$t","code":"$c","param":null,"message":"#,
            r#"},"message":"#,
        ),
        Protocol::GeminiGenerate => (r#"{"error":{$t,"message":"#, "}}"),
        Protocol::GeminiInteractions => (r#"{"event_type":"error","error":{"code":"$c","message":"#, "}}"),
        Protocol::BedrockConverse
        | Protocol::BedrockConverseStream
        | Protocol::BedrockInvoke
        | Protocol::BedrockInvokeStream => (r#"{"message":"#, "}"),
        Protocol::MistralChat => (r#"{"object":"error","type":"$t","param":null,"code":"$c","message":"#, "}"),
        Protocol::CohereChat => (r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"#, "}}"),
        Protocol::OllamaChat => (r#"{"error":"#, "}"),
        _ => (r#"{"error":{"type":"$t","param":null,"code":"$c","message":"#, "}}"),
    };
    fill(before, protocol, class, out);
    quote(message, out);
    out.extend_from_slice(after.as_bytes());
    if after.ends_with(':') {
        quote(message, out);
        out.push(b'}');
    }
}

fn fill(template: &str, protocol: Protocol, class: ErrorClass, out: &mut Vec<u8>) {
    let mut bytes = template.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'$' {
            let word = if bytes.next() == Some(b'c') { class.name() } else { provider_word(protocol, class) };
            out.extend_from_slice(word.as_bytes());
        } else {
            out.push(byte);
        }
    }
}

/// What the provider would call an error of this class.
fn provider_word(protocol: Protocol, class: ErrorClass) -> &'static str {
    let anthropic = protocol == Protocol::AnthropicMessages;
    if protocol == Protocol::GeminiGenerate {
        return match class {
            RateLimited | QuotaExhausted => r#""code":429,"status":"RESOURCE_EXHAUSTED""#,
            Overloaded | StreamInterrupted | ConnectionError => r#""code":503,"status":"UNAVAILABLE""#,
            Timeout => r#""code":504,"status":"DEADLINE_EXCEEDED""#,
            BadRequest | RequestTooLarge => r#""code":400,"status":"INVALID_ARGUMENT""#,
            Cancelled => r#""code":499,"status":"CANCELLED""#,
            _ => r#""code":500,"status":"INTERNAL""#,
        };
    }
    match class {
        RateLimited => "rate_limit_error",
        QuotaExhausted if anthropic => "rate_limit_error",
        QuotaExhausted => "insufficient_quota",
        Overloaded if anthropic => "overloaded_error",
        Timeout if anthropic => "timeout_error",
        BadRequest | RequestTooLarge | ContentFiltered => "invalid_request_error",
        AuthError => "authentication_error",
        PermissionError => "permission_error",
        _ if anthropic => "api_error",
        _ => "server_error",
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    quote_inside(text.as_bytes(), out);
    out.push(b'"');
}

/// Appends the inside of a JSON string.
pub(crate) fn quote_inside(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0..=0x1f => {
                let low = HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0');
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' | (byte >> 4), low]);
            }
            _ => out.push(*byte),
        }
    }
}
