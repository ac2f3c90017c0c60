//! Patches on real trees: all or nothing, nothing lost, nothing left behind.
//!
//! Every test runs with both resolvers of the file layer.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may end with a panic"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use apply_patch::failure::{Cause, FailureKind};
use apply_patch::report::{ChangeKind, Note, Report};
use apply_patch::{ApplyError, Options, parse};
use safe_fs::{Resolver, Roots};
use tempfile::TempDir;

const RESOLVERS: [fn() -> Resolver; 2] = [|| Resolver::Openat2, || Resolver::Walk];

/// A workspace beside which something lies that must not change.
struct Workspace {
    _top: TempDir,
    ws: PathBuf,
    out: PathBuf,
    resolver: Resolver,
}

impl Workspace {
    fn new(resolver: Resolver) -> Self {
        let top = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let (ws, out) = (top.path().join("ws"), top.path().join("out"));
        fs::create_dir(&ws).unwrap();
        fs::create_dir(&out).unwrap();
        Self {
            _top: top,
            ws,
            out,
            resolver,
        }
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.ws.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn apply(&self, operations: &str, options: Options) -> Result<Report, ApplyError> {
        let text = format!("*** Begin Patch\n{operations}\n*** End Patch\n");
        let parsed = parse(&text).unwrap();
        let roots =
            Roots::open(&self.ws, std::slice::from_ref(&self.ws), &[], self.resolver).unwrap();
        apply_patch::apply(&parsed.patch, &roots, &options, None)
    }

    fn applies(&self, operations: &str) -> Report {
        self.apply(operations, Options::safe()).unwrap()
    }

    /// Applies a patch that must fail, and checks that nothing changed.
    fn fails(&self, operations: &str, options: Options) -> Vec<FailureKind> {
        let before = self.tree();
        let error = self.apply(operations, options).unwrap_err();
        assert_eq!(self.tree(), before, "{error}");
        match error {
            ApplyError::Failed(failures) => failures.into_iter().map(|it| it.kind).collect(),
            other => panic!("{other}"),
        }
    }

    fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        collect(&self.ws, &self.ws, &mut tree);
        tree
    }

    fn holds(&self, expected: &[(&str, &str)]) {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        assert_eq!(self.tree(), expected.iter().map(own).collect());
    }
}

fn collect(top: &Path, directory: &Path, tree: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            tree.insert(format!("{name}/"), String::new());
            collect(top, &path, tree);
        } else if kind.is_symlink() {
            tree.insert(
                name,
                format!("-> {}", fs::read_link(&path).unwrap().display()),
            );
        } else {
            tree.insert(name, fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

fn each(test: impl Fn(Workspace)) {
    for resolver in RESOLVERS {
        test(Workspace::new(resolver()));
    }
}

fn update(path: &str, old: &str, new: &str) -> String {
    format!("*** Update File: {path}\n@@\n-{old}\n+{new}")
}

fn relocate(path: &str, to: &str, old: &str, new: &str) -> String {
    format!("*** Update File: {path}\n*** Move to: {to}\n@@\n-{old}\n+{new}")
}

fn rename(path: &str, to: &str) -> String {
    format!("*** Update File: {path}\n*** Move to: {to}")
}

fn delete(path: &str) -> String {
    format!("*** Delete File: {path}")
}

fn add(path: &str, line: &str) -> String {
    format!("*** Add File: {path}\n+{line}")
}

#[test]
fn later_operations_see_earlier_results() {
    each(|ws| {
        ws.write("f", "a\n");
        ws.applies(
            &[
                update("f", "a", "b"),
                update("./f", "b", "c"),
                add("n/m", "x"),
            ]
            .join("\n"),
        );
        ws.holds(&[("f", "c\n"), ("n/", ""), ("n/m", "x\n")]);
        ws.applies(&[relocate("n/m", "o", "x", "y"), update("o", "y", "z")].join("\n"));
        ws.holds(&[("f", "c\n"), ("n/", ""), ("o", "z\n")]);
    });
}

#[test]
fn swaps_and_rotations_keep_every_content() {
    each(|ws| {
        ws.write("a", "1\n").write("b", "2\n").write("c", "3\n");
        ws.applies(&[rename("a", "b"), rename("b", "a")].join("\n"));
        ws.holds(&[("a", "2\n"), ("b", "1\n"), ("c", "3\n")]);
        ws.applies(&[rename("a", "b"), rename("b", "c"), rename("c", "a")].join("\n"));
        ws.holds(&[("a", "3\n"), ("b", "2\n"), ("c", "1\n")]);
        ws.applies(&[relocate("a", "b", "3", "x"), relocate("b", "a", "2", "y")].join("\n"));
        ws.holds(&[("a", "y\n"), ("b", "x\n"), ("c", "1\n")]);
        ws.applies(&[rename("a", "b"), rename("b", "d")].join("\n"));
        ws.holds(&[("b", "y\n"), ("c", "1\n"), ("d", "x\n")]);
    });
}

#[test]
fn a_rename_keeps_the_inode_and_a_move_the_attributes() {
    each(|ws| {
        ws.write("a", "1\n").write("b", "2\n");
        fs::set_permissions(ws.ws.join("b"), fs::Permissions::from_mode(0o751)).unwrap();
        let inode = fs::metadata(ws.ws.join("a")).unwrap().ino();
        ws.applies(&[rename("a", "x/y"), relocate("b", "z", "2", "3")].join("\n"));
        assert_eq!(fs::metadata(ws.ws.join("x/y")).unwrap().ino(), inode);
        assert_eq!(
            fs::metadata(ws.ws.join("z")).unwrap().mode() & 0o7777,
            0o751
        );
    });
}

#[test]
fn a_freed_name_can_be_filled_again() {
    each(|ws| {
        ws.write("a", "1\n").write("b", "2\n");
        ws.applies(&[rename("a", "c"), add("a", "new")].join("\n"));
        ws.holds(&[("a", "new\n"), ("b", "2\n"), ("c", "1\n")]);
        ws.applies(&[delete("b"), relocate("c", "b", "1", "9")].join("\n"));
        ws.holds(&[("a", "new\n"), ("b", "9\n")]);
        let report = ws.applies(&[delete("a"), add("a", "again")].join("\n"));
        ws.holds(&[("a", "again\n"), ("b", "9\n")]);
        let kinds: Vec<_> = report.changes.iter().map(|change| change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Deleted, ChangeKind::Added]);
        ws.applies(&[add("t", "x"), delete("t")].join("\n"));
        ws.holds(&[("a", "again\n"), ("b", "9\n")]);
    });
}

#[test]
fn what_another_operation_needs_is_not_overwritten() {
    for options in [Options::safe(), Options::codex()] {
        each(|ws| {
            ws.write("a", "1\n").write("b", "2\n").write("c", "3\n");
            let two = [rename("a", "n"), rename("b", "n")].join("\n");
            let kinds = ws.fails(&two, options);
            assert!(matches!(
                kinds[..],
                [FailureKind::Write(Cause::TargetTwice { line: 2 })]
            ));
            let later = [rename("a", "b"), update("b", "2", "x")].join("\n");
            let kinds = ws.fails(&later, options);
            assert!(matches!(
                kinds[0],
                FailureKind::Write(Cause::StillNeeded { line: 4 })
            ));
            let later = [rename("a", "b"), delete("b")].join("\n");
            let kinds = ws.fails(&later, options);
            assert!(matches!(
                kinds[0],
                FailureKind::Write(Cause::StillNeeded { line: 4 })
            ));
        });
    }
}

#[test]
fn one_failure_takes_everything_back() {
    each(|ws| {
        ws.write("a", "1\n").write("b", "2\n").write("d/e", "3\n");
        let good = [
            update("a", "1", "x"),
            add("n/m/o", "x"),
            delete("b"),
            rename("d/e", "f"),
        ];
        let bad = [update("a", "no", "x"), delete("nothing"), add("a/b", "x")].join("\n");
        let kinds = ws.fails(&format!("{}\n{bad}", good.join("\n")), Options::safe());
        assert_eq!(kinds.len(), 3, "{kinds:?}");
        ws.applies(&good.join("\n"));
        ws.holds(&[
            ("a", "x\n"),
            ("d/", ""),
            ("f", "3\n"),
            ("n/", ""),
            ("n/m/", ""),
            ("n/m/o", "x\n"),
        ]);
    });
}

#[test]
fn a_failing_commit_takes_everything_back() {
    each(|ws| {
        // The name of the last file is too long for the file system, which
        // only its creation finds out.
        ws.write("a", "1\n").write("b", "2\n").write("c", "3\n");
        let long = format!("new/{}", "x".repeat(300));
        let operations = [
            update("a", "1", "x"),
            delete("b"),
            rename("c", "d"),
            add(&long, "y"),
        ]
        .join("\n");
        let kinds = ws.fails(&operations, Options::safe());
        assert!(
            matches!(kinds[..], [FailureKind::Write(Cause::Os { code: 36 })]),
            "{kinds:?}"
        );
    });
}

#[test]
fn links_are_followed_inside_and_acted_on_by_name() {
    each(|ws| {
        ws.write("real", "1\n");
        symlink("real", ws.ws.join("link")).unwrap();
        symlink("nowhere", ws.ws.join("dangling")).unwrap();
        symlink("../out/secret", ws.ws.join("leak")).unwrap();
        fs::write(ws.out.join("secret"), "keep\n").unwrap();
        ws.applies(&update("link", "1", "2"));
        ws.applies(&[delete("dangling"), delete("leak"), rename("link", "moved")].join("\n"));
        ws.holds(&[("moved", "-> real"), ("real", "2\n")]);
        ws.applies(&relocate("moved", "copy", "2", "3"));
        ws.holds(&[("copy", "3\n"), ("real", "2\n")]);
        assert_eq!(fs::read_to_string(ws.out.join("secret")).unwrap(), "keep\n");
    });
}

#[test]
fn nothing_passes_through_a_link_that_the_patch_removes() {
    each(|ws| {
        ws.write("dir/f", "1\n");
        symlink("dir", ws.ws.join("link")).unwrap();
        let kinds = ws.fails(
            &[delete("link"), add("link/n", "x")].join("\n"),
            Options::safe(),
        );
        assert!(matches!(
            kinds[..],
            [FailureKind::Write(Cause::ParentRemoved { line: 2 })]
        ));
        ws.applies(&[add("link/n", "x"), delete("link")].join("\n"));
        ws.holds(&[("dir/", ""), ("dir/f", "1\n"), ("dir/n", "x\n")]);
    });
}

#[test]
fn both_names_of_one_file_stay_one_file() {
    each(|ws| {
        ws.write("a", "1\n2\n");
        fs::hard_link(ws.ws.join("a"), ws.ws.join("b")).unwrap();
        ws.applies(&[update("a", "1", "x"), update("b", "2", "y")].join("\n"));
        ws.holds(&[("a", "x\ny\n"), ("b", "x\ny\n")]);
        let inode = |name: &str| fs::metadata(ws.ws.join(name)).unwrap().ino();
        assert_eq!(inode("a"), inode("b"));
    });
}

#[test]
fn a_name_outside_keeps_the_old_bytes_and_is_reported() {
    each(|ws| {
        fs::write(ws.out.join("o"), "1\n").unwrap();
        fs::hard_link(ws.out.join("o"), ws.ws.join("a")).unwrap();
        let report = ws.applies(&update("a", "1", "2"));
        ws.holds(&[("a", "2\n")]);
        assert_eq!(fs::read_to_string(ws.out.join("o")).unwrap(), "1\n");
        let broken = Note::LinksBroken {
            path: "a".into(),
            others: 1,
        };
        assert_eq!(report.notes, [broken]);
    });
}

#[test]
fn a_link_never_takes_the_place_of_what_it_leads_to() {
    for options in [Options::safe(), Options::codex()] {
        each(|ws| {
            ws.write("a", "precious\n");
            symlink("a", ws.ws.join("l")).unwrap();
            let kinds = ws.fails(&rename("l", "a"), options);
            assert!(matches!(
                kinds[..],
                [FailureKind::Write(Cause::OntoOwnTarget)]
            ));
        });
    }
    each(|ws| {
        ws.write("a", "1\n");
        symlink("a", ws.ws.join("l")).unwrap();
        let report = ws
            .apply(&relocate("l", "a", "1", "2"), Options::codex())
            .unwrap();
        ws.holds(&[("a", "2\n")]);
        assert_eq!(report.notes, []);
    });
}

#[test]
fn names_that_the_patch_itself_changes_follow_nobody() {
    each(|ws| {
        ws.write("a", "1\n");
        fs::hard_link(ws.ws.join("a"), ws.ws.join("h")).unwrap();
        fs::hard_link(ws.ws.join("a"), ws.ws.join("k")).unwrap();
        ws.applies(&[delete("a"), update("h", "1", "2")].join("\n"));
        ws.holds(&[("h", "2\n"), ("k", "2\n")]);
        let report = ws.applies(&[update("h", "2", "3"), rename("k", "z")].join("\n"));
        ws.holds(&[("h", "3\n"), ("z", "3\n")]);
        assert!(report.changes.len() == 2, "{report:?}");
    });
    each(|ws| {
        ws.write("a", "1\n");
        fs::hard_link(ws.ws.join("a"), ws.ws.join("h")).unwrap();
        let report = ws.applies(&relocate("a", "x", "1", "2"));
        ws.holds(&[("h", "1\n"), ("x", "2\n")]);
        let broken = Note::LinksBroken {
            path: "x".into(),
            others: 1,
        };
        assert_eq!(report.notes, [broken]);
    });
}

#[test]
fn a_chain_of_links_is_noted_by_its_end() {
    each(|ws| {
        ws.write("a", "1\n");
        symlink("a", ws.ws.join("one")).unwrap();
        symlink("one", ws.ws.join("two")).unwrap();
        let report = ws.applies(&update("two", "1", "2"));
        let note = Note::ThroughLink {
            path: "two".into(),
            target: ws.ws.join("a"),
        };
        assert_eq!(report.notes, [note]);
    });
}

#[test]
fn an_update_through_a_link_to_nothing_says_so() {
    each(|ws| {
        symlink("nothing", ws.ws.join("l")).unwrap();
        let kinds = ws.fails(&update("l", "1", "2"), Options::safe());
        assert!(
            matches!(&kinds[..], [FailureKind::Read(Cause::Dangling { hop })]
            if hop.target == "nothing")
        );
    });
}

#[test]
fn an_append_only_directory_keeps_what_it_has() {
    each(|ws| {
        ws.write("i/f", "1\n").write("g", "1\n");
        let directory = ws.ws.join("i");
        let chattr = |flag: &str| {
            let status = std::process::Command::new("chattr")
                .arg(flag)
                .arg(&directory)
                .status();
            status.is_ok_and(|status| status.success())
        };
        if !chattr("+a") {
            println!("SKIP: chattr +a needs root and a file system that knows it");
            return;
        }
        let added = ws.apply(
            &[update("g", "1", "2"), add("i/n", "x")].join("\n"),
            Options::safe(),
        );
        let updated = ws.apply(&update("i/f", "1", "2"), Options::safe());
        let after = ws.tree();
        assert!(chattr("-a"));
        assert!(matches!(added, Err(ApplyError::Failed(_))), "{added:?}");
        assert!(updated.is_ok(), "in place: {updated:?}");
        let names: Vec<&str> = after.keys().map(String::as_str).collect();
        assert_eq!(names, ["g", "i/", "i/f"]);
        assert_eq!(after["g"], "1\n");
    });
}

#[test]
fn a_name_that_goes_does_not_follow_the_name_that_is_edited() {
    each(|ws| {
        ws.write("a", "old\n");
        for name in ["b", "c"] {
            fs::hard_link(ws.ws.join("a"), ws.ws.join(name)).unwrap();
        }
        let patch = [delete("b"), update("a", "old", "new")].join("\n");
        let report = ws.applies(&patch);
        ws.holds(&[("a", "new\n"), ("c", "new\n")]);
        let path = "a".to_owned();
        assert_eq!(report.notes, [Note::LinksFollowed { path, others: 1 }]);
        let patch = [update("a", "new", "newer"), delete("c"), add("c", "other")].join("\n");
        ws.applies(&patch);
        ws.holds(&[("a", "newer\n"), ("c", "other\n")]);
    });
}
