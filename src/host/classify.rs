//! Classification alone, for the command line: one failure in, its verdict and what a keel would do about it out. Flat
//! and without state, as everything in [`host`](super).

#![allow(unreachable_pub, reason = "wasm-bindgen exports public items only")]

use super::{FIELDS, to_u64};
use crate::classify::{CustomRule, Signal, TransportError};
use crate::headers::Headers;
use crate::ledger::FIELD;
use crate::outlook::outlook;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::request::target;
use crate::text;
use crate::time::Instant;
use wasm_bindgen::prelude::*;

/// Judges an answer, or its absence.
///
/// `facts` is provider, protocol, URL and a user's own rules as JSON, packed; each is "" where nothing is known, and a
/// protocol that is not given is read from the URL. `status` 0: there was no answer. `errors` is packed as for
/// [`Core::transport`](super::Core::transport). Answers with class, retryable, scope, wait hint, reason, rule, action,
/// limit and committed, packed; with "" for a success, and with what is wrong with the rules, unpacked.
#[wasm_bindgen]
#[must_use]
pub fn classify(now: f64, facts: &str, status: u16, headers: &str, body: &[u8], stream: bool, errors: &str) -> String {
    let mut fields = text::pieces(facts, FIELDS);
    let mut field = || fields.next().unwrap_or("");
    let (provider, protocol, url, rules) = (field(), field(), field(), field());
    let custom = match if rules.is_empty() { Ok(Vec::new()) } else { CustomRule::parse_all(rules) } {
        Ok(custom) => custom,
        Err(error) => return error.message(),
    };
    let mut out = String::new();
    let found = outlook(&Signal {
        provider,
        protocol: Protocol::from_name(protocol).unwrap_or_else(|| target(url).protocol),
        url,
        status: (status != 0).then_some(status),
        headers: Headers(headers),
        body,
        stream,
        error: (!errors.is_empty()).then_some(TransportError(errors)),
        custom: &custom,
        now: Instant(to_u64(now)),
    });
    let Some(found) = found else { return out };
    super::push_verdict(&mut out, &found.verdict);
    for field in [
        found.action.name(),
        found.limit.map_or("", crate::call::Final::reason),
        if found.committed { "1" } else { "" },
    ] {
        out.push_str(field);
        out.push(FIELD);
    }
    out
}
