//! Taking patches back: what was there before comes back, and nothing that
//! somebody changed since is lost.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test helpers fail the test that called them"
)]

#[path = "support/listing.rs"]
mod listing;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use apply_patch::undo::Recorded;
use apply_patch::{Options, UndoError, apply, parse, undo};
use listing::{Listing, listing};
use proptest::prelude::*;
use safe_fs::{Resolver, Roots};

struct Tree {
    temp: tempfile::TempDir,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let tree = Self { temp };
        for (name, text) in files {
            tree.write(name, text);
        }
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn roots(&self) -> Roots {
        let root = self.temp.path();
        Roots::open(root, &[root.to_path_buf()], &[], Resolver::detect()).unwrap()
    }

    /// Applies a patch, and returns what was recorded.
    fn apply(&self, body: &str) -> Vec<u8> {
        let text = format!("*** Begin Patch\n{body}*** End Patch");
        let parsed = parse(&text).unwrap();
        let options = Options {
            on_existing: apply_patch::options::OnExisting::Replace,
            ..Options::safe()
        };
        let mut record = Vec::new();
        let report = apply(&parsed.patch, &self.roots(), &options, Some(&mut record)).unwrap();
        let no_undo = |note: &_| matches!(note, apply_patch::report::Note::NoUndo { .. });
        assert!(!report.notes.iter().any(no_undo), "{:?}", report.notes);
        record
    }

    fn undo(&self, record: &[u8]) -> Result<(), UndoError> {
        let record = Recorded::parse(record).unwrap();
        undo(&record, &self.roots(), &Options::safe()).map(drop)
    }

    fn listing(&self) -> Listing {
        listing(self.temp.path())
    }

    /// Applies a patch that changes the tree, takes it back, and compares.
    fn there_and_back(&self, body: &str) {
        let before = self.listing();
        let record = self.apply(body);
        assert_ne!(self.listing(), before, "{body}");
        self.undo(&record).unwrap();
        assert_eq!(self.listing(), before, "{body}");
    }
}

fn tree() -> Tree {
    let tree = Tree::new(&[
        ("a", "one\ntwo\nthree\n"),
        ("b", "other\n"),
        ("d/c", "deep\n"),
        ("empty", ""),
    ]);
    symlink("a", tree.path("link")).unwrap();
    symlink("nowhere", tree.path("dangling")).unwrap();
    fs::set_permissions(tree.path("b"), fs::Permissions::from_mode(0o751)).unwrap();
    tree
}

const UPDATE: &str = "*** Update File: a\n@@\n-two\n+2\n";

#[test]
fn each_kind_of_operation_is_taken_back() {
    let tree = tree();
    for body in [
        UPDATE,
        "*** Add File: new\n+text\n",
        "*** Add File: x/y/new\n+text\n",
        "*** Add File: b\n+replaced\n",
        "*** Delete File: b\n",
        "*** Delete File: empty\n",
        "*** Delete File: link\n",
        "*** Delete File: dangling\n",
        "*** Update File: b\n*** Move to: moved\n",
        "*** Update File: link\n*** Move to: d/link\n",
        "*** Update File: b\n*** Move to: z/moved\n@@\n-other\n+edited\n",
        "*** Update File: b\n*** Move to: a\n",
        "*** Update File: b\n*** Move to: link\n",
        "*** Update File: b\n*** Move to: dangling\n@@\n-other\n+edited\n",
        "*** Update File: link\n*** Move to: file\n@@\n-two\n+2\n",
        "*** Update File: link\n@@\n-two\n+2\n",
        "*** Update File: a\n*** Move to: b\n*** Update File: b\n*** Move to: a\n",
    ] {
        tree.there_and_back(body);
    }
}

#[test]
fn many_operations_are_taken_back_together() {
    let tree = tree();
    tree.there_and_back(
        "*** Update File: a\n@@\n-one\n+1\n*** Delete File: b\n*** Add File: n/e/w\n+x\n\
         *** Add File: n/other\n+y\n*** Update File: d/c\n*** Move to: c\n@@\n-deep\n+up\n\
         *** Delete File: dangling\n*** Update File: empty\n*** Move to: d/empty\n",
    );
}

#[test]
fn a_name_that_a_rename_freed_is_taken_back_too() {
    let tree = tree();
    tree.there_and_back("*** Update File: a\n*** Move to: q\n*** Add File: a\n+new\n");
}

#[test]
fn of_a_patch_that_changes_nothing_nothing_is_recorded() {
    let tree = tree();
    let before = tree.listing();
    assert_eq!(tree.apply("*** Update File: a\n@@\n-two\n+two\n"), b"");
    assert_eq!(tree.listing(), before);
}

#[test]
fn patches_are_taken_back_one_after_the_other() {
    let tree = tree();
    let before = tree.listing();
    let first = tree.apply(UPDATE);
    let between = tree.listing();
    let second = tree.apply("*** Update File: a\n@@\n-2\n+two again\n*** Delete File: b\n");
    assert!(
        matches!(tree.undo(&first), Err(UndoError::Changed(paths)) if paths == [Path::new("a")])
    );
    tree.undo(&second).unwrap();
    assert_eq!(tree.listing(), between);
    tree.undo(&first).unwrap();
    assert_eq!(tree.listing(), before);
}

#[test]
fn what_somebody_changed_since_is_not_lost() {
    let body = "*** Update File: a\n@@\n-two\n+2\n*** Add File: new\n+text\n*** Delete File: b\n\
                *** Update File: d/c\n*** Move to: d/moved\n";
    type Change = fn(&Tree);
    let changes: [(&str, Change); 6] = [
        ("a", |tree| tree.write("a", "theirs\n")),
        ("a", |tree| fs::remove_file(tree.path("a")).unwrap()),
        ("new", |tree| tree.write("new", "theirs\n")),
        ("b", |tree| tree.write("b", "theirs\n")),
        ("d/c", |tree| tree.write("d/c", "theirs\n")),
        ("d/moved", |tree| tree.write("d/moved", "theirs\n")),
    ];
    for (name, change) in changes {
        let tree = tree();
        let record = tree.apply(body);
        change(&tree);
        let changed = tree.listing();
        match tree.undo(&record) {
            Err(UndoError::Changed(paths)) => assert_eq!(paths, [Path::new(name)]),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(tree.listing(), changed, "{name}");
    }
}

#[test]
fn a_directory_with_other_things_in_it_stays() {
    let tree = tree();
    let record = tree.apply("*** Add File: x/y/new\n+text\n");
    tree.write("x/theirs", "theirs\n");
    tree.undo(&record).unwrap();
    assert!(!tree.path("x/y").exists());
    assert_eq!(
        fs::read_to_string(tree.path("x/theirs")).unwrap(),
        "theirs\n"
    );
}

#[test]
fn hard_links_stay_together() {
    let tree = tree();
    fs::hard_link(tree.path("a"), tree.path("other")).unwrap();
    let record = tree.apply(UPDATE);
    assert_eq!(
        fs::read_to_string(tree.path("other")).unwrap(),
        "one\n2\nthree\n"
    );
    tree.undo(&record).unwrap();
    let inode = |name: &str| fs::metadata(tree.path(name)).unwrap().ino();
    assert_eq!(
        fs::read_to_string(tree.path("other")).unwrap(),
        "one\ntwo\nthree\n"
    );
    assert_eq!(inode("a"), inode("other"));
}

/// The record is data: it cannot reach what a patch could not.
#[test]
fn a_forged_record_reaches_nothing_outside() {
    let inside = tree();
    let outside = Tree::new(&[("secret", "kept\n")]);
    let record = outside.apply("*** Add File: made\n+x\n*** Delete File: secret\n");
    outside.undo(&record).unwrap();
    outside.write("made", "x\n");
    fs::remove_file(outside.path("secret")).unwrap();
    let before = (inside.listing(), outside.listing());
    // The same length, so that the record stays well-formed.
    let (from, to) = (b"secret".as_slice(), b"../../".as_slice());
    let at = record
        .windows(from.len())
        .position(|window| window == from)
        .unwrap();
    let mut forged = record.clone();
    forged[at..at + to.len()].copy_from_slice(to);
    let roots = inside.roots();
    let forged = Recorded::parse(&forged).unwrap();
    assert!(undo(&forged, &roots, &Options::safe()).is_err());
    assert_eq!((inside.listing(), outside.listing()), before);
}

#[test]
fn no_part_of_a_record_is_a_record() {
    let record = tree().apply(UPDATE);
    for length in 0..record.len() {
        assert!(Recorded::parse(&record[..length]).is_err(), "{length}");
    }
}

/// What happens to the bytes of a record.
#[derive(Debug, Clone)]
enum Damage {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, u8),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Set(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Remove(at, length) => {
                let at = at.index(bytes.len());
                let end = bytes.len().min(at + usize::from(*length));
                bytes.drain(at..end);
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        // Small numbers are lengths and kinds.
        4 => (at(), 0..8_u8).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..12)).prop_map(|(at, more)| Damage::Insert(at, more)),
        1 => (at(), 1..4_u8).prop_map(|(at, length)| Damage::Remove(at, length)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Recorded::parse(&bytes);
        let begun = [b"sandpatch undo 1\n", &bytes[..]].concat();
        if let Ok(record) = Recorded::parse(&begun) {
            let tree = tree();
            let before = tree.listing();
            if undo(&record, &tree.roots(), &Options::safe()).is_err() {
                prop_assert_eq!(tree.listing(), before);
            }
        }
    }

    /// A record that somebody damaged does nothing outside, and nothing by halves.
    #[test]
    fn a_damaged_record_is_undone_as_a_whole_or_not_at_all(
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let outside = Tree::new(&[("ws/a", "one\ntwo\n"), ("ws/b", "other\n"), ("ws/d/c", "deep\n"), ("f", "x\n")]);
        let inside = outside.path("ws");
        let roots = Roots::open(&inside, std::slice::from_ref(&inside), &[], Resolver::detect()).unwrap();
        let text = "*** Begin Patch\n*** Update File: a\n@@\n-two\n+2\n*** Delete File: b\n\
                    *** Update File: d/c\n*** Move to: n/c\n*** Add File: m/new\n+x\n*** End Patch";
        let mut record = Vec::new();
        let parsed = parse(text).unwrap();
        apply(&parsed.patch, &roots, &Options::safe(), Some(&mut record)).unwrap();
        let before = outside.listing();
        for damage in &damages {
            damage.apply(&mut record);
        }
        let done = Recorded::parse(&record).map(|record| undo(&record, &roots, &Options::safe()).is_ok());
        let after = outside.listing();
        match done {
            Ok(true) => {
                let of_others = |listing: &Listing| -> Listing {
                    let others = listing.iter().filter(|(path, _)| !path.starts_with("ws"));
                    others.map(|(path, entry)| (path.clone(), entry.clone())).collect()
                };
                prop_assert_eq!(of_others(&after), of_others(&before));
            }
            _ => prop_assert_eq!(after, before),
        }
    }
}
