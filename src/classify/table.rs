//! A rule table as one string, packed when the crate is compiled.
//!
//! A table of structs costs a wasm several pointers a rule, which don't compress. Packed, a rule is a head of eleven
//! bytes, its statuses and its texts, one after another; it is read where it lies. All bytes are ASCII, so the whole is
//! a `&str` and its parts are cut out by length without being checked again. Natively the structs are kept beside it,
//! for the documentation.
//!
//! Head: class, scope and retry, condition, statuses (number), then the lengths of name, code, text and unless, the
//! last three in two bytes of seven bits. A status is two bytes of seven bits; a word has its length before it.

use super::rule::{Cond, Match, Rule, Subject};
use crate::class::{ErrorClass, Scope};

const HEAD: usize = 11;
const SCOPES: [Scope; 5] = [Scope::Request, Scope::Key, Scope::Bucket, Scope::Model, Scope::Provider];
/// Where the hours of [`Cond::WaitHours`] begin.
const HOURS: u8 = 16;

/// A table of rules.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    packed: &'static str,
    /// The rules themselves, for the documentation.
    #[cfg(not(target_arch = "wasm32"))]
    pub rules: &'static [Rule],
}

/// What follows from the rule that matched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) name: &'static str,
    pub(crate) class: ErrorClass,
    pub(crate) scope: Scope,
    pub(crate) retry: Option<bool>,
}

/// The packed length of a list of words: each has its length before it.
const fn list_len(list: &str) -> usize {
    if list.is_empty() { 0 } else { list.len().saturating_add(1) }
}

/// How many bytes the packed rules take.
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "const: a mistake doesn't compile")]
#[must_use]
pub const fn packed_len(rules: &[Rule]) -> usize {
    let (mut at, mut len) = (0, 0);
    while at < rules.len() {
        let rule = &rules[at];
        let lists = list_len(rule.on.code) + list_len(rule.on.text) + list_len(rule.on.unless);
        len += HEAD + 2 * rule.on.status.len() + rule.name.len() + lists;
        at += 1;
    }
    len
}

/// The rules as bytes; `N` is [`packed_len`].
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "const: a mistake doesn't compile, and the tests read every rule back"
)]
#[must_use]
pub const fn pack<const N: usize>(rules: &[Rule]) -> [u8; N] {
    let mut out = [0_u8; N];
    let (mut at, mut to) = (0, 0);
    while at < rules.len() {
        let rule = &rules[at];
        let on = &rule.on;
        let retry = match rule.retry {
            None => 0_u8,
            Some(false) => 1,
            Some(true) => 2,
        };
        let when = match on.when {
            Cond::Always => 0,
            Cond::NotJson => 1,
            Cond::NeverFits => 2,
            Cond::Hinted => 3,
            Cond::BotCheck => 4,
            Cond::PlanRejected => 5,
            Cond::WaitHours(hours) => HOURS + hours,
        };
        let texts = [rule.name, on.code, on.text, on.unless];
        out[to] = rule.class as u8;
        out[to + 1] = (rule.scope as u8) | (retry << 3);
        out[to + 2] = when;
        out[to + 3] = on.status.len() as u8;
        out[to + 4] = rule.name.len() as u8;
        let mut n = 1;
        while n < 4 {
            out[to + 3 + 2 * n] = (list_len(texts[n]) >> 7) as u8;
            out[to + 4 + 2 * n] = (list_len(texts[n]) & 127) as u8;
            n += 1;
        }
        to += HEAD;
        n = 0;
        while n < on.status.len() {
            out[to] = (on.status[n] >> 7) as u8;
            out[to + 1] = (on.status[n] & 127) as u8;
            to += 2;
            n += 1;
        }
        n = 0;
        while n < 4 {
            let bytes = texts[n].as_bytes();
            let (mut byte, mut length_at) = (0, to);
            if n > 0 && !bytes.is_empty() {
                to += 1;
            }
            while byte < bytes.len() {
                if n > 0 && bytes[byte] == b'|' {
                    length_at = to;
                } else {
                    out[to] = bytes[byte];
                    if n > 0 {
                        out[length_at] += 1;
                    }
                }
                to += 1;
                byte += 1;
            }
            n += 1;
        }
        at += 1;
    }
    out
}

/// The words of a packed list.
#[derive(Clone)]
pub(crate) struct Words(&'static str);

impl Words {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Iterator for Words {
    type Item = &'static str;

    fn next(&mut self) -> Option<&'static str> {
        let (length, rest) = self.0.split_at_checked(1)?;
        let length = length.bytes().next().map(usize::from)?;
        let (word, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(word)
    }
}

/// Packs a constant `&[Rule]` into a [`Table`].
macro_rules! table {
    ($rules:expr) => {{
        const BYTES: [u8; $crate::classify::table::packed_len($rules)] = $crate::classify::table::pack($rules);
        $crate::classify::table::Table::new(&BYTES, $rules)
    }};
}
pub(crate) use table;

impl Table {
    /// No rules.
    pub const EMPTY: Self = Self::new(&[], &[]);

    /// A table of packed bytes and the rules they were made from.
    #[must_use]
    #[cfg_attr(target_arch = "wasm32", allow(unused_variables, reason = "only the packed form is kept"))]
    pub const fn new(bytes: &'static [u8], rules: &'static [Rule]) -> Self {
        let packed = match core::str::from_utf8(bytes) {
            Ok(packed) => packed,
            Err(_) => "",
        };
        Self {
            packed,
            #[cfg(not(target_arch = "wasm32"))]
            rules,
        }
    }

    /// The first rule that holds; with `by_words` only one that asks for a code or a text.
    pub(crate) fn find(self, subject: &Subject<'_>, by_words: bool) -> Option<Verdict> {
        let mut rest = self.packed;
        while let Some(&[class, scope, when, statuses, name, c1, c0, t1, t0, u1, u0]) = rest.as_bytes().first_chunk() {
            let long = |high: u8, low: u8| (usize::from(high) << 7) | usize::from(low);
            let (statuses, name) = (usize::from(statuses) << 1, usize::from(name));
            let (code, text, unless) = (long(c1, c0), long(t1, t0), long(u1, u0));
            let words_at = HEAD.wrapping_add(statuses).wrapping_add(name);
            let end = words_at.wrapping_add(code).wrapping_add(text).wrapping_add(unless);
            let (this, after) = rest.split_at_checked(end)?;
            rest = after;
            // Most rules are passed over by their statuses, before anything of them is cut out.
            let listed = this.as_bytes().get(HEAD..HEAD.wrapping_add(statuses))?;
            if (by_words && code == 0 && text == 0) || !status_in(subject.status, listed) {
                continue;
            }
            let (head, words) = this.split_at_checked(words_at)?;
            let (_, name) = head.split_at_checked(HEAD.wrapping_add(statuses))?;
            let (code, words) = words.split_at_checked(code)?;
            let (text, unless) = words.split_at_checked(text)?;
            if Match::words_hold(Words(code), Words(text), Words(unless), cond(when), subject) {
                return Some(Verdict {
                    name,
                    class: ErrorClass::all().nth(usize::from(class)).unwrap_or(ErrorClass::Unknown),
                    scope: SCOPES.get(usize::from(scope & 7)).copied().unwrap_or(Scope::Provider),
                    retry: match scope >> 3 {
                        0 => None,
                        retry => Some(retry == 2),
                    },
                });
            }
        }
        None
    }
}

/// Whether `status` is one of the packed ones, of which 3, 4 and 5 stand for their hundreds. None: any.
fn status_in(status: u16, packed: &[u8]) -> bool {
    let family = status.checked_div(100).unwrap_or_default();
    packed.is_empty()
        || packed.as_chunks::<2>().0.iter().any(|[high, low]| {
            let listed = (u16::from(*high) << 7) | u16::from(*low);
            listed == status || listed == family
        })
}

const fn cond(byte: u8) -> Cond {
    match byte {
        0 => Cond::Always,
        1 => Cond::NotJson,
        2 => Cond::NeverFits,
        3 => Cond::Hinted,
        4 => Cond::BotCheck,
        5 => Cond::PlanRejected,
        hours => Cond::WaitHours(hours.saturating_sub(HOURS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::facts::Facts;
    use crate::classify::rule::{on, rule};
    use crate::headers::Headers;

    const RULES: &[Rule] = &[
        rule(
            "a",
            on(&[429, 503]).code("x|y").text("some text").unless("not this"),
            ErrorClass::Overloaded,
            Scope::Model,
        )
        .retry(false),
        rule("b", on(&[4]).when(Cond::WaitHours(6)), ErrorClass::QuotaExhausted, Scope::Bucket).retry(true),
        rule("c", on(&[]), ErrorClass::Unknown, Scope::Provider),
    ];

    #[test]
    fn what_is_packed_is_found_as_it_was_written() {
        const TABLE: Table = table!(RULES);
        let of = |status, body: &str, hint_ms| {
            let facts = Facts::of_body(Headers::EMPTY, body.as_bytes());
            let found =
                TABLE.find(&Subject { status, facts: &facts, headers: Headers::EMPTY, hint_ms }, false).unwrap();
            (found.name, found.class, found.scope, found.retry)
        };
        assert_eq!(
            of(503, r#"{"code":"y","message":"Some text"}"#, None),
            ("a", ErrorClass::Overloaded, Scope::Model, Some(false))
        );
        assert_eq!(of(503, r#"{"code":"y","message":"Some text, not this"}"#, None).0, "c");
        assert_eq!(of(418, "", Some(6 * 3_600_000)), ("b", ErrorClass::QuotaExhausted, Scope::Bucket, Some(true)));
        assert_eq!(of(418, "", Some(6 * 3_600_000 - 1)), ("c", ErrorClass::Unknown, Scope::Provider, None));
    }

    #[test]
    fn every_class_and_scope_survives_being_a_number() {
        for (at, class) in ErrorClass::all().enumerate() {
            assert_eq!(class as usize, at);
        }
        for (at, scope) in SCOPES.into_iter().enumerate() {
            assert_eq!(scope as usize, at);
        }
    }
}
