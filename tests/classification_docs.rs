//! `docs/classification.md` and the command line's `pkg/src/cli/rules.ts` are written from the rules, and the rules are
//! fit to be read.
//!
//! `EVENKEEL_WRITE_DOCS=1 cargo test --test classification_docs` writes the files; without it the tests say whether they
//! are fresh.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use evenkeel::class::ErrorClass;
use evenkeel::classify::docs::{self, advice};
use evenkeel::classify::{edge, http, providers};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "# Classification\n\n\
<!-- Written from the rules by `EVENKEEL_WRITE_DOCS=1 cargo test --test classification_docs`. Don't edit. -->\n\n\
What evenkeel takes a failure for. A provider's own rules are tried from the top, then those of the provider whose\n\
protocol it speaks, then the generic ones; the first that matches wins. Pages from something in between are told before\n\
that when the body is no JSON. An error inside an HTTP 200 is what its twin with a status would be. `4xx` and `5xx` stand\n\
for all statuses of their hundred. Texts are matched in lower case, outside of quotations; `*` stands for anything\n\
between, a leading `^` for the start.\n";

fn page() -> String {
    let mut out = String::from(HEAD);
    out.push_str("\n## Classes\n\n| class | the same call again | what a person should do |\n| --- | --- | --- |\n");
    for class in ErrorClass::all() {
        let again = if class.may_retry_same_target() { "may pass" } else { "fails again" };
        writeln!(out, "| `{}` | {again} | {} |", class.name(), advice(class)).unwrap();
    }
    let mut table = String::new();
    for rule in docs::all() {
        let (owner, name) = rule.id.rsplit_once('.').unwrap();
        if owner != table {
            owner.clone_into(&mut table);
            let base = providers::by_name(owner).map(|p| p.base).filter(|b| !b.is_empty());
            write!(out, "\n## {owner}\n\n").unwrap();
            if let Some(hosts) = providers::by_name(owner).map(|p| p.hosts).filter(|h| !h.is_empty()) {
                writeln!(out, "Hosts: `{}`.", hosts.join("`, `")).unwrap();
            }
            if let Some(base) = base {
                writeln!(out, "Then the rules of {base}.").unwrap();
            }
            out.push_str("\n| rule | matches | class | scope | retry | what to do | source |\n| --- | --- | --- | --- | --- | --- | --- |\n");
        }
        let retry = if rule.retryable { "yes" } else { "no" };
        let row = [name, &rule.matches, rule.class.name(), rule.scope.name(), retry, rule.advice, rule.source];
        writeln!(out, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | ")).unwrap();
    }
    out
}

/// The rules as the command line shows them; the wasm has neither their sources nor their advice.
fn module() -> String {
    let mut out = String::from(
        "// Written from the rules by `EVENKEEL_WRITE_DOCS=1 cargo test --test classification_docs`. Don't edit.\n\n\
        /** What each rule matches, where it comes from, and what a person should do. */\n\
        export const RULES: Readonly<Record<string, readonly [matches: string, source: string, advice: string]>> = {\n",
    );
    for rule in docs::all() {
        let text = [&*rule.matches, rule.source, rule.advice].map(|t| serde_json::to_string(t).unwrap()).join(", ");
        writeln!(out, "  \"{}\": [{text}],", rule.id).unwrap();
    }
    out.push_str("};\n\n/** Every provider by name, with its hosts. */\n");
    out.push_str("export const PROVIDERS: Readonly<Record<string, readonly string[]>> = {\n");
    for provider in providers::all() {
        writeln!(out, "  \"{}\": {},", provider.name, serde_json::to_string(provider.hosts).unwrap()).unwrap();
    }
    out.push_str("};\n");
    out
}

/// Compares a file with what it should be, or writes it.
fn check(file: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("EVENKEEL_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{file} is stale: EVENKEEL_WRITE_DOCS=1 cargo test --test classification_docs");
}

#[test]
fn the_table_of_all_rules_is_fresh() {
    check("docs/classification.md", &page());
}

#[test]
fn the_rules_of_the_command_line_are_fresh() {
    // The crate is packed without the npm package.
    if Path::new(env!("CARGO_MANIFEST_DIR")).join("pkg").exists() {
        check("pkg/src/cli/rules.ts", &module());
    }
}

#[test]
fn every_rule_has_a_source_and_a_name_of_its_own() {
    let mut seen = BTreeSet::new();
    for rule in docs::all() {
        assert!(!rule.source.is_empty(), "{} has no source", rule.id);
        assert!(!rule.matches.is_empty(), "{} matches everything", rule.id);
        assert!(
            rule.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'.' | b'-')),
            "{}",
            rule.id
        );
        assert_eq!(
            docs::find(&rule.id).map(|r| r.matches).as_deref(),
            Some(&*rule.matches),
            "{} is there twice",
            rule.id
        );
        assert!(seen.insert(rule.id));
    }
    assert!(docs::find("nobody.knows").is_none());
}

#[test]
fn codes_and_texts_are_lower_case_since_bodies_are_compared_so() {
    let tables =
        providers::all().map(|p| (p.name, p.rules.rules)).chain([("edge", edge::RULES), ("generic", http::RULES)]);
    for (table, rules) in tables {
        for rule in rules {
            for words in [rule.on.code, rule.on.text, rule.on.unless] {
                assert!(words.is_ascii(), "{table}.{} can't be packed", rule.name);
                assert_eq!(words, words.to_ascii_lowercase(), "{table}.{}", rule.name);
                assert!(words.is_empty() || words.split('|').all(|w| !w.is_empty()), "{table}.{}", rule.name);
            }
        }
    }
}

#[test]
fn no_rule_promises_a_retry_that_its_class_forbids_without_saying_so() {
    for rule in docs::all().iter().filter(|r| r.retryable && !r.class.may_retry_same_target()) {
        let allowed = matches!(rule.class, ErrorClass::Unknown | ErrorClass::Cancelled | ErrorClass::BadRequest);
        assert!(allowed, "{} is {} and retryable", rule.id, rule.class.name());
    }
}
