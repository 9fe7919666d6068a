//! The shape of a body that no rule knows: its member names and codes, none of its texts.
//!
//! Two errors of one kind have the same fingerprint, so that a vendor's new error can be counted and shown, and a rule be
//! written for it, without a word of a prompt leaving. Only values that look like codes stand in it: lower-case words
//! and numbers of members that name an error (`code`, `type`, `status`, `reason`).

use super::facts::LOOK;
use crate::json::{Kind, Value};
use crate::prelude::*;
use crate::text::decimal;

const MAX: usize = 160;
const MAX_DEPTH: u8 = 3;

/// E.g. `503 {error:{code=weird_thing,message:s,type=new_error}}`; at most 160 bytes, printable ASCII.
#[must_use]
pub fn fingerprint(status: Option<u16>, body: &[u8]) -> String {
    let body = body.get(..LOOK).unwrap_or(body);
    let mut out = status.map_or_else(|| String::from("-"), |s| decimal(Some(s.into())));
    out.push(' ');
    match Value::parse(body) {
        None => out.push_str("empty"),
        Some(value) => match value.kind() {
            Kind::Object | Kind::Array | Kind::String => shape(&mut out, value, 0),
            _ if body.trim_ascii_start().starts_with(b"<") => out.push_str("page"),
            _ => out.push_str("text"),
        },
    }
    out.truncate(MAX);
    out
}

fn is_word(text: &str) -> bool {
    (1..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

fn shape(out: &mut String, value: Value<'_>, depth: u8) {
    match value.kind() {
        Kind::Object if depth < MAX_DEPTH => {
            out.push('{');
            let mut first = true;
            for (name, value) in value.members().take(12) {
                if out.len() > MAX {
                    return;
                }
                if !first {
                    out.push(',');
                }
                first = false;
                // A name may hold anything, a prompt's text too; only words are names.
                let name = core::str::from_utf8(name).ok().filter(|n| is_word(n)).unwrap_or("?");
                out.push_str(name);
                let word = value.scalar().filter(|t| is_word(t) && value.kind() != Kind::Null);
                if let ("code" | "type" | "status" | "reason" | "error_type" | "error_code", Some(word)) = (name, word)
                {
                    out.push('=');
                    out.push_str(word);
                } else {
                    out.push(':');
                    shape(out, value, depth.saturating_add(1));
                }
            }
            out.push('}');
        }
        Kind::Array if depth < MAX_DEPTH => {
            out.push('[');
            if let Some(first) = value.items().next() {
                shape(out, first, depth.saturating_add(1));
            }
            out.push(']');
        }
        Kind::Object => out.push('o'),
        Kind::Array => out.push('a'),
        Kind::String => out.push('s'),
        Kind::Number => out.push('n'),
        Kind::Bool => out.push('b'),
        Kind::Null | Kind::Other => out.push('-'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_names_and_codes_and_no_texts() {
        let body = br#"{"error":{"message":"secret prompt","type":"new_error","code":17,"param":null,"my secret":[{"a":1}]},"status":"two words"}"#;
        assert_eq!(
            fingerprint(Some(503), body),
            "503 {error:{message:s,type=new_error,code=17,param:-,?:[o]},status:s}"
        );
        assert_eq!(fingerprint(None, b""), "- empty");
        assert_eq!(fingerprint(Some(502), b"<html>secret"), "502 page");
        assert_eq!(fingerprint(Some(502), b"secret"), "502 text");
    }

    #[test]
    fn it_is_bounded_whatever_the_body_is() {
        let wide = format!(
            "{{{}}}",
            (0..500).map(|n| format!("\"name_number_{n}\":\"{}\"", "x".repeat(500))).collect::<Vec<_>>().join(",")
        );
        assert!(fingerprint(Some(500), wide.as_bytes()).len() <= 160);
        assert!(fingerprint(Some(500), &vec![b'['; 1 << 20]).len() <= 160);
    }
}
