//! The form of a rule: what is matched, what it means, where that is documented.
//!
//! Rules are constants, one a line, read from the top; the first that matches wins. Order of evidence: status, then the
//! codes of the body (any member that names the error by a word), and text only to refine within them. Texts are
//! matched in lower case, outside of quotations, so that a prompt echoed in a validation error proves nothing.

use super::facts::{Facts, Shape};
use crate::class::{ErrorClass, Scope};
use crate::headers::Headers;

/// What a rule asks of a failure. All that is given must hold.
#[derive(Clone, Copy, Debug)]
pub struct Match {
    /// Any of these statuses; 4 stands for all of 400–499 and 5 for all of 500–599. Empty: any.
    pub status: &'static [u16],
    /// Any of these words among the body's codes, lower case. Empty: any.
    pub code: &'static [&'static str],
    /// Any of these texts, lower case; `*` stands for anything between, a leading `^` for the start. Empty: any.
    pub text: &'static [&'static str],
    /// None of these texts.
    pub unless: &'static [&'static str],
    /// A condition of another kind.
    pub when: Cond,
}

/// What else a rule may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cond {
    /// Nothing.
    Always,
    /// The body is an HTML page or bare text: it comes from something in between.
    NotJson,
    /// The request is larger than the whole limit: `Limit 7000, … Requested 12903`.
    NeverFits,
    /// The wait hint is at least this many hours.
    WaitHours(u64),
    /// There is a wait hint.
    Hinted,
    /// This header is there, with a value that contains the text (lower case).
    Header(&'static str, &'static str),
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Unique within its table, `snake_case`.
    pub name: &'static str,
    /// What is matched.
    pub on: Match,
    /// What it is.
    pub class: ErrorClass,
    /// What it speaks of.
    pub scope: Scope,
    /// Whether the same call would plausibly succeed soon; `None`: as the class has it.
    pub retry: Option<bool>,
    /// Where this is documented or was seen: a URL without its scheme, a repository path or an issue. Empty: the
    /// table's own source.
    pub source: &'static str,
    /// What the person should do, where it is not what the class says.
    pub advice: &'static str,
}

/// A match on statuses; none given means any.
#[must_use]
pub const fn on(status: &'static [u16]) -> Match {
    Match { status, code: &[], text: &[], unless: &[], when: Cond::Always }
}

impl Match {
    /// … and any of these codes.
    #[must_use]
    pub const fn code(self, code: &'static [&'static str]) -> Self {
        Self { code, ..self }
    }

    /// … and any of these texts.
    #[must_use]
    pub const fn text(self, text: &'static [&'static str]) -> Self {
        Self { text, ..self }
    }

    /// … and none of these texts.
    #[must_use]
    pub const fn unless(self, unless: &'static [&'static str]) -> Self {
        Self { unless, ..self }
    }

    /// … and this condition.
    #[must_use]
    pub const fn when(self, when: Cond) -> Self {
        Self { when, ..self }
    }
}

/// A rule: name, what is matched, class, scope.
#[must_use]
pub const fn rule(name: &'static str, on: Match, class: ErrorClass, scope: Scope) -> Rule {
    Rule { name, on, class, scope, retry: None, source: "", advice: "" }
}

impl Rule {
    /// … whose retryability is not that of its class.
    #[must_use]
    pub const fn retry(self, retry: bool) -> Self {
        Self { retry: Some(retry), ..self }
    }

    /// … which is documented there.
    #[must_use]
    pub const fn from(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// … for which a person should do this.
    #[must_use]
    pub const fn advice(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }
}

/// What rules are tried against.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The status; for an error inside an HTTP 200 that of its twin; 0 if there is none.
    pub(crate) status: u16,
    pub(crate) facts: &'a Facts,
    pub(crate) headers: Headers<'a>,
    pub(crate) hint_ms: Option<u64>,
}

/// Whether `status` is one of `list`, where 4 and 5 stand for their hundreds.
pub(crate) fn status_in(status: u16, list: &[u16]) -> bool {
    let family = status.checked_div(100).unwrap_or_default();
    list.iter().any(|s| *s == status || *s == family)
}

impl Match {
    /// Whether it asks for a code or a text.
    pub(crate) const fn has_words(&self) -> bool {
        !self.code.is_empty() || !self.text.is_empty()
    }

    pub(crate) fn holds(&self, subject: &Subject<'_>) -> bool {
        let facts = subject.facts;
        (self.status.is_empty() || status_in(subject.status, self.status))
            && (self.code.is_empty() || facts.has_any_code(self.code))
            && self.when.holds(subject)
            && (self.text.is_empty() || self.text.iter().any(|t| facts.says(t)))
            && !self.unless.iter().any(|t| facts.says(t))
    }
}

impl Cond {
    fn holds(self, subject: &Subject<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::NotJson => matches!(subject.facts.shape, Shape::Html | Shape::Text),
            Self::NeverFits => subject.facts.never_fits(),
            Self::WaitHours(hours) => subject.hint_ms.is_some_and(|ms| ms >= hours.saturating_mul(3_600_000)),
            Self::Hinted => subject.hint_ms.is_some(),
            Self::Header(name, value) => {
                subject.headers.get(name).is_some_and(|v| v.to_ascii_lowercase().contains(value))
            }
        }
    }
}
