//! A user's own rules, in the same form as the built-in ones, written as JSON.
//!
//! `{"name":"wrapped","status":[400,"500-599"],"code":["E17"],"text":["upstream request failed"],"class":"server_error",
//! "scope":"provider","retryable":true,"waitMs":2000}`: `class` is required, and one of `status`, `code` and `text`; all
//! that is given must hold. They are tried before anything built in, in their order. A mistake is reported with its
//! path, what was got and what is expected.

use super::facts::Facts;
use crate::class::{Classification, ErrorClass, Scope};
use crate::json::{Kind, Value, is_complete};
use crate::prelude::*;
use crate::text::{self, decimal, joined, number};
use crate::time::Millis;
use alloc::borrow::Cow;
use core::fmt;

/// Most rules of one provider.
pub const MAX_RULES: usize = 256;
const MAX_ITEMS: usize = 64;
const MAX_LENGTH: usize = 256;
const MAX_INPUT: usize = 262_144;
const MAX_WAIT: u64 = 86_400_000 * 366;

/// A rule of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomRule {
    name: String,
    status: Vec<(u16, u16)>,
    code: Vec<String>,
    text: Vec<String>,
    class: ErrorClass,
    scope: Scope,
    retryable: bool,
    wait: Option<Millis>,
}

/// What is wrong with a user's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Where: `[0].status[1]`.
    pub path: String,
    /// What stands there, shortened.
    pub got: String,
    /// What should.
    pub expected: &'static str,
}

impl RuleError {
    /// The whole of it in a sentence.
    #[must_use]
    pub fn message(&self) -> String {
        joined(&[&self.path, ": expected ", self.expected, ", got ", &self.got])
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl core::error::Error for RuleError {}

fn wrong(path: String, value: Option<Value<'_>>, expected: &'static str) -> RuleError {
    let mut got = String::new();
    match value {
        Some(value) => crate::json::push_lossy(&mut got, value.bytes().get(..60).unwrap_or(value.bytes())),
        None => got.push_str("nothing"),
    }
    RuleError { path, got, expected }
}

/// The path of an item.
fn indexed(path: &str, at: usize) -> String {
    joined(&[path, "[", &decimal(Some(at as u64)), "]"])
}

/// A string, decoded.
fn string(path: &str, value: Value<'_>) -> Result<String, RuleError> {
    let mut out = String::new();
    let is_string = value.decode_into(&mut out, MAX_LENGTH.saturating_add(1));
    if !is_string || out.is_empty() || out.len() > MAX_LENGTH {
        return Err(wrong(path.to_owned(), Some(value), "a string of 1 to 256 bytes"));
    }
    Ok(out)
}

/// One value or a list of them.
fn list<T>(
    path: &str,
    value: Value<'_>,
    one: impl Fn(&str, Value<'_>) -> Result<T, RuleError>,
) -> Result<Vec<T>, RuleError> {
    if value.kind() != Kind::Array {
        return Ok(vec![one(path, value)?]);
    }
    let mut out = Vec::new();
    for (at, item) in value.items().enumerate() {
        if at >= MAX_ITEMS {
            return Err(wrong(path.to_owned(), Some(value), "at most 64 items"));
        }
        out.push(one(&indexed(path, at), item)?);
    }
    if out.is_empty() {
        return Err(wrong(path.to_owned(), Some(value), "at least one item"));
    }
    Ok(out)
}

fn status(path: &str, value: Value<'_>) -> Result<(u16, u16), RuleError> {
    let parse =
        |text: &str| number(text.trim_ascii()).and_then(|s| u16::try_from(s).ok()).filter(|s| (100..=599).contains(s));
    let range = value.scalar().and_then(|text| match text::cut(text, "-") {
        Some((from, to)) => Some((parse(from)?, parse(to)?)),
        None => match text.as_bytes() {
            [family @ b'1'..=b'5', b'x', b'x'] => {
                let from = u16::from(family.saturating_sub(b'0')).saturating_mul(100);
                Some((from, from.saturating_add(99)))
            }
            _ => parse(text).map(|s| (s, s)),
        },
    });
    range.filter(|(from, to)| from <= to).ok_or_else(|| {
        wrong(path.to_owned(), Some(value), "a status of 100 to 599, a range \"500-599\", or a family \"5xx\"")
    })
}

impl CustomRule {
    /// The rules of a JSON array, at most 256.
    ///
    /// # Errors
    /// The first thing that is wrong, with its path.
    pub fn parse_all(json: &str) -> Result<Vec<Self>, RuleError> {
        let value = Value::parse(json.as_bytes());
        let array =
            value.filter(|v| v.kind() == Kind::Array && is_complete(json.as_bytes()) && json.len() <= MAX_INPUT);
        let Some(array) = array else {
            return Err(wrong("rules".to_owned(), value, "a JSON array of rules, at most 256 KiB"));
        };
        let mut out = Vec::new();
        for (at, item) in array.items().enumerate() {
            if at >= MAX_RULES {
                return Err(wrong("rules".to_owned(), None, "at most 256 rules"));
            }
            out.push(Self::parse(&indexed("", at), at, item)?);
        }
        Ok(out)
    }

    fn parse(path: &str, at: usize, value: Value<'_>) -> Result<Self, RuleError> {
        if value.kind() != Kind::Object {
            return Err(wrong(path.to_owned(), Some(value), "an object"));
        }
        let mut class = None;
        let mut rule = Self {
            name: joined(&["rule", &decimal(Some(at as u64))]),
            status: Vec::new(),
            code: Vec::new(),
            text: Vec::new(),
            class: ErrorClass::Unknown,
            scope: Scope::Request,
            retryable: false,
            wait: None,
        };
        let (mut scope, mut retryable) = (None, None);
        for (name, value) in value.members() {
            let mut path = joined(&[path, "."]);
            crate::json::push_lossy(&mut path, name.get(..40).unwrap_or(name));
            match name {
                b"name" => rule.name = string(&path, value)?,
                b"status" => rule.status = list(&path, value, status)?,
                b"code" | b"type" => {
                    rule.code.extend(list(&path, value, string)?.iter().map(|c| c.to_ascii_lowercase()));
                }
                b"text" => rule.text = list(&path, value, string)?.iter().map(|t| t.to_ascii_lowercase()).collect(),
                b"class" => {
                    class = Some(value.scalar().and_then(ErrorClass::from_name).ok_or_else(|| {
                        wrong(path, Some(value), "an error class, e.g. \"rate_limited\" or \"server_error\"")
                    })?);
                }
                b"scope" => {
                    scope = Some(value.scalar().and_then(Scope::from_name).ok_or_else(|| {
                        wrong(path, Some(value), "\"request\", \"key\", \"bucket\", \"model\" or \"provider\"")
                    })?);
                }
                b"retryable" => {
                    retryable = Some(value.bool().ok_or_else(|| wrong(path, Some(value), "true or false"))?);
                }
                b"waitMs" => {
                    let wait = value.u64().filter(|ms| *ms <= MAX_WAIT);
                    rule.wait =
                        Some(Millis(wait.ok_or_else(|| wrong(path, Some(value), "milliseconds, 0 to a year"))?));
                }
                _ => {
                    let known = "one of name, status, code, type, text, class, scope, retryable, waitMs";
                    return Err(wrong(path, Some(value), known));
                }
            }
        }
        rule.class =
            class.ok_or_else(|| wrong(joined(&[path, ".class"]), None, "an error class, e.g. \"server_error\""))?;
        if rule.status.is_empty() && rule.code.is_empty() && rule.text.is_empty() {
            return Err(wrong(path.to_owned(), Some(value), "at least one of status, code and text"));
        }
        rule.scope = scope.unwrap_or(match rule.class {
            ErrorClass::AuthError | ErrorClass::PermissionError => Scope::Key,
            ErrorClass::RateLimited | ErrorClass::QuotaExhausted => Scope::Bucket,
            ErrorClass::NotFound | ErrorClass::Overloaded => Scope::Model,
            ErrorClass::BadRequest
            | ErrorClass::RequestTooLarge
            | ErrorClass::ContentFiltered
            | ErrorClass::Cancelled => Scope::Request,
            _ => Scope::Provider,
        });
        rule.retryable = retryable.unwrap_or_else(|| rule.class.may_retry_same_target());
        Ok(rule)
    }

    fn holds(&self, status: u16, facts: &Facts) -> bool {
        (self.status.is_empty() || self.status.iter().any(|(from, to)| (*from..=*to).contains(&status)))
            && (self.code.is_empty() || facts.codes().any(|c| self.code.iter().any(|own| own == c)))
            && (self.text.is_empty() || self.text.iter().any(|t| facts.says(t)))
    }

    /// The verdict of this rule; its own wait stands where the answer gives none.
    pub(crate) fn classification(&self, provider: &str, hint: Option<Millis>) -> Classification {
        let owner = if provider.is_empty() { "custom" } else { provider };
        Classification {
            class: self.class,
            retryable: self.retryable,
            scope: self.scope,
            wait_hint: hint.or(self.wait),
            reason: Cow::Owned(self.name.clone()),
            rule: Cow::Owned(joined(&[owner, ".", &self.name])),
        }
    }
}

/// The first rule that holds.
pub(crate) fn find<'a>(rules: &'a [CustomRule], status: u16, facts: &Facts) -> Option<&'a CustomRule> {
    rules.iter().find(|rule| rule.holds(status, facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> String {
        CustomRule::parse_all(json).unwrap_err().to_string()
    }

    #[test]
    fn a_rule_says_what_it_matches_and_what_follows() {
        let rules = CustomRule::parse_all(
            r#"[{"name":"wrapped","status":[400,"500-599","4xx"],"text":"Upstream request failed","class":"server_error","scope":"model","waitMs":2000}]"#,
        )
        .unwrap();
        let facts =
            Facts::of_body(crate::headers::Headers::EMPTY, br#"{"error":{"message":"Upstream request failed"}}"#);
        let verdict = find(&rules, 400, &facts).unwrap().classification("gw", None);
        assert_eq!((verdict.class, verdict.retryable, verdict.scope), (ErrorClass::ServerError, true, Scope::Model));
        assert_eq!((verdict.wait_hint, &*verdict.rule), (Some(Millis(2000)), "gw.wrapped"));
        assert!(find(&rules, 200, &facts).is_none());
    }

    #[test]
    fn a_mistake_is_told_with_its_path_and_what_is_expected() {
        assert_eq!(
            error(r#"[{"status":[400,99],"class":"unknown"}]"#),
            "[0].status[1]: expected a status of 100 to 599, a range \"500-599\", or a family \"5xx\", got 99"
        );
        assert_eq!(
            error(r#"[{"status":429}]"#),
            "[0].class: expected an error class, e.g. \"server_error\", got nothing"
        );
        assert_eq!(
            error(r#"[{"status":429,"class":"rate limited"}]"#),
            "[0].class: expected an error class, e.g. \"rate_limited\" or \"server_error\", got \"rate limited\""
        );
        assert_eq!(
            error(r#"[{"class":"unknown"}]"#),
            "[0]: expected at least one of status, code and text, got {\"class\":\"unknown\"}"
        );
        assert_eq!(
            error(r#"[{"status":429,"class":"unknown","wait":5}]"#),
            "[0].wait: expected one of name, status, code, type, text, class, scope, retryable, waitMs, got 5"
        );
        assert_eq!(
            error(r#"[{"status":429,"class":"unknown","waitMs":-5}]"#),
            "[0].waitMs: expected milliseconds, 0 to a year, got -5"
        );
        assert_eq!(error(r#"{"a":1}"#), "rules: expected a JSON array of rules, at most 256 KiB, got {\"a\":1}");
        assert_eq!(error("[{"), "rules: expected a JSON array of rules, at most 256 KiB, got [{");
    }
}
