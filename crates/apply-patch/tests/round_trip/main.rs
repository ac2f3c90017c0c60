//! A patch that is made from the difference of two trees makes the new one
//! from the old one, byte for byte, and the one for the way back restores it.
//! So does the record of either.
//!
//! `PROPTEST_CASES=100000` makes a long run of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may end with a panic"
)]

mod change;
mod content;
#[path = "../support/listing.rs"]
mod listing;
#[path = "../support/tree.rs"]
mod tree;
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use apply_patch::plan::plan;
use apply_patch::syntax::ast::Body;
use apply_patch::undo::Recorded;
use apply_patch::{Options, apply, edit, parse, undo};
use change::{Change, change};
use listing::listing;
use proptest::prelude::*;
use safe_fs::{Resolver, Roots};
use tree::Tree;

type Files = BTreeMap<String, Vec<u8>>;

/// Plans a patch on a tree in memory, and carries the plan out there.
fn plan_in_memory(text: &str, before: &Files, options: &Options) -> Result<Tree, TestCaseError> {
    let parsed = parse(text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    let mut tree = in_memory(before);
    let (snapshot, places) = tree.snapshot(&parsed.patch);
    let plan = plan(&parsed.patch, &snapshot, options)
        .map_err(|failures| TestCaseError::fail(format!("{failures:#?}\n{text}")))?;
    tree.carry_out(&plan, &places);
    Ok(tree)
}

fn in_memory(files: &Files) -> Tree {
    Tree::of(
        files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
    )
}

fn write_files(top: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn read_files(directory: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            read_files(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

fn roots_of(top: &Path, change: &Change) -> Roots {
    let resolver = match change.walk {
        true => Resolver::Walk,
        false => Resolver::Openat2,
    };
    Roots::open(top, &[top.to_path_buf()], &[], resolver).unwrap()
}

/// Applies a patch, takes it back by its record, and applies it again.
fn apply_on_disk(text: &str, top: &Path, change: &Change) -> Result<Files, TestCaseError> {
    let parsed = parse(text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    let roots = roots_of(top, change);
    let before = listing(top);
    let apply = || {
        let mut record = Vec::new();
        apply(&parsed.patch, &roots, &change.options(), Some(&mut record))
            .map_err(|error| TestCaseError::fail(format!("{error:#?}\n{text}")))?;
        Ok::<_, TestCaseError>(record)
    };
    let record = apply()?;
    let after = listing(top);
    if !record.is_empty() {
        let record = Recorded::parse(&record).unwrap();
        undo(&record, &roots, &Options::safe())
            .map_err(|error| TestCaseError::fail(format!("{error:#?}\n{text}")))?;
    }
    prop_assert_eq!(listing(top), before, "{}", text);
    apply()?;
    prop_assert_eq!(listing(top), after, "{}", text);
    let mut files = Files::new();
    read_files(top, "", &mut files);
    Ok(files)
}

/// Edits a file by one chunk.
fn edited(old: &[u8], chunk: &str) -> Result<Vec<u8>, TestCaseError> {
    let text = format!("*** Begin Patch\n*** Update File: f\n@@\n{chunk}*** End Patch");
    let parsed = parse(&text).unwrap();
    let Body::Update { chunks, .. } = &parsed.patch.operations[0].body else {
        panic!("an update");
    };
    let edited = edit(old, chunks, &Options::safe());
    Ok(edited
        .map_err(|error| TestCaseError::fail(format!("{error:?}")))?
        .bytes)
}

/// A patch without operations is refused; there is nothing to do for it.
fn is_empty(patch: &str) -> bool {
    parse(patch).is_ok_and(|parsed| parsed.patch.operations.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_difference_applies_and_its_reverse_restores(change in change()) {
        let (old, new) = (change.old_files(), change.new_files());
        let forth = change.patch();
        let after = plan_in_memory(&forth, &old, &change.options())?;
        prop_assert_eq!(after, in_memory(&new), "{}", forth);
        let back = change.reversed().patch();
        let restored = plan_in_memory(&back, &new, &change.options())?;
        prop_assert_eq!(restored, in_memory(&old), "{}", back);
    }

    /// A file of any bytes, in which one line is known.
    #[test]
    fn bytes_that_a_patch_does_not_name_stay(
        before in proptest::collection::vec(any::<u8>(), 0..200),
        after in proptest::collection::vec(any::<u8>(), 0..200),
        end in proptest::sample::select(&["\n", "\r\n"][..]),
        is_first in any::<bool>(),
        is_last in any::<bool>(),
    ) {
        let before = if is_first { Vec::new() } else { [before, b"\n".to_vec()].concat() };
        // These bytes would say that the file is UTF-16 or UTF-32.
        prop_assume!(!matches!(before[..], [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 0, 0xfe, 0xff, ..]));
        let after = if is_last { Vec::new() } else { after };
        let file = |lines: &[&str]| {
            let lines = lines.iter().flat_map(|line| [line.as_bytes(), end.as_bytes()]);
            [&before[..], &lines.collect::<Vec<_>>().concat(), &after].concat()
        };
        let old = file(&["the known line"]);
        let cases: [(&str, &[&str]); 4] = [
            ("-the known line\n+another line\n", &["another line"]),
            ("-the known line\n", &[]),
            (" the known line\n+another line\n", &["the known line", "another line"]),
            ("+another line\n the known line\n", &["another line", "the known line"]),
        ];
        for (chunk, lines) in cases {
            let edited = edited(&old, chunk)?;
            // A line above all others takes the end of the one below it.
            prop_assert_eq!(&edited[..before.len()], &before[..]);
            prop_assert_eq!(&edited[edited.len() - after.len()..], &after[..]);
            if !chunk.starts_with('+') || is_first {
                prop_assert_eq!(edited, file(lines));
            }
        }
    }
}

proptest! {
    // A real file system takes its time, and only carries out what was planned.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.div_ceil(4),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_difference_applies_on_disk_and_its_reverse_restores(change in change()) {
        let top = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let (old, new) = (change.old_files(), change.new_files());
        write_files(top.path(), &old);
        let forth = change.patch();
        prop_assume!(!is_empty(&forth));
        prop_assert_eq!(apply_on_disk(&forth, top.path(), &change)?, new, "{}", forth);
        let back = change.reversed().patch();
        prop_assert_eq!(apply_on_disk(&back, top.path(), &change)?, old, "{}", back);
    }
}
