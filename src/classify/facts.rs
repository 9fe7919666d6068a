//! What an error body says, whatever its shape.
//!
//! One walk collects the words that name the error (`code`, `type`, `status`, `reason`, …), its text, a status of its
//! own and a structured wait hint, from every envelope that providers use: `{"error":{…}}`, `[{"error":…}]`,
//! `{"error":"text"}`, flat OpenAI and Mistral bodies, Anthropic's, Google's `details`, `FastAPI`'s `detail`, Apigee's
//! `fault`, Cloudflare's `errors`, OpenRouter's `metadata` and `availability`, AWS' `__type`, a decoded event stream
//! frame, JSON inside a string (to a depth), HTML and bare text. Only known members are followed, so an echoed input
//! is never read. Codes and text are kept in lower case and are bounded.

use super::table::Words;
use crate::dates::rfc3339;
use crate::headers::Headers;
use crate::json::{Kind, Value, push_lossy};
use crate::prelude::*;
use crate::text::{self, number};
use crate::time::{Instant, Millis};
use crate::wait_hint::{duration, number_of};

/// How much of a body is looked at.
pub const LOOK: usize = 65_536;
const MAX_TEXT: usize = 4_096;
const MAX_CODES: usize = 512;
const MAX_CODE: usize = 96;
const MAX_DEPTH: u8 = 10;
/// The most values that one walk visits, all its nested strings together.
const MAX_VISITS: u16 = 512;

/// What a body looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Nothing, or white space.
    #[default]
    Empty,
    /// JSON, or the JSON of a stream's event.
    Json,
    /// An HTML or XML page.
    Html,
    /// Anything else.
    Text,
}

/// A wait hint that a body gives in a member of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    After(Millis),
    At(Instant),
}

/// What an error body says.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What the body looks like.
    pub shape: Shape,
    /// The words that name the error, lower case, one a line.
    pub codes: String,
    /// The text, lower case: messages and the names of violated quotas.
    pub text: String,
    /// The status that the body itself tells, 400–599.
    pub status: Option<u16>,
    /// `error.availability.retryable` (OpenRouter).
    pub retryable: Option<bool>,
    pub(crate) hint: Option<Hint>,
    /// The [`word_bit`]s of the codes.
    code_bits: u64,
    /// The body has Google's error details.
    google: bool,
    /// Which pairs of bytes occur in `text`: a text that lacks a pair of the pattern's can't contain it.
    pairs: [u64; 16],
    visits: u16,
}

/// What a member of an error body holds.
enum Member {
    /// A word or number that names the error, or a status.
    Code,
    /// A text, or more members.
    Text,
    /// OpenRouter's `metadata`, Google's too.
    Metadata,
    /// Google's violated quotas.
    Violations,
    /// `@type` of Google's details.
    GoogleType,
    /// The name of a quota.
    Quota,
    /// A wait, with units.
    Span,
    /// A date until which to wait.
    Date,
    /// A wait in seconds.
    Seconds,
    /// A wait in milliseconds.
    Millis,
    /// Headers: a copy of the limits', or those of an AWS frame.
    Headers,
    /// OpenRouter's `availability`.
    Availability,
    /// Ollama's invitation to sign in.
    SignIn,
}

/// The members that are followed; no other is, so that an echoed input is never read.
const MEMBERS: &[(&str, Member)] = &[
    ("code", Member::Code),
    ("type", Member::Code),
    ("status", Member::Code),
    ("reason", Member::Code),
    ("error_type", Member::Code),
    ("error_code", Member::Code),
    ("errorcode", Member::Code),
    ("__type", Member::Code),
    ("limit_source", Member::Code),
    ("http_status", Member::Code),
    ("raw_status_code", Member::Code),
    ("status_code", Member::Code),
    ("message", Member::Text),
    ("Message", Member::Text),
    ("msg", Member::Text),
    ("error", Member::Text),
    ("errors", Member::Text),
    ("error_message", Member::Text),
    ("detail", Member::Text),
    ("details", Member::Text),
    ("description", Member::Text),
    ("fault", Member::Text),
    ("faultstring", Member::Text),
    ("innererror", Member::Text),
    ("raw", Member::Text),
    ("response", Member::Text),
    ("body", Member::Text),
    ("cause", Member::Text),
    ("incomplete_details", Member::Text),
    ("metadata", Member::Metadata),
    ("violations", Member::Violations),
    ("@type", Member::GoogleType),
    ("quotaId", Member::Quota),
    ("quota_limit", Member::Quota),
    ("retryDelay", Member::Span),
    ("quotaResetDelay", Member::Span),
    ("quotaResetTimeStamp", Member::Date),
    ("resets_at", Member::Date),
    ("reset_at", Member::Date),
    ("estimated_time", Member::Seconds),
    ("retry_after", Member::Seconds),
    ("retry_after_ms", Member::Millis),
    ("headers", Member::Headers),
    ("availability", Member::Availability),
    ("signin_url", Member::SignIn),
];

/// Whether `word` is one of a list whose items are separated by `|`.
pub(crate) fn is_listed(word: &str, list: &str) -> bool {
    if word.is_empty() || word.contains('|') {
        return word.is_empty() && (list.is_empty() || text::pieces(list, "|").any(str::is_empty));
    }
    // A search that skips to the word's first letter passes over most of a list without cutting it up.
    let ends = |at: Option<usize>| at.is_none_or(|at| list.as_bytes().get(at).is_none_or(|byte| *byte == b'|'));
    let mut from = 0;
    while let Some(at) = text::find_from(list, word, from) {
        if ends(at.checked_sub(1)) && ends(Some(at.saturating_add(word.len()))) {
            return true;
        }
        from = at.saturating_add(1);
    }
    false
}

/// The bit of a word in a set of words: one that lacks it can't be in the set.
pub(crate) const fn word_bit(word: &[u8]) -> u64 {
    match word {
        [first, .., last] => {
            let hash = (*first as usize).wrapping_mul(7).wrapping_add(*last as usize).wrapping_add(word.len());
            1 << (hash & 63)
        }
        _ => 1,
    }
}

/// The bit of a pair of bytes in [`Facts::pairs`].
const fn pair_bit(a: u8, b: u8) -> (usize, u64) {
    let hash = (a as usize).wrapping_mul(37).wrapping_add(b as usize);
    ((hash >> 6) & 15, 1_u64 << (hash & 63))
}

impl Facts {
    /// The facts of an error's body; `headers` give AWS' error name.
    #[must_use]
    pub fn of_body(headers: Headers<'_>, body: &[u8]) -> Self {
        let body = body.get(..LOOK).unwrap_or(body);
        let mut facts = Self::default();
        if let Some(name) = headers.get("x-amzn-errortype") {
            facts.add_code(name.as_bytes());
        }
        match Value::parse(body) {
            None => {}
            Some(value) => match value.kind() {
                Kind::Object | Kind::Array => {
                    facts.shape = Shape::Json;
                    facts.collect(value, 0);
                }
                Kind::String => {
                    facts.shape = Shape::Json;
                    facts.add_text(value, 0);
                }
                _ => facts.collect_text(body),
            },
        }
        facts.seal();
        facts
    }

    /// The facts of a failure that has only a name.
    #[must_use]
    pub fn of_code(code: &str) -> Self {
        let mut facts = Self::default();
        facts.add_code(code.as_bytes());
        facts
    }

    /// The facts of one JSON value, e.g. of a stream's event.
    #[must_use]
    pub fn of_value(value: Value<'_>) -> Self {
        let mut facts = Self { shape: Shape::Json, ..Self::default() };
        if value.kind() == Kind::String {
            facts.add_text(value, 0);
        } else {
            facts.collect(value, 0);
        }
        facts.seal();
        facts
    }

    /// A page, a text, or the events of a stream that came with an error status.
    fn collect_text(&mut self, body: &[u8]) {
        let trimmed = body.trim_ascii_start();
        if trimmed.starts_with(b"data:") || trimmed.starts_with(b"event:") || trimmed.starts_with(b"error:") {
            let json = trimmed.iter().position(|b| *b == b'{').and_then(|at| Value::parse(trimmed.get(at..)?));
            if let Some(value) = json {
                self.shape = Shape::Json;
                self.collect(value, 0);
                return;
            }
        }
        self.shape = if trimmed.starts_with(b"<") { Shape::Html } else { Shape::Text };
        push_lossy(&mut self.text, trimmed.get(..MAX_TEXT).unwrap_or(trimmed));
    }

    /// Lower case, and the pairs of bytes that a search looks at first.
    fn seal(&mut self) {
        self.text.make_ascii_lowercase();
        let bytes = self.text.as_bytes();
        for (a, b) in bytes.iter().zip(bytes.iter().skip(1)) {
            let (word, bit) = pair_bit(*a, *b);
            if let Some(slot) = self.pairs.get_mut(word) {
                *slot |= bit;
            }
        }
    }

    /// Notes a word that names the error. AWS' decorations go: `com.amazon#Name:http://…` is `name`.
    fn add_code(&mut self, raw: &[u8]) {
        let raw = raw.get(..MAX_CODE).unwrap_or(raw);
        let Ok(text) = core::str::from_utf8(raw) else { return };
        let text = text::before(text, ":,");
        let text = text::cut_last(text, "#").map_or(text, |(_, name)| name).trim_ascii();
        // `"type":"error"` names the envelope, not the error.
        if text.is_empty() || text == "error" || self.codes.len() > MAX_CODES {
            return;
        }
        let start = self.codes.len();
        self.codes.extend(text.chars().map(|c| if c == '\n' { ' ' } else { c.to_ascii_lowercase() }));
        self.code_bits |= word_bit(self.codes.as_bytes().get(start..).unwrap_or_default());
        self.codes.push('\n');
        if let Some(status) = number(text).and_then(|s| u16::try_from(s).ok())
            && (400..600).contains(&status)
            && self.status.is_none()
        {
            self.status = Some(status);
            self.codes.truncate(start);
        }
    }

    fn add_scalar_code(&mut self, value: Value<'_>) {
        if let Some(text) = value.scalar()
            && !matches!(value.kind(), Kind::Null | Kind::Bool)
        {
            self.add_code(text.as_bytes());
        }
    }

    /// Notes a text; if it holds JSON, what that says.
    fn add_text(&mut self, value: Value<'_>, depth: u8) {
        if self.text.len() >= MAX_TEXT {
            return;
        }
        let start = self.text.len();
        let left = MAX_TEXT.saturating_sub(start);
        let Some(raw) = value.raw_str() else { return };
        let first = raw.trim_ascii_start();
        let nested = first.starts_with(b"{")
            || first.starts_with(b"[")
            || first.starts_with(b"\\n{")
            || first.starts_with(br#"\""#);
        if nested && depth < MAX_DEPTH {
            let mut inner = String::new();
            value.decode_into(&mut inner, LOOK);
            if let Some(inner) = Value::parse(inner.as_bytes())
                && matches!(inner.kind(), Kind::Object | Kind::Array | Kind::String)
                && inner.rest().is_some()
            {
                if inner.kind() == Kind::String {
                    self.add_text(inner, depth.saturating_add(1));
                } else {
                    self.collect(inner, depth.saturating_add(1));
                }
                return;
            }
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        value.decode_into(&mut self.text, left);
    }

    fn hint_number(&mut self, value: Value<'_>, unit_ms: u64) {
        if self.hint.is_none()
            && let Some(wait) = value.scalar().and_then(|t| number_of(t, unit_ms))
        {
            self.hint = Some(Hint::After(wait));
        }
    }

    fn hint_span(&mut self, value: Value<'_>) {
        if let Some(wait) = value.scalar().and_then(duration) {
            self.hint = Some(Hint::After(wait));
        }
    }

    fn hint_date(&mut self, value: Value<'_>) {
        if self.hint.is_none()
            && let Some(at) = value.scalar().and_then(rfc3339)
        {
            self.hint = Some(Hint::At(at));
        }
    }

    /// `metadata.headers` of OpenRouter: the limit's headers, copied into the body. The reset is in epoch milliseconds.
    fn collect_headers(&mut self, headers: Value<'_>, depth: u8) {
        for (name, value) in headers.members().take(32) {
            if name.eq_ignore_ascii_case(b"x-ratelimit-reset") {
                if self.hint.is_none()
                    && let Some(at) = value.scalar().and_then(|t| number_of(t, 1)).filter(|t| t.0 > 1_000_000_000_000)
                {
                    self.hint = Some(Hint::At(Instant(at.0)));
                }
            } else if name.eq_ignore_ascii_case(b"retry-after") {
                self.hint_number(value, 1000);
            } else if name == b":exception-type" || name == b":error-code" {
                self.add_scalar_code(value);
            } else if name == b":error-message" {
                self.add_text(value, depth);
            }
        }
    }

    fn collect_any(&mut self, value: Value<'_>, depth: u8) {
        match value.kind() {
            Kind::String => self.add_text(value, depth),
            Kind::Object | Kind::Array => self.collect(value, depth.saturating_add(1)),
            _ => {}
        }
    }

    /// Notes what an object, or the first objects of an array, say.
    fn collect(&mut self, value: Value<'_>, depth: u8) {
        if depth > MAX_DEPTH {
            return;
        }
        if value.kind() == Kind::Array {
            for item in value.items().take(8) {
                self.collect_any(item, depth);
            }
            return;
        }
        for (name, value) in value.members() {
            self.visits = self.visits.saturating_add(1);
            if self.visits > MAX_VISITS {
                return;
            }
            let Some((_, member)) = MEMBERS.iter().find(|(known, _)| known.as_bytes() == name) else { continue };
            match member {
                Member::Code => self.add_scalar_code(value),
                Member::Text => self.collect_any(value, depth),
                Member::Metadata => {
                    self.collect(value, depth.saturating_add(1));
                    self.collect_metadata(value);
                }
                Member::Violations => {
                    self.google = true;
                    self.collect(value, depth.saturating_add(1));
                }
                Member::GoogleType => self.google = true,
                Member::Quota => self.add_text(value, depth),
                Member::Span => self.hint_span(value),
                Member::Date => self.hint_date(value),
                Member::Seconds => self.hint_number(value, 1000),
                Member::Millis => self.hint_number(value, 1),
                Member::Headers => self.collect_headers(value, depth),
                Member::Availability => {
                    self.retryable = value.get("retryable").and_then(Value::bool);
                    self.collect(value, depth.saturating_add(1));
                }
                Member::SignIn => self.add_code(b"signin_url"),
            }
        }
    }

    /// Members of OpenRouter's `metadata` whose presence is the message.
    fn collect_metadata(&mut self, metadata: Value<'_>) {
        let has = |name: &str| metadata.get(name).is_some_and(Value::is_something);
        if has("reasons") || has("flagged_input") {
            self.add_code(b"moderation");
        }
        if has("patterns") {
            self.add_code(b"guardrail_patterns");
        }
    }

    /// The codes, in order of appearance.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        text::pieces(&self.codes, "\n").filter(|c| !c.is_empty())
    }

    /// Whether any of these words, separated by `|`, names the error.
    #[must_use]
    pub fn has_any_code(&self, words: &str) -> bool {
        self.codes().any(|code| is_listed(code, words))
    }

    pub(crate) fn has_any_of(&self, mut words: Words) -> bool {
        words.any(|word| self.code_bits & word_bit(word.as_bytes()) != 0 && self.codes().any(|code| code == word))
    }

    pub(crate) fn says_any_of(&self, mut patterns: Words) -> bool {
        patterns.any(|p| self.says(p))
    }

    /// Whether the text contains any of these patterns, separated by `|`.
    #[must_use]
    pub fn says_any(&self, patterns: &str) -> bool {
        text::pieces(patterns, "|").any(|p| self.says(p))
    }

    /// Whether the text contains a pattern (see [`super::rule::Match::text`]) outside of a quotation.
    #[must_use]
    pub fn says(&self, pattern: &str) -> bool {
        let (anchored, pattern) = pattern.strip_prefix('^').map_or((false, pattern), |rest| (true, rest));
        let bytes = pattern.as_bytes();
        for (a, b) in bytes.iter().zip(bytes.iter().skip(1)) {
            if *a == b'*' || *b == b'*' {
                continue;
            }
            let (word, bit) = pair_bit(*a, *b);
            if self.pairs.get(word).is_none_or(|w| w & bit == 0) {
                return false;
            }
        }
        if anchored {
            return text::pieces(&self.text, "\n").any(|line| line.starts_with(pattern));
        }
        let mut parts = text::pieces(pattern, "*");
        let first = parts.next().unwrap_or_default();
        let mut from = 0;
        while let Some(at) = text::find_from(&self.text, first, from) {
            let end = at.saturating_add(first.len());
            from = end.max(at.saturating_add(1));
            if !self.is_quoted(at, end) {
                let mut after = Some(end);
                for part in parts.clone() {
                    after = after
                        .and_then(|after| text::find_from(&self.text, part, after))
                        .map(|at| at.saturating_add(part.len()));
                }
                if after.is_some() {
                    return true;
                }
            }
        }
        false
    }

    /// Whether `start..end` of the text lies inside a quotation: between quotation marks of one kind on its line, the
    /// opening one after a space or bracket, so that an apostrophe opens nothing.
    fn is_quoted(&self, start: usize, end: usize) -> bool {
        let before = self.text.get(..start).unwrap_or_default();
        let before = text::cut_last(before, "\n").map_or(before, |(_, line)| line).as_bytes();
        let after = self.text.get(end..).unwrap_or_default().as_bytes();
        [b'"', b'\'', b'`'].into_iter().any(|mark| {
            let mut open = false;
            let mut last = b' ';
            for (at, byte) in before.iter().enumerate() {
                if *byte == mark {
                    let next = before.get(at.saturating_add(1)).copied().unwrap_or(b'a');
                    if open {
                        open = mark == b'\'' && next.is_ascii_alphanumeric();
                    } else {
                        open = !last.is_ascii_alphanumeric();
                    }
                }
                last = *byte;
            }
            open && after.contains(&mark)
        })
    }

    /// Whether the text says that the request is larger than the whole limit (OpenAI, Groq: `Limit 7000, Used 0,
    /// Requested ~12903`): it never fits, whatever the hint says.
    #[must_use]
    pub fn never_fits(&self) -> bool {
        let number_after = |word: &str| -> Option<u64> {
            let mut rest = self.text.as_str();
            loop {
                rest = text::cut(rest, word)?.1;
                let mut number = None::<u64>;
                for byte in text::after_any(rest, " ~:").bytes().filter(|b| *b != b',').take(18) {
                    if !byte.is_ascii_digit() {
                        break;
                    }
                    let digit = u64::from(byte.saturating_sub(b'0'));
                    number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
                }
                if number.is_some() {
                    return number;
                }
            }
        };
        match (number_after("limit "), number_after("requested ")) {
            (Some(limit), Some(requested)) => limit > 0 && requested > limit,
            _ => false,
        }
    }

    /// Whether a quota of a whole day (or month) is meant.
    #[must_use]
    pub fn is_daily(&self) -> bool {
        self.says_any("perday|per day|daily|/day|per month|monthly")
    }

    /// Whether the hint, if there is one, can't come true: a Gemini quota of a day or of zero, a request too large for
    /// its bucket.
    #[must_use]
    pub fn hint_never_comes_true(&self) -> bool {
        let google = self.google || self.has_any_code("resource_exhausted");
        (google && (self.is_daily() || self.says("limit: 0"))) || self.never_fits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(body: &str) -> Facts {
        Facts::of_body(Headers::EMPTY, body.as_bytes())
    }

    #[test]
    fn every_envelope_gives_its_words_and_its_text() {
        for (body, code, text) in [
            (r#"{"error":{"message":"No","type":"t","code":"c"}}"#, "c", "no"),
            (r#"[{"error":{"message":"No","status":"C"}}]"#, "c", "no"),
            (r#"{"error":"No","code":"C"}"#, "c", "no"),
            (r#"{"type":"error","error":{"type":"c","message":"No","details":{"error_code":"d"}}}"#, "d", "no"),
            (r#"{"message":"No","type":"c"}"#, "c", "no"),
            (r#"{"object":"error","message":"No","code":1300}"#, "1300", "no"),
            (r#"{"detail":[{"loc":["body"],"msg":"No","type":"c","input":"echo"}]}"#, "c", "no"),
            (r#"{"message":{"detail":[{"msg":"No","type":"c"}]}}"#, "c", "no"),
            (r#"{"fault":{"faultstring":"No","detail":{"errorcode":"c"}}}"#, "c", "no"),
            (r#"{"success":false,"errors":[{"code":3040,"message":"No"}]}"#, "3040", "no"),
            (r#"{"error":{"message":"{\n \"error\":{\"message\":\"No\",\"code\":\"c\"}}","code":429}}"#, "c", "no"),
            (
                r#"{"error":{"message":"\"{\\\"error\\\":{\\\"message\\\":\\\"No\\\",\\\"code\\\":\\\"c\\\"}}\""}}"#,
                "c",
                "no",
            ),
            (r#"{"__type":"com.amazon.coral#C:x","message":"No"}"#, "c", "no"),
            ("data: {\"error\":{\"code\":\"c\",\"message\":\"No\"}}\n\n", "c", "no"),
        ] {
            let facts = facts(body);
            assert!(facts.has_any_code(code), "{body}: {:?}", facts.codes);
            assert_eq!(facts.text, text, "{body}");
        }
    }

    #[test]
    fn a_number_that_is_a_status_is_the_status_and_no_code() {
        let f = facts(r#"{"error":{"code":"429","message":""}}"#);
        assert_eq!((f.status, f.codes.as_str()), (Some(429), ""));
    }

    #[test]
    fn an_echoed_quotation_proves_nothing_but_an_apostrophe_opens_none() {
        assert!(
            !facts(r#"{"message":"Invalid value: 'my context length exceeded today'. Sorry"}"#).says("context length")
        );
        assert!(!facts(r#"{"message":"Invalid \"say context length\""}"#).says("context length"));
        assert!(
            facts(r#"{"message":"This model's maximum context length isn't that"}"#).says("maximum context length")
        );
        assert!(facts(r#"{"message":"model 'xyz' not found, make sure"}"#).says("not found"));
        assert!(facts(r#"{"message":"model 'xyz' not found, make sure"}"#).says("model * not found"));
    }

    #[test]
    fn nested_json_strings_end_at_a_depth() {
        let mut body = String::from(r#"{"code":"deep"}"#);
        for _ in 0..14 {
            body = format!("{{\"message\":{}}}", serde_json::to_string(&body).unwrap());
        }
        assert!(!facts(&body).has_any_code("deep"));
    }
}
