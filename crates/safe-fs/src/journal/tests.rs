//! A transaction that is dropped is as one whose process was killed: what it
//! did stays, and its journal is nobody's any more.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::*;
use crate::entry::Entry;
use crate::ops::Attributes;
use crate::pinned::Pinned;
use crate::transaction::Transaction;
use crate::{Guard, GuardDepth, Resolver};

struct Tree {
    temp: tempfile::TempDir,
    roots: Roots,
}

impl Tree {
    /// `ws` is the root, with a guarded `.git`; `out` lies outside.
    fn new() -> Self {
        let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let path = |name: &str| temp.path().join(name);
        for name in ["ws", "ws/d", "ws/.git", "out"] {
            fs::create_dir(path(name)).unwrap();
        }
        for name in ["ws/a", "ws/b", "ws/d/c", "ws/.git/config", "out/secret"] {
            fs::write(path(name), format!("old {name}")).unwrap();
        }
        symlink("a", path("ws/link")).unwrap();
        let guard = Guard {
            name: ".git".into(),
            depth: GuardDepth::Any,
        };
        let roots = Roots::open(&path("ws"), &[path("ws")], &[guard], Resolver::detect()).unwrap();
        Self { temp, roots }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn at(&self, name: &str) -> Location {
        self.roots.resolve(Path::new(name)).unwrap()
    }

    fn pinned(&self, name: &str) -> Pinned {
        match self.roots.entry(&self.at(name)).unwrap() {
            Entry::File(pinned) | Entry::Link { pinned, .. } => pinned,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Returns every name with its inode and its content.
    fn listing(&self) -> Vec<(PathBuf, u64, String)> {
        fn walk(dir: &Path, found: &mut Vec<(PathBuf, u64, String)>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                let text = match meta.is_file() {
                    true => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
                    false => String::new(),
                };
                found.push((path.clone(), meta.ino(), text));
                if meta.is_dir() {
                    walk(&path, found);
                }
            }
        }
        let mut found = Vec::new();
        walk(self.temp.path(), &mut found);
        found.sort();
        found
    }

    fn new_file<'a>(&self, transaction: &mut Transaction<'a>, dir: &Dir) -> crate::Staged {
        let attributes = Attributes::New { mode: 0o644 };
        transaction.stage(dir, b"new", attributes).unwrap()
    }

    /// Makes one change of each kind.
    fn change_everything(&self) -> Transaction<'_> {
        let mut transaction = Transaction::begin(&self.roots, Durability::Process);
        let at = self.at("a");
        let staged = self.new_file(&mut transaction, at.dir());
        transaction.replace(staged, &at, &self.pinned("a")).unwrap();
        let at = transaction.make_directories(&self.at("x/y/new")).unwrap();
        let staged = self.new_file(&mut transaction, at.dir());
        transaction.create(staged, &at).unwrap();
        (transaction.rename(&self.at("b"), &self.at("d/b"), &self.pinned("b"))).unwrap();
        (transaction.remove(&self.at("link"), &self.pinned("link"))).unwrap();
        (transaction.rewrite(&self.at("d/c"), &self.pinned("d/c"), b"newer and longer")).unwrap();
        transaction
    }

    /// Writes a journal that names itself, with these records.
    fn forge(&self, records: &[Record]) {
        let dir = Dir::from_fd(sys::open(&self.path("ws"), sys::PIN_DIRECTORY).unwrap()).unwrap();
        let mut bytes = Vec::new();
        records
            .iter()
            .for_each(|record| record.encode(&mut bytes).unwrap());
        drop(Open::create(&dir, &bytes).unwrap());
    }

    fn place(&self, name: &str) -> NamedPlace {
        let path = self.path(name);
        let directory = path.parent().unwrap();
        let meta = fs::metadata(directory).unwrap();
        NamedPlace {
            directory: directory.into(),
            directory_id: FileId {
                dev: meta.dev(),
                ino: meta.ino(),
            },
            name: path.file_name().unwrap().into(),
        }
    }

    /// Returns the only temporary file of the workspace.
    fn temporary(&self) -> PathBuf {
        let is_ours = |path: &PathBuf| {
            crate::temporary::is_temporary(path.file_name().unwrap().as_encoded_bytes())
        };
        let entries = fs::read_dir(self.path("ws")).unwrap();
        let mut found: Vec<_> = entries
            .map(|it| it.unwrap().path())
            .filter(is_ours)
            .collect();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    fn stamp(&self, name: &str) -> crate::id::Stamp {
        sys::stamp_at(nix::fcntl::AT_FDCWD, self.path(name).as_os_str())
            .unwrap()
            .unwrap()
    }
}

/// Waits longer than a tick of the clock that files are dated by: what is made
/// in the same tick as a journal may be its transaction's.
fn let_the_clock_tick() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}

#[test]
fn without_a_journal_there_is_nothing_to_do() {
    let tree = Tree::new();
    assert_eq!(tree.roots.recover(0).unwrap(), []);
    assert!(!tree.roots.is_interrupted().unwrap());
}

#[test]
fn a_settled_transaction_leaves_no_journal() {
    let tree = Tree::new();
    let left = tree.change_everything().settle().unwrap();
    assert!(left.is_empty());
    assert_eq!(fs::read_to_string(tree.path("ws/a")).unwrap(), "new");
    let names = tree.listing();
    assert!(
        !names
            .iter()
            .any(|(path, ..)| path.display().to_string().contains(".sandpatch"))
    );
}

#[test]
fn what_was_interrupted_is_taken_back() {
    let tree = Tree::new();
    let before = tree.listing();
    drop(tree.change_everything());
    assert_ne!(tree.listing(), before);
    assert!(tree.roots.is_interrupted().unwrap());
    let recovered = tree.roots.recover(0).unwrap().remove(0);
    assert_eq!(
        (recovered.direction, recovered.conflicts),
        (Direction::RolledBack, vec![])
    );
    assert_eq!(tree.listing(), before);
}

#[test]
fn a_living_transaction_is_left_alone() {
    let tree = Tree::new();
    let transaction = tree.change_everything();
    let during = tree.listing();
    assert!(!tree.roots.is_interrupted().unwrap());
    assert_eq!(tree.roots.recover(10).unwrap_err().kind(), &ErrorKind::Busy);
    assert_eq!(tree.listing(), during);
    transaction.roll_back().unwrap();
}

#[test]
fn a_second_transaction_sees_that_there_is_one() {
    let tree = Tree::new();
    let first = tree.change_everything();
    let mut second = Transaction::begin(&tree.roots, Durability::Process);
    let old = tree.pinned("a");
    let error = second.remove(&tree.at("a"), &old).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Changed);
    second.roll_back().unwrap();
    assert!(first.settle().unwrap().is_empty());
}

#[test]
fn what_somebody_changed_since_stays() {
    let tree = Tree::new();
    drop(tree.change_everything());
    fs::write(tree.path("ws/a"), "theirs, in place").unwrap();
    fs::write(tree.path("ws/d/c"), "theirs").unwrap();
    fs::write(tree.path("ws/x/theirs"), "theirs").unwrap();
    let recovered = tree.roots.recover(0).unwrap().remove(0);
    let paths: Vec<_> = recovered
        .conflicts
        .iter()
        .map(|it| it.path.clone())
        .collect();
    assert_eq!(paths, [tree.path("ws/d/c"), tree.path("ws/a")]);
    assert_eq!(
        fs::read_to_string(tree.path("ws/a")).unwrap(),
        "theirs, in place"
    );
    let kept = recovered.conflicts[1].kept.clone().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), "old ws/a");
    assert!(tree.path("ws/x/theirs").exists() && !tree.path("ws/x/y").exists());
    assert!(!tree.path("ws").join(JOURNAL_NAME).exists());
}

#[test]
fn half_written_content_is_put_back() {
    let tree = Tree::new();
    let before = tree.listing();
    drop(tree.change_everything());
    fs::write(tree.path("ws/d/c"), "neither old nor new").unwrap();
    let recovered = tree.roots.recover(0).unwrap().remove(0);
    assert_eq!(recovered.conflicts.len(), 1, "{:?}", recovered.conflicts);
    let kept = recovered.conflicts[0].kept.clone().unwrap();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "old ws/d/c");
    fs::remove_file(kept).unwrap();
    fs::write(tree.path("ws/d/c"), "old ws/d/c").unwrap();
    drop(tree.change_everything());
    // As a kill in the middle leaves it: the end has grown, the beginning is new.
    fs::write(tree.path("ws/d/c"), "newews/d/clonger").unwrap();
    let recovered = tree.roots.recover(0).unwrap().remove(0);
    assert_eq!(recovered.conflicts, []);
    let contents = |listing: Vec<(PathBuf, u64, String)>| {
        listing
            .into_iter()
            .map(|(path, _, text)| (path, text))
            .collect::<Vec<_>>()
    };
    assert_eq!(contents(tree.listing()), contents(before));
}

#[test]
fn a_copied_journal_is_refused() {
    let tree = Tree::new();
    drop(tree.change_everything());
    let journal = tree.path("ws").join(JOURNAL_NAME);
    let copy = tree.path("ws/copy");
    fs::copy(&journal, &copy).unwrap();
    fs::rename(&copy, &journal).unwrap();
    let during = tree.listing();
    let error = tree.roots.recover(0).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::NotAJournal);
    assert_eq!(tree.listing(), during);
}

#[test]
fn other_things_of_the_name_are_refused() {
    let tree = Tree::new();
    let journal = tree.path("ws").join(JOURNAL_NAME);
    fs::write(&journal, "text").unwrap();
    assert_eq!(
        tree.roots.recover(0).unwrap_err().kind(),
        &ErrorKind::NotAJournal
    );
    assert_eq!(fs::read_to_string(&journal).unwrap(), "text");
    fs::remove_file(&journal).unwrap();
    symlink(tree.path("out/secret"), &journal).unwrap();
    assert!(tree.roots.recover(0).is_err());
    fs::remove_file(&journal).unwrap();
    nix::unistd::mkfifo(&journal, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(
        tree.roots.recover(0).unwrap_err().kind(),
        &ErrorKind::NotAJournal
    );
    fs::remove_file(&journal).unwrap();
    fs::create_dir(&journal).unwrap();
    assert_eq!(
        tree.roots.recover(0).unwrap_err().kind(),
        &ErrorKind::NotAJournal
    );
}

#[test]
fn a_journal_that_was_only_begun_is_removed() {
    let tree = Tree::new();
    let before = tree.listing();
    let journal = tree.path("ws").join(JOURNAL_NAME);
    fs::write(&journal, "").unwrap();
    assert_eq!(tree.roots.recover(0).unwrap(), []);
    assert_eq!(tree.listing(), before);
    // What has something in it may be somebody's notes.
    for text in ["sandpatch jour", "sandpatch journal 1\nnotes"] {
        fs::write(&journal, text).unwrap();
        let error = tree.roots.recover(0).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::NotAJournal);
        assert_eq!(fs::read_to_string(&journal).unwrap(), text);
    }
}

#[test]
fn a_forged_journal_moves_nothing_outside() {
    let tree = Tree::new();
    let before = tree.listing();
    let rename = Record::Rename {
        from: tree.place("out/got"),
        to: tree.place("ws/a"),
        moved: tree.stamp("ws/a"),
    };
    let create = Record::Create {
        at: tree.place("out/secret"),
        new: tree.stamp("out/secret"),
    };
    for record in [rename, create] {
        tree.forge(&[record]);
        let error = tree.roots.recover(0).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Outside { .. }), "{error}");
        fs::remove_file(tree.path("ws").join(JOURNAL_NAME)).unwrap();
        assert_eq!(tree.listing(), before);
    }
}

#[test]
fn a_forged_journal_touches_nothing_protected() {
    let tree = Tree::new();
    let before = tree.listing();
    let config = tree.stamp("ws/.git/config");
    tree.forge(&[
        Record::Create {
            at: tree.place("ws/.git/config"),
            new: config,
        },
        Record::Rename {
            from: tree.place("ws/.git/hook"),
            to: tree.place("ws/a"),
            moved: tree.stamp("ws/a"),
        },
        Record::Remove {
            at: tree.place("ws/stolen"),
            temporary: "../.git/config".into(),
            old: config,
        },
        Record::Rewrite {
            at: tree.place("ws/.git/config"),
            file: config,
            accessed: (0, 0),
            old: b"[core] hooksPath = x".to_vec(),
            new: b"old ws/.git/config".to_vec(),
        },
    ]);
    tree.roots.recover(0).unwrap();
    assert_eq!(tree.listing(), before);
}

/// Only inodes that it names, and of temporary names only ours.
#[test]
fn a_forged_journal_removes_no_other_file() {
    let tree = Tree::new();
    fs::write(tree.path("ws/.sandpatch-0123456789abcdef-new"), "kept").unwrap();
    let_the_clock_tick();
    let before = tree.listing();
    let (a, b) = (tree.stamp("ws/a"), tree.stamp("ws/b"));
    tree.forge(&[
        Record::Create {
            at: tree.place("ws/a"),
            new: b,
        },
        Record::Stage {
            temporary: tree.place("ws/a"),
        },
        Record::Stage {
            temporary: tree.place("ws/.sandpatch-0123456789abcdef-new"),
        },
        Record::MakeDirectory {
            at: tree.place("ws/d"),
        },
    ]);
    tree.roots.recover(0).unwrap();
    assert_eq!(tree.listing(), before);
    tree.forge(&[
        Record::Remove {
            at: tree.place("ws/q"),
            temporary: "a".into(),
            old: a,
        },
        Record::Done,
    ]);
    tree.roots.recover(0).unwrap();
    assert_eq!(tree.listing(), before);
}

/// Nothing that was there before the journal can be what a transaction made.
#[test]
fn a_forged_journal_cannot_call_an_old_file_new() {
    let tree = Tree::new();
    let before = tree.listing();
    let (a, b) = (tree.stamp("ws/a"), tree.stamp("ws/b"));
    let_the_clock_tick();
    tree.forge(&[
        Record::Create {
            at: tree.place("ws/a"),
            new: a,
        },
        Record::Replace {
            at: tree.place("ws/b"),
            temporary: "link".into(),
            new: b,
            old: tree.stamp("ws/link"),
        },
    ]);
    tree.roots.recover(0).unwrap();
    assert_eq!(tree.listing(), before);
}

#[test]
fn a_workspace_that_was_moved_is_recovered() {
    let tree = Tree::new();
    let before = tree.listing();
    drop(tree.change_everything());
    fs::rename(tree.path("ws"), tree.path("moved")).unwrap();
    let moved = tree.path("moved");
    let roots = Roots::open(
        &moved,
        std::slice::from_ref(&moved),
        &[],
        Resolver::detect(),
    )
    .unwrap();
    let recovered = roots.recover(0).unwrap();
    assert_eq!(recovered[0].conflicts, []);
    fs::rename(&moved, tree.path("ws")).unwrap();
    assert_eq!(tree.listing(), before);
}

#[test]
fn a_directory_that_was_moved_keeps_everything_as_it_is() {
    let tree = Tree::new();
    let before = tree.listing();
    drop(tree.change_everything());
    fs::rename(tree.path("ws/d"), tree.path("ws/elsewhere")).unwrap();
    let during = tree.listing();
    let error = tree.roots.recover(0).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreachable, "{error}");
    assert_eq!(tree.listing(), during);
    // Another directory of the name, as a mount leaves that is gone.
    fs::create_dir(tree.path("ws/d")).unwrap();
    let error = tree.roots.recover(0).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreachable, "{error}");
    fs::remove_dir(tree.path("ws/d")).unwrap();
    fs::rename(tree.path("ws/elsewhere"), tree.path("ws/d")).unwrap();
    tree.roots.recover(0).unwrap();
    assert_eq!(tree.listing(), before);
}

/// A recovery may be killed after it has removed a directory that was made.
#[test]
fn a_directory_that_was_made_may_be_gone_already() {
    let tree = Tree::new();
    let before = tree.listing();
    drop(tree.change_everything());
    fs::remove_dir_all(tree.path("ws/x")).unwrap();
    assert_eq!(tree.roots.recover(0).unwrap()[0].conflicts, []);
    assert_eq!(tree.listing(), before);
}

#[test]
fn what_replaced_a_file_before_we_did_stays_and_leaves_nothing() {
    let tree = Tree::new();
    let at = tree.at("a");
    let mut transaction = Transaction::begin(&tree.roots, Durability::Process);
    let staged = tree.new_file(&mut transaction, at.dir());
    transaction.replace(staged, &at, &tree.pinned("a")).unwrap();
    drop(transaction);
    // As if the kill had come between the naming and the swap, and then an editor.
    let temporary = tree.temporary();
    fs::rename(tree.path("ws/a"), tree.path("ws/new")).unwrap();
    fs::remove_file(&temporary).unwrap();
    fs::rename(tree.path("ws/new"), &temporary).unwrap();
    fs::write(tree.path("ws/a"), "theirs").unwrap();
    assert_eq!(tree.roots.recover(0).unwrap()[0].conflicts, []);
    assert_eq!(fs::read_to_string(tree.path("ws/a")).unwrap(), "theirs");
    assert!(!temporary.exists());
}

#[test]
fn the_journal_of_another_user_is_not_believed() {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: only root can give a file away");
        return;
    }
    let tree = Tree::new();
    drop(tree.change_everything());
    let journal = tree.path("ws").join(JOURNAL_NAME);
    std::os::unix::fs::chown(&journal, Some(12345), None).unwrap();
    let during = tree.listing();
    let error = tree.roots.recover(0).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::ForeignOwner { uid: 12345 });
    assert_eq!(tree.listing(), during);
}

#[test]
fn durable_transactions_do_the_same() {
    let tree = Tree::new();
    let mut transaction = Transaction::begin(&tree.roots, Durability::Disk);
    let at = tree.at("a");
    let staged = tree.new_file(&mut transaction, at.dir());
    transaction.replace(staged, &at, &tree.pinned("a")).unwrap();
    transaction
        .remove(&tree.at("b"), &tree.pinned("b"))
        .unwrap();
    assert!(transaction.settle().unwrap().is_empty());
    assert_eq!(fs::read_to_string(tree.path("ws/a")).unwrap(), "new");
    assert!(!tree.path("ws/b").exists());
}
