//! Protected names that do not exist.

use super::*;
use crate::policy::MissingNames;

fn empty(at: &str) -> ProtectedState {
    ProtectedState::EmptyDirectory(id(at))
}

fn open_names(plan: &Plan) -> Vec<&str> {
    let names = plan.not_covered.iter().filter_map(|gap| match gap {
        NotCovered::MissingProtectedName(path) => path.as_path().to_str(),
        _ => None,
    });
    names.collect()
}

fn held_names(plan: &Plan) -> Vec<&str> {
    let names = plan.missing_names();
    names.filter_map(|path| path.as_path().to_str()).collect()
}

#[test]
fn they_are_held_and_nothing_is_left_open() {
    let plan = planned(vec![root("/w", "/w", &[(".git", directory("/w/.git"))])]);
    assert_eq!(held_names(&plan), ["/w/.agents", "/w/.codex"]);
    assert!(open_names(&plan).is_empty());
    assert_eq!(plan.access(&path("/w/.codex")), Access::Read);
    assert_eq!(plan.access(&path("/w/.codex2")), Access::Write);
}

#[test]
fn switched_off_they_are_told() {
    let policy = Policy::workspace(path("/w")).with_missing_names(MissingNames::Off);
    let link = ProtectedState::Link {
        id: id("/w/.git"),
        text: OsString::from("/elsewhere/gone"),
        target: LinkTarget {
            crossed: Vec::new(),
            end: TargetEnd::Missing {
                real: path("/elsewhere/gone"),
            },
        },
    };
    let facts = facts(vec![root("/w", "/w", &[(".git", link)])]);
    let plan = plan(&policy, &facts, Purpose::Command).unwrap();
    assert!(held_names(&plan).is_empty());
    // What lies outside of the roots cannot be made anyway.
    let mut open = open_names(&plan);
    open.sort_unstable();
    assert_eq!(open, ["/w/.agents", "/w/.codex"]);
    assert_eq!(plan.access(&path("/w/.codex")), Access::Write);
}

#[test]
fn nothing_is_put_into_tmp_itself() {
    let in_tmp = planned(vec![root("/tmp", "/tmp", &[])]);
    assert!(held_names(&in_tmp).is_empty());
    assert_eq!(open_names(&in_tmp).len(), PROTECTED_NAMES.len());
    let below = planned(vec![root("/tmp/w", "/tmp/w", &[])]);
    assert_eq!(held_names(&below).len(), PROTECTED_NAMES.len());
    assert!(open_names(&below).is_empty());
}

#[test]
fn an_empty_directory_is_held_like_a_missing_name() {
    let root = root("/w", "/w", &[(".git", empty("/w/.git"))]);
    let facts = facts(vec![root]);
    let held = plan(&Policy::workspace(path("/w")), &facts, Purpose::Command).unwrap();
    assert!(held_names(&held).contains(&"/w/.git"));
    assert!(!placed(&held).contains(&protect("/w/.git")));
}

#[test]
fn an_empty_directory_is_protected_also_where_missing_names_are_not() {
    let root = root("/w", "/w", &[(".git", empty("/w/.git"))]);
    let facts = facts(vec![root]);
    let off = Policy::workspace(path("/w")).with_missing_names(MissingNames::Off);
    for (policy, purpose) in [
        (off, Purpose::Command),
        (Policy::workspace(path("/w")), Purpose::Patch),
    ] {
        let plan = plan(&policy, &facts, purpose).unwrap();
        assert!(placed(&plan).contains(&protect("/w/.git")));
        assert_eq!(plan.access(&path("/w/.git")), Access::Read);
    }
}
