//! Failures inside an HTTP 200: error objects, failed statuses, finish reasons, cut and empty answers.
//!
//! All protocols are read at once, by the names of their members, since a gateway may serve any of them under any URL.
//! A whole body is one value; a stream is a sequence of values, from SSE `data:` lines (llama.cpp's `error:` lines
//! too), JSON Lines, bare JSON between events, a JSON array, or decoded AWS frames. What a stream must have to be whole
//! is its protocol's terminal event or a finish reason; the error that comes first is the error.

use super::facts::{Facts, LOOK, is_listed};
use crate::class::ErrorClass::{
    self, Cancelled, ContentFiltered, Overloaded, RequestTooLarge, ServerError, Timeout, Unknown,
};
use crate::class::Scope::{self, Model, Provider, Request};
use crate::json::{Kind, Outline, Value};
use crate::prelude::*;
use crate::text;

/// What a finish reason that isn't a good end means.
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    /// Unique, `snake_case`.
    pub name: &'static str,
    /// The reasons, as the protocols write them, separated by `|`.
    pub reasons: &'static str,
    /// What it is.
    pub class: ErrorClass,
    /// What it speaks of.
    pub scope: Scope,
    /// Whether another sample may succeed.
    pub retry: bool,
    /// Who says so.
    #[cfg(not(target_arch = "wasm32"))]
    pub source: &'static str,
}

#[cfg_attr(target_arch = "wasm32", allow(unused_variables, reason = "the wasm has no sources"))]
const fn finish(
    name: &'static str,
    reasons: &'static str,
    class: ErrorClass,
    scope: Scope,
    retry: bool,
    source: &'static str,
) -> Finish {
    Finish {
        name,
        reasons,
        class,
        scope,
        retry,
        #[cfg(not(target_arch = "wasm32"))]
        source,
    }
}

/// Finish reasons that are failures; every other reason is a good end.
#[rustfmt::skip] // one rule a line
pub const FINISHES: &[Finish] = &[
    finish("finish_content_filter", "content_filter|content_filtered|refusal|guardrail_intervened|ERROR_TOXIC|sensitive", ContentFiltered, Request, false, "OpenAI, Azure content_filter; Anthropic refusal; Bedrock guardrail_intervened; Cohere ERROR_TOXIC"),
    finish("finish_safety", "SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|LANGUAGE|IMAGE_SAFETY|IMAGE_PROHIBITED_CONTENT|IMAGE_RECITATION|IMAGE_OTHER|MODEL_ARMOR|JAILBREAK", ContentFiltered, Request, false, "ai.google.dev FinishReason, BlockedReason"),
    finish("finish_malformed", "MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL|MALFORMED_RESPONSE|TOO_MANY_TOOL_CALLS|NO_IMAGE|OTHER|malformed_model_output|malformed_tool_use", Unknown, Request, true, "ai.google.dev FinishReason: the sample is at fault, another one may pass"),
    finish("finish_no_resource", "insufficient_system_resource", Overloaded, Provider, true, "api-docs.deepseek.com"),
    finish("finish_timeout", "TIMEOUT|timeout", Timeout, Provider, true, "docs.cohere.com v2 chat"),
    finish("finish_context", "ERROR_LIMIT", RequestTooLarge, Request, false, "docs.cohere.com: the context limit was reached"),
    finish("finish_cancelled", "USER_CANCEL|cancelled|canceled", Cancelled, Request, false, "docs.cohere.com; OpenAI Responses status"),
    finish("finish_error", "error|ERROR|abort|failed|eos_error", ServerError, Provider, true, "OpenRouter, Mistral, Cohere, vLLM"),
];

/// The usual good ends.
const GOOD_ENDS: &[&str] = &["stop", "length", "tool_calls", "end_turn", "tool_use", "max_tokens", "STOP", "COMPLETE"];

/// What was found in an answer whose status is a success.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing wrong.
    Fine,
    /// An error object.
    Error(Facts),
    /// An error object in one of the choices, or an event that carries a finish reason beside its error.
    ChoiceError(Facts),
    /// A finish reason that is a failure.
    Finish(&'static Finish),
    /// It ends before its meaning does.
    Cut,
    /// Only white space: keep-alives, then nothing.
    Blank,
    /// Nothing at all.
    Nothing,
    /// A stream that is well formed, ends well and says nothing.
    Silent,
    /// A page where JSON was expected.
    Page,
}

/// A member of an answer or an event that says how it went.
enum Part {
    Error,
    Errors,
    Object,
    Name,
    Headers,
    Choices,
    Candidates,
    PromptFeedback,
    Finish,
    Done,
    Status,
    Response,
    Delta,
}

const PARTS: &[(&str, Part)] = &[
    ("error", Part::Error),
    ("errors", Part::Errors),
    ("object", Part::Object),
    ("type", Part::Name),
    ("event_type", Part::Name),
    ("event", Part::Name),
    ("headers", Part::Headers),
    ("choices", Part::Choices),
    ("candidates", Part::Candidates),
    ("promptFeedback", Part::PromptFeedback),
    ("stop_reason", Part::Finish),
    ("finish_reason", Part::Finish),
    ("stopReason", Part::Finish),
    ("done", Part::Done),
    ("status", Part::Status),
    ("response", Part::Response),
    ("delta", Part::Delta),
];

/// What the values of an answer have shown so far.
#[derive(Default)]
struct Seen {
    content: bool,
    ended: bool,
    stopped: bool,
    /// A protocol was recognised whose end can be judged.
    known: bool,
    /// Only a chat stream can be told to be silent.
    chat: bool,
    finish: Option<&'static Finish>,
}

fn finish_of(value: Value<'_>) -> Option<&'static Finish> {
    let reason = value.scalar().filter(|_| value.kind() == Kind::String)?;
    // How nearly every answer ends needs no look at the lists.
    if GOOD_ENDS.contains(&reason) {
        return None;
    }
    FINISHES.iter().find(|f| is_listed(reason, f.reasons))
}

fn has_text(value: Option<Value<'_>>) -> bool {
    value.is_some_and(Value::is_something)
}

impl Seen {
    /// A finish reason: `null` and `""` are none.
    fn finish(&mut self, value: Value<'_>) {
        if value.kind() == Kind::String && value.is_something() {
            self.ended = true;
            self.stopped |= value.scalar() == Some("stop");
            self.finish = self.finish.or_else(|| finish_of(value));
        }
    }

    /// One choice of an OpenAI answer or chunk; the error in it, if any.
    fn choice<'a>(&mut self, choice: Value<'a>) -> Option<Value<'a>> {
        let mut error = None;
        for (name, value) in choice.members() {
            match name {
                b"finish_reason" => self.finish(value),
                b"error" if value.is_something() => error = Some(value),
                b"delta" | b"message" => {
                    self.content |= value.members().any(|(n, v)| !matches!(n, b"role") && v.is_something());
                }
                b"text" => self.content |= value.is_something(),
                _ => {}
            }
        }
        error
    }

    /// One value of the answer. Gives the error if it is one.
    fn look(&mut self, event: &Outline<'_>) -> Option<Found> {
        let (mut failed, mut in_delta) = (false, false);
        let mut choice_error = None;
        let Outline { value: event, members, .. } = event;
        for &(name, value) in members {
            let Some((_, part)) = PARTS.iter().find(|(known, _)| known.as_bytes() == name) else { continue };
            match part {
                Part::Error => failed |= value.is_something(),
                Part::Errors => {
                    failed |= value.is_something() && event.get("success").and_then(Value::bool) == Some(false);
                }
                Part::Object => failed |= value.scalar() == Some("error"),
                Part::Name if value.kind() == Kind::String => {
                    failed |= self.event_name(value.scalar().unwrap_or_default(), *event);
                }
                Part::Headers if value.kind() == Kind::Object => failed |= self.frame(value),
                Part::Choices => {
                    self.known = true;
                    self.chat = true;
                    for choice in value.items().take(16) {
                        choice_error = choice_error.or(self.choice(choice));
                    }
                }
                Part::Candidates => {
                    self.known = true;
                    for candidate in value.items().take(16) {
                        self.content |= has_text(candidate.at(&["content", "parts"]));
                        if let Some(reason) = candidate.get("finishReason") {
                            self.finish(reason);
                        }
                    }
                }
                Part::PromptFeedback => {
                    if let Some(reason) = value.get("blockReason") {
                        self.ended = true;
                        self.known = true;
                        self.finish = self.finish.or_else(|| finish_of(reason)).or(FINISHES.get(1));
                    }
                }
                Part::Finish => self.finish(value),
                Part::Done => {
                    self.known |= value.bool().is_some();
                    self.ended |= value.bool() == Some(true);
                }
                Part::Status => failed |= self.status(value, *event),
                Part::Response => {
                    if let Some(status) = value.get("status") {
                        failed |= self.status(status, value);
                    }
                }
                Part::Delta => {
                    for (name, value) in value.members() {
                        match name {
                            b"stop_reason" | b"finish_reason" => self.finish(value),
                            b"error" => in_delta |= value.is_something(),
                            _ => {}
                        }
                    }
                }
                Part::Name | Part::Headers => {}
            }
        }
        // Cohere's `message-end` keeps an error in its delta, with the finish reason that names it.
        if in_delta && !failed {
            return self.finish.map(Found::Finish).or_else(|| Some(Found::Error(Facts::of_value(event.get("delta")?))));
        }
        if failed {
            let beside_choice = event.get("choices").is_some();
            let facts = Facts::of_value(*event);
            return self.finish.filter(|f| f.class != ServerError).map(Found::Finish).or(Some(if beside_choice {
                Found::ChoiceError(facts)
            } else {
                Found::Error(facts)
            }));
        }
        choice_error.map(|error| Found::ChoiceError(Facts::of_value(error)))
    }

    /// The status of a Responses object: `failed` is an error, `incomplete` with a filter a refusal.
    fn status(&mut self, status: Value<'_>, response: Value<'_>) -> bool {
        match status.scalar() {
            Some("failed") => return response.get("error").is_some() || response.get("output").is_some(),
            Some("completed") => self.ended = true,
            Some("cancelled") => self.finish(status),
            Some("incomplete") => {
                self.ended = true;
                if let Some(reason) = response.at(&["incomplete_details", "reason"]) {
                    self.finish(reason);
                }
            }
            _ => {}
        }
        false
    }

    /// The name of an event, in its own `type`, `event_type` or `event` member. Says whether it is an error.
    fn event_name(&mut self, name: &str, event: Value<'_>) -> bool {
        match name {
            "error" | "response.failed" | "response.error" => return true,
            "message_stop"
            | "messageStop"
            | "response.completed"
            | "response.incomplete"
            | "message-end"
            | "interaction.complete"
            | "interaction.completed" => self.ended = true,
            "content_block_delta" | "contentBlockDelta" | "content-delta" | "tool-call-delta" | "tool-plan-delta" => {
                self.content = true;
            }
            "response.output_text.delta"
            | "response.function_call_arguments.delta"
            | "response.refusal.delta"
            | "content.delta" => self.content = true,
            "message" | "chat.completion" => {
                // Anthropic's whole message: its end is judged by the JSON's own.
                self.ended |= event.get("stop_reason").is_some();
                return false;
            }
            "ping" => return false,
            _ if name.starts_with("response.")
                || name.starts_with("content_block")
                || name.starts_with("message")
                || name.starts_with("contentBlock")
                || name.starts_with("interaction.") => {}
            _ => return false,
        }
        self.known = true;
        false
    }

    /// The headers of a decoded AWS event stream frame. Says whether it is an exception.
    fn frame(&mut self, headers: Value<'_>) -> bool {
        let header = |name: &str| headers.get(name).and_then(Value::scalar);
        if matches!(header(":message-type"), Some("exception" | "error")) {
            return true;
        }
        if let Some(name) = header(":event-type") {
            self.known = true;
            self.ended |= name == "messageStop";
            self.content |= name == "contentBlockDelta";
        }
        false
    }

    /// What the end of a stream makes of it.
    fn end(&self) -> Found {
        if let Some(finish) = self.finish {
            Found::Finish(finish)
        } else if self.known && !self.ended {
            Found::Cut
        } else if self.chat && self.stopped && !self.content {
            Found::Silent
        } else {
            Found::Fine
        }
    }
}

/// A whole body; `outline` is that of its first value, where somebody has it.
pub(crate) fn in_body(body: &[u8], content_type: &str, protocol_known: bool, outline: Option<&Outline<'_>>) -> Found {
    let whole = body.len() < LOOK;
    let body = body.get(..LOOK).unwrap_or(body);
    let Some(value) = Value::parse(body) else {
        let expected = protocol_known || text::has(content_type, "json") || text::has(content_type, "event-stream");
        return match (body.is_empty(), expected) {
            (false, true) => Found::Blank,
            (true, true) => Found::Nothing,
            _ => Found::Fine,
        };
    };
    match value.kind() {
        Kind::Object => {
            let made;
            let outline = if let Some(outline) = outline {
                outline
            } else {
                made = Outline::of(value);
                &made
            };
            let mut seen = Seen::default();
            let Some(rest) = outline.rest else {
                return match seen.look(outline) {
                    Some(found) if !whole || matches!(found, Found::Error(_)) => found,
                    _ if whole => Found::Cut,
                    _ => seen.finish.map_or(Found::Fine, Found::Finish),
                };
            };
            // More values follow: JSON Lines that nobody asked for as a stream.
            if Value::parse(rest).is_some_and(|v| v.kind() == Kind::Object) {
                return in_stream(body, content_type);
            }
            seen.look(outline).unwrap_or_else(|| seen.finish.map_or(Found::Fine, Found::Finish))
        }
        Kind::Array => {
            let found = in_items(value);
            found.unwrap_or_else(|| if whole && value.rest().is_none() { Found::Cut } else { Found::Fine })
        }
        _ if is_page(body, content_type) => Found::Page,
        _ if is_events(body) => in_stream(body, content_type),
        _ => Found::Fine,
    }
}

fn in_items(array: Value<'_>) -> Option<Found> {
    let mut seen = Seen::default();
    for item in array.items().take(4096) {
        if let Some(found) = seen.look(&Outline::of(item)) {
            return Some(found);
        }
    }
    match seen.end() {
        Found::Fine => None,
        found => Some(found),
    }
}

fn is_page(body: &[u8], content_type: &str) -> bool {
    let start = body.trim_ascii_start();
    start.starts_with(b"<")
        && (text::has(content_type, "html")
            || start.get(..9).is_some_and(|s| s.eq_ignore_ascii_case(b"<!doctype"))
            || start.get(..5).is_some_and(|s| s.eq_ignore_ascii_case(b"<html")))
}

fn is_events(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    [&b"data:"[..], b"event:", b"id:", b":", b"error:", b"retry:"].iter().any(|field| start.starts_with(field))
}

/// What a stream delivered after its head.
pub(crate) fn in_stream(body: &[u8], content_type: &str) -> Found {
    let cut = body.len() >= LOOK;
    let body = body.get(..LOOK).unwrap_or(body);
    if body.is_empty() {
        return Found::Nothing;
    }
    if is_page(body, content_type) {
        return Found::Page;
    }
    let mut seen = Seen::default();
    let mut rest = body;
    let mut data: Vec<u8> = Vec::new();
    let mut events = 0_usize;
    while !rest.is_empty() {
        // A bare value between the events: JSON Lines, an array, or Gemini's error without `data:`.
        if data.is_empty()
            && let [b'{' | b'[', ..] = rest.trim_ascii_start()
            && let Some(value) = Value::parse(rest)
        {
            events = events.saturating_add(1);
            let outline = Outline::of(value);
            let found = if value.kind() == Kind::Array {
                value.items().find_map(|item| seen.look(&Outline::of(item)))
            } else {
                seen.look(&outline)
            };
            if let Some(found) = found {
                return found;
            }
            match outline.rest {
                Some(after) => rest = after,
                None if cut => return seen.end_of_prefix(),
                None => return Found::Cut,
            }
            continue;
        }
        let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let (line, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        rest = after.strip_prefix(b"\r\n").or_else(|| after.get(1..)).unwrap_or_default();
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            if !data.is_empty() {
                data.push(b'\n');
            }
            data.extend_from_slice(value);
        } else if let Some(value) = line.strip_prefix(b"error:")
            && let Some(value) = Value::parse(value)
        {
            return Found::Error(Facts::of_value(value));
        }
        if (line.is_empty() || rest.is_empty()) && !data.is_empty() {
            events = events.saturating_add(1);
            if data.trim_ascii() == b"[DONE]" {
                seen.ended = true;
                seen.known = true;
            } else if let Some(found) = Value::parse(&data).and_then(|value| seen.look(&Outline::of(value))) {
                return found;
            }
            data.clear();
        }
    }
    if cut {
        return seen.end_of_prefix();
    }
    if events == 0 {
        return if body.trim_ascii().is_empty() { Found::Blank } else { Found::Cut };
    }
    seen.end()
}

impl Seen {
    /// What can be said of a stream of which only the beginning is looked at.
    fn end_of_prefix(&self) -> Found {
        self.finish.map_or(Found::Fine, Found::Finish)
    }
}

/// Whether a verdict says that an answer stops before its end, or that there is none.
pub(crate) fn is_no_answer(rule: &str) -> bool {
    is_listed(rule, "generic.cut_answer|generic.no_answer|generic.only_keep_alives")
}

/// A server error that the model's own route gives is of the model where the provider is a router.
pub(crate) const ROUTED: Scope = Model;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_usual_good_end_is_listed_as_a_failure() {
        for end in GOOD_ENDS {
            assert!(!FINISHES.iter().any(|f| is_listed(end, f.reasons)), "{end}");
        }
    }
}
