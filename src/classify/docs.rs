//! Every rule, for people: what `docs/classification.md` and `evenkeel explain` are made of.

use super::inband::FINISHES;
use super::rule::{Cond, Rule};
use super::transport::{self, TransportRule};
use super::{edge, http, providers};
use crate::class::{ErrorClass, Scope};

/// One rule as it is shown.
#[derive(Clone, Debug)]
pub struct RuleDoc {
    /// `openai.insufficient_quota`.
    pub id: String,
    /// What it matches, in words.
    pub matches: String,
    /// What it means.
    pub class: ErrorClass,
    /// What it speaks of.
    pub scope: Scope,
    /// Whether the same call would plausibly succeed soon.
    pub retryable: bool,
    /// Where it is documented or was seen.
    pub source: &'static str,
    /// What a person should do.
    pub advice: &'static str,
}

/// What a person should do about a failure of that class.
#[must_use]
pub const fn advice(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::BadRequest => "change the request: sent again as it is, it fails again",
        ErrorClass::AuthError => "fix the key",
        ErrorClass::PermissionError => "ask for access, or use another key",
        ErrorClass::NotFound => "check the model's name and the URL",
        ErrorClass::RequestTooLarge => "shorten the prompt, or use a model with a larger context",
        ErrorClass::ContentFiltered => "change the prompt",
        ErrorClass::RateLimited => "nothing: wait; ask for a higher limit if it happens often",
        ErrorClass::QuotaExhausted => "pay, ask for quota, or use another account: waiting minutes doesn't help",
        ErrorClass::Overloaded => "nothing: wait, or use another model or provider",
        ErrorClass::ServerError => "nothing: a retry often passes; look at the provider's status page if it doesn't",
        ErrorClass::Timeout => "stream the answer, ask for less, or allow more time",
        ErrorClass::ConnectionError => "check the network and the URL if it lasts",
        ErrorClass::StreamInterrupted => "nothing: ask again; what has been shown is incomplete",
        ErrorClass::Cancelled => "nothing: someone gave up waiting",
        ErrorClass::Unknown => "look at the answer: no rule knows it",
    }
}

fn words(out: &mut String, label: &str, items: &str) {
    if items.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push_str("; ");
    }
    out.push_str(label);
    for (at, item) in items.split('|').enumerate() {
        if at > 0 {
            out.push_str(" or");
        }
        out.push_str(" `");
        // A code span ends at a backtick; the texts that hold one are shown with an apostrophe.
        out.extend(item.chars().map(|c| if c == '`' { '\'' } else { c }));
        out.push('`');
    }
}

fn matches(rule: &Rule) -> String {
    let mut out = String::new();
    let statuses: Vec<String> =
        rule.on.status.iter().map(|s| if *s < 10 { format!("{s}xx") } else { s.to_string() }).collect();
    out.push_str(&statuses.join(", "));
    words(&mut out, "code", rule.on.code);
    words(&mut out, "text", rule.on.text);
    words(&mut out, "not", rule.on.unless);
    let cond = match rule.on.when {
        Cond::Always => None,
        Cond::NotJson => Some("a page or bare text".to_owned()),
        Cond::NeverFits => Some("requested is more than the limit".to_owned()),
        Cond::WaitHours(hours) => Some(format!("a wait of {hours} hours or more")),
        Cond::Hinted => Some("a wait hint".to_owned()),
        Cond::BotCheck => Some("header `cf-mitigated: challenge`".to_owned()),
        Cond::PlanRejected => Some("header `anthropic-ratelimit-unified-status: rejected`".to_owned()),
    };
    if let Some(cond) = cond {
        if !out.is_empty() {
            out.push_str("; ");
        }
        out.push_str(&cond);
    }
    out
}

fn of_rule(table: &str, rule: &Rule, source: &'static str) -> RuleDoc {
    RuleDoc {
        id: [table, ".", rule.name].concat(),
        matches: matches(rule),
        class: rule.class,
        scope: rule.scope,
        retryable: rule.retry.unwrap_or_else(|| rule.class.may_retry_same_target()),
        source: if rule.source.is_empty() { source } else { rule.source },
        advice: if rule.advice.is_empty() { advice(rule.class) } else { rule.advice },
    }
}

fn of_transport(rule: &TransportRule) -> RuleDoc {
    let mut what = String::new();
    words(&mut what, "code or name", rule.codes);
    words(&mut what, "message", rule.texts);
    RuleDoc {
        id: ["transport.", rule.name].concat(),
        matches: what,
        class: rule.class,
        scope: rule.scope,
        retryable: rule.retry,
        source: "undici, Node, Bun, Deno, workerd and browser sources",
        advice: advice(rule.class),
    }
}

/// What in-band verdicts without a rule of their own mean: name, what was seen, class, scope, retryable.
const IN_BAND: &[(&str, &str, ErrorClass, Scope, bool)] = &[
    (
        "cut_answer",
        "an HTTP 200 whose JSON or stream ends before its meaning does",
        ErrorClass::ConnectionError,
        Scope::Provider,
        true,
    ),
    ("no_answer", "an HTTP 200 with nothing in it", ErrorClass::ConnectionError, Scope::Provider, true),
    (
        "only_keep_alives",
        "an HTTP 200 of blank lines, then the end (DeepSeek under load)",
        ErrorClass::Timeout,
        Scope::Provider,
        true,
    ),
    (
        "silent_answer",
        "a chat stream that ends with `stop` and has said nothing (LM Studio, overflow)",
        ErrorClass::Unknown,
        Scope::Request,
        false,
    ),
    (
        "page_instead_of_answer",
        "an HTTP 200 with an HTML page (a login, a proxy)",
        ErrorClass::Unknown,
        Scope::Provider,
        true,
    ),
    ("unknown_error", "an error that no rule knows", ErrorClass::Unknown, Scope::Provider, true),
];

/// Every rule: providers by name, then edge pages, generic rules, answers inside an HTTP 200, transport errors.
#[must_use]
pub fn all() -> Vec<RuleDoc> {
    let mut out: Vec<RuleDoc> = Vec::new();
    for provider in providers::all() {
        out.extend(provider.rules.rules.iter().map(|rule| of_rule(provider.name, rule, provider.source)));
    }
    out.extend(edge::RULES.iter().map(|rule| of_rule("edge", rule, edge::SOURCE)));
    out.extend(http::RULES.iter().map(|rule| of_rule("generic", rule, http::SOURCE)));
    out.extend(FINISHES.iter().map(|finish| {
        let mut what = String::new();
        words(&mut what, "finish reason", finish.reasons);
        RuleDoc {
            id: ["generic.", finish.name].concat(),
            matches: what,
            class: finish.class,
            scope: finish.scope,
            retryable: finish.retry,
            source: finish.source,
            advice: advice(finish.class),
        }
    }));
    out.extend(IN_BAND.iter().map(|(name, what, class, scope, retryable)| RuleDoc {
        id: ["generic.", name].concat(),
        matches: (*what).to_owned(),
        class: *class,
        scope: *scope,
        retryable: *retryable,
        source: "docs/streams.md: endings",
        advice: advice(*class),
    }));
    out.extend(transport::RULES.iter().map(of_transport));
    out.push(RuleDoc { matches: "any other error".to_owned(), ..of_transport(&transport::UNKNOWN) });
    out
}

/// The rule of that id, e.g. `openai.insufficient_quota`; `None` for a user's own.
#[must_use]
pub fn find(id: &str) -> Option<RuleDoc> {
    all().into_iter().find(|rule| rule.id == id)
}
