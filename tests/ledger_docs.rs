//! `docs/ledger.md` names every kind of notice, and no other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use evenkeel::control::NoticeKind;
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../docs/ledger.md");
/// The wrapper has notices of its own, of a core that cannot tell of itself.
const WRAPPER: &str = include_str!("../pkg/src/keel.ts");

/// Rows of the table of notices: kind, subject, detail, when.
fn rows() -> Vec<Vec<&'static str>> {
    let (_, notices) = DOCUMENT.split_once("## Notices").expect("the section");
    let rows = notices.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim_matches([' ', '`'])).collect()).collect()
}

#[test]
fn every_kind_of_notice_is_in_the_document_once_and_no_other_is() {
    let rows = rows();
    let told: BTreeSet<&str> = rows.iter().map(|row| *row.first().unwrap()).collect();
    assert_eq!(told.len(), rows.len(), "a kind stands there twice");
    let mut emitted: BTreeSet<&str> = NoticeKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(emitted.len(), NoticeKind::ALL.len(), "two kinds have one name");
    let own = WRAPPER.match_indices("notice(\"").filter_map(|(at, _)| WRAPPER.get(at..)?.split('"').nth(1));
    emitted.extend(own);
    assert!(emitted.contains("core_restarted"), "the wrapper's own are found");
    assert_eq!(told, emitted);
}

#[test]
fn each_row_says_what_it_is_about_and_when_it_comes() {
    for row in rows() {
        assert_eq!(row.len(), 4, "{row:?}");
        assert!(!row[1].is_empty() && row[3].ends_with('.'), "{row:?}");
    }
}
