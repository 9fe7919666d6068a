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
    /// Any of these words among the body's codes, lower case, separated by `|`. Empty: any.
    pub code: &'static str,
    /// Any of these texts, lower case, separated by `|`; `*` stands for anything between, a leading `^` for the start.
    /// Empty: any.
    pub text: &'static str,
    /// None of these texts.
    pub unless: &'static str,
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
    WaitHours(u8),
    /// There is a wait hint.
    Hinted,
    /// Cloudflare says that it answered with a bot check: `cf-mitigated: challenge`.
    BotCheck,
    /// A plan's window is used up: `anthropic-ratelimit-unified-status: rejected`.
    PlanRejected,
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
    /// table's own source. Not in the wasm, which has no one to tell: `rules.json` is made from it natively.
    #[cfg(not(target_arch = "wasm32"))]
    pub source: &'static str,
    /// What the person should do, where it is not what the class says.
    #[cfg(not(target_arch = "wasm32"))]
    pub advice: &'static str,
}

/// A match on statuses; none given means any.
#[must_use]
pub const fn on(status: &'static [u16]) -> Match {
    Match { status, code: "", text: "", unless: "", when: Cond::Always }
}

impl Match {
    /// … and any of these codes.
    #[must_use]
    pub const fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// … and any of these texts.
    #[must_use]
    pub const fn text(self, text: &'static str) -> Self {
        Self { text, ..self }
    }

    /// … and none of these texts.
    #[must_use]
    pub const fn unless(self, unless: &'static str) -> Self {
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
    Rule {
        name,
        on,
        class,
        scope,
        retry: None,
        #[cfg(not(target_arch = "wasm32"))]
        source: "",
        #[cfg(not(target_arch = "wasm32"))]
        advice: "",
    }
}

impl Rule {
    /// … whose retryability is not that of its class.
    #[must_use]
    pub const fn retry(self, retry: bool) -> Self {
        Self { retry: Some(retry), ..self }
    }

    /// … which is documented there.
    #[must_use]
    #[cfg(not(target_arch = "wasm32"))]
    pub const fn from(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// … which is documented there.
    #[must_use]
    #[cfg(target_arch = "wasm32")]
    pub const fn from(self, _: &'static str) -> Self {
        self
    }

    /// … for which a person should do this.
    #[must_use]
    #[cfg(not(target_arch = "wasm32"))]
    pub const fn advice(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }

    /// … for which a person should do this.
    #[must_use]
    #[cfg(target_arch = "wasm32")]
    pub const fn advice(self, _: &'static str) -> Self {
        self
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
            && (self.text.is_empty() || facts.says_any(self.text))
            && (self.unless.is_empty() || !facts.says_any(self.unless))
    }
}

impl Cond {
    fn holds(self, subject: &Subject<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::NotJson => matches!(subject.facts.shape, Shape::Html | Shape::Text),
            Self::NeverFits => subject.facts.never_fits(),
            Self::WaitHours(hours) => {
                subject.hint_ms.is_some_and(|ms| ms >= u64::from(hours).saturating_mul(3_600_000))
            }
            Self::Hinted => subject.hint_ms.is_some(),
            Self::BotCheck => has_header(subject.headers, "cf-mitigated", "challenge"),
            Self::PlanRejected => has_header(subject.headers, "anthropic-ratelimit-unified-status", "rejected"),
        }
    }
}

fn has_header(headers: Headers<'_>, name: &str, value: &str) -> bool {
    headers.get(name).is_some_and(|v| v.eq_ignore_ascii_case(value))
}
