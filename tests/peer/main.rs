//! The reference tool's recorded results, one test name for each case and form.
//!
//! `NNN_name::arg0` runs the case through the name `apply_patch`;
//! `NNN_name::flag` through `--codex-run-as-apply-patch`.
//!
//! A case that `docs/deviations.txt` lists is compared with the record in its
//! `expected-ours/` instead, exactly, so that a deviation cannot drift.
//! `RECORD_DEVIATIONS=1` writes these records; `NNN_name::still_differs` fails
//! when a listed case equals the reference after all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test harness fails its trial by panicking"
)]

mod case;
mod compare;
mod record;

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::Trial;
use sandpatch_tests::trial::{ensure, trial};
use sandpatch_tests::{fixtures, list, skip};

use crate::case::{Case, Form};
use crate::compare::{StderrRule, differences};
use crate::record::Record;

/// Above this number the dialect would no longer be the reference's.
const MOST_DEVIATIONS: usize = 70;

fn main() -> ExitCode {
    let folders = fixtures::case_folders(&fixtures::dir("peer"));
    let listed = list::read(&deviations_file());
    let mut trials = list_trials(&folders, &listed);
    for folder in folders {
        let is_listed = listed.contains_key(list::number_of(&fixtures::name_of(&folder)));
        trials.extend(case_trials(&folder, is_listed));
    }
    sandpatch_tests::trial::main(trials)
}

fn deviations_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/deviations.txt")
}

/// Returns the reasons that do not end in the name of a section of docs/compatibility.md.
fn unexplained(listed: &BTreeMap<String, String>) -> Vec<String> {
    let page = deviations_file().with_file_name("compatibility.md");
    let page = std::fs::read_to_string(page).expect("read compatibility.md");
    let sections: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let names_section = |reason: &str| {
        let section = reason.strip_suffix(')').and_then(|it| it.rsplit_once('('));
        section.is_some_and(|(_, section)| sections.contains(&section))
    };
    let unnamed = listed.iter().filter(|(_, reason)| !names_section(reason));
    unnamed.map(|(number, _)| number.clone()).collect()
}

/// The list itself is checked: its length, and that it names cases and sections.
fn list_trials(folders: &[PathBuf], listed: &BTreeMap<String, String>) -> Vec<Trial> {
    let count = listed.len();
    let numbers: Vec<String> = folders
        .iter()
        .map(|folder| list::number_of(&fixtures::name_of(folder)).to_owned())
        .collect();
    let unknown: Vec<String> = listed
        .keys()
        .filter(|key| !numbers.contains(key))
        .cloned()
        .collect();
    let unexplained = unexplained(listed);
    vec![
        trial("deviations::name_a_section_that_explains_them", move || {
            ensure(unexplained.is_empty(), || {
                format!("docs/compatibility.md has no such section: {unexplained:?}")
            })
        }),
        trial("deviations::at_most_70", move || {
            ensure(count <= MOST_DEVIATIONS, || {
                format!("{count} deviations are listed, {MOST_DEVIATIONS} are allowed")
            })
        }),
        trial("deviations::name_existing_cases", move || {
            ensure(unknown.is_empty(), || format!("no such case: {unknown:?}"))
        }),
    ]
}

fn case_trials(folder: &Path, is_listed: bool) -> Vec<Trial> {
    let case = Case::read(folder);
    let mut trials = Vec::new();
    for form in case.forms() {
        let case = case.clone();
        let name = format!("{}::{}", case.name(), form.label());
        trials.push(trial(name.clone(), move || {
            if case.needs_root_here() {
                return skip::skip(&name, "runs as another user, which only root can do");
            }
            if is_listed {
                check_listed(&case, form)
            } else {
                check_unlisted(&case, form)
            }
        }));
    }
    if is_listed {
        let name = format!("{}::still_differs", case.name());
        trials.push(trial(name.clone(), move || {
            if case.needs_root_here() {
                return skip::skip(&name, "runs as another user, which only root can do");
            }
            check_still_differs(&case)
        }));
    }
    trials
}

fn check_unlisted(case: &Case, form: Form) -> Result<(), String> {
    let observed = Record::read(&case.folder().join("observed"))?;
    let found = differences(&observed, &case.run(form), StderrRule::Prefix);
    ensure(found.is_empty(), || found)
}

fn check_listed(case: &Case, form: Form) -> Result<(), String> {
    let folder = case.folder().join("expected-ours").join(form.label());
    let got = case.run(form);
    if env::var_os("RECORD_DEVIATIONS").is_some_and(|value| value == "1") {
        return got.write(&folder);
    }
    let expected = Record::read(&folder)
        .map_err(|problem| format!("{problem}; RECORD_DEVIATIONS=1 writes the record"))?;
    let found = differences(&expected, &got, StderrRule::Exact);
    ensure(found.is_empty(), || found)
}

fn check_still_differs(case: &Case) -> Result<(), String> {
    let observed = Record::read(&case.folder().join("observed"))?;
    let differs = case
        .forms()
        .into_iter()
        .any(|form| !differences(&observed, &case.run(form), StderrRule::Prefix).is_empty());
    ensure(differs, || {
        "equals the reference: take it off docs/deviations.txt".to_owned()
    })
}
