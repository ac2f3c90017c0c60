//! `sandpatch undo`: a patch that was applied is taken back, and everything is
//! as it was.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sandpatch_tests::limited::{self, Ended, Outcome};
use sandpatch_tests::{Identity, Place, Scenario, Snapshot, Tree};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the executable with arguments and standard input.
pub fn run(place: &Place, arguments: &[&str], input: &str) -> Outcome {
    let mut command = place.command(place.exe());
    command.args(arguments);
    limited::run(command, input.as_bytes(), LIMIT)
}

/// Applies a patch of these operations, and expects success.
pub fn apply(place: &Place, options: &[&str], operations: &str) -> Outcome {
    let outcome = run(place, &[&["apply"], options].concat(), &patch(operations));
    assert!(outcome.succeeded(), "{outcome}");
    outcome
}

pub fn patch(operations: &str) -> String {
    format!("*** Begin Patch\n{operations}*** End Patch\n")
}

pub fn undo(place: &Place, options: &[&str]) -> Outcome {
    run(place, &[&["undo"], options].concat(), "")
}

/// Expects code 1 and a text on standard error, and nothing on standard output.
pub fn refused(outcome: &Outcome, said: &str) {
    assert_eq!(outcome.ended, Ended::Code(1), "{outcome}");
    assert!(outcome.stderr_text().contains(said), "{said}: {outcome}");
    assert_eq!(outcome.stdout, b"", "{outcome}");
}

/// The ids of what can be undone in the workspace, newest first.
pub fn ids(place: &Place) -> Vec<String> {
    let outcome = undo(place, &["--list"]);
    assert!(outcome.succeeded(), "{outcome}");
    let text = String::from_utf8(outcome.stdout).unwrap();
    let id = |line: &str| line.split(' ').next().unwrap().to_owned();
    text.lines().map(id).collect()
}

fn stdout(outcome: &Outcome) -> String {
    assert!(outcome.succeeded(), "{outcome}");
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

#[test]
fn every_kind_of_change_is_taken_back_in_one() {
    let scenario = Scenario::twenty();
    scenario.reset();
    let (place, before) = (&scenario.place, scenario.tree());
    let applied = run(place, &["apply", "--dialect", "codex"], &scenario.patch);
    assert!(applied.succeeded(), "{applied}");
    assert_ne!(scenario.tree(), before);
    let undone = undo(place, &[]);
    let said = stdout(&undone);
    assert!(
        said.starts_with("Undone. Updated the following files:\nA "),
        "{said}"
    );
    assert_eq!(before.difference(&scenario.tree()), "");
    assert_eq!(
        ids(place),
        Vec::<String>::new(),
        "it cannot be undone twice"
    );
}

#[test]
fn modes_links_and_directories_come_back() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/run", "one\n");
        place.write("ws/secret", "two\n");
        place.write("ws/read-only", "three\n");
        place.write("ws/f", "four\n");
        place.link("ws/link", "f");
        place.link("ws/dangling", "nowhere");
        for (name, bits) in [("run", 0o750), ("secret", 0o600), ("read-only", 0o444)] {
            mode(&place.ws().join(name), bits);
        }
        let before = Snapshot::of(&place.ws());
        apply(
            &place,
            &[],
            "*** Update File: run\n@@\n-one\n+1\n*** Delete File: secret\n*** Delete File: read-only\n\
             *** Delete File: dangling\n*** Update File: link\n*** Move to: d/e/link\n\
             *** Add File: new/deep/file\n+x\n",
        );
        let after = Snapshot::of(&place.ws());
        assert!(before.difference(&after).lines().count() > 7, "control");
        let undone = undo(&place, &[]);
        assert!(undone.succeeded(), "{undone}");
        assert_eq!(undone.stderr_text(), "");
        assert_eq!(before.difference(&Snapshot::of(&place.ws())), "");
    }
}

/// Root's files may belong to anybody, and a file may have attributes.
#[test]
fn owners_and_attributes_of_deleted_files_come_back() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/f", "one\n");
        let path = place.ws().join("f");
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&path, "user.note", b"kept", flags).unwrap();
        if nix::unistd::geteuid().is_root() && identity == Identity::Caller {
            std::os::unix::fs::chown(&path, Some(777), Some(778)).unwrap();
        }
        mode(&path, 0o640);
        let of = |path: &Path| {
            let meta = fs::metadata(path).unwrap();
            let mut value = [0; 16];
            let length = rustix::fs::getxattr(path, "user.note", &mut value[..]).unwrap();
            (
                meta.uid(),
                meta.gid(),
                meta.mode(),
                value[..length].to_vec(),
            )
        };
        let before = of(&path);
        for operations in [
            "*** Delete File: f\n",
            "*** Update File: f\n@@\n-one\n+1\n",
            "*** Update File: f\n*** Move to: g\n@@\n-one\n+1\n",
        ] {
            apply(&place, &[], operations);
            let undone = undo(&place, &[]);
            assert!(undone.succeeded(), "{operations}: {undone}");
            assert_eq!(of(&path), before, "{operations}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        }
    }
}

#[test]
fn the_newest_goes_first_and_then_the_one_before() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/f", "0\n");
        let mut trees = vec![Tree::of(&place.ws())];
        for n in 0..3 {
            apply(
                &place,
                &[],
                &format!("*** Update File: f\n@@\n-{n}\n+{}\n", n + 1),
            );
            trees.push(Tree::of(&place.ws()));
        }
        trees.pop();
        while let Some(tree) = trees.pop() {
            assert_eq!(ids(&place).len(), trees.len() + 1);
            assert_eq!(
                stdout(&undo(&place, &[])),
                "Undone. Updated the following files:\nM f\n"
            );
            assert_eq!(Tree::of(&place.ws()), tree);
        }
        refused(&undo(&place, &[]), "Error: nothing to undo in /");
    }
}

#[test]
fn an_older_one_is_named_by_its_id() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/f", "old\n");
        apply(&place, &[], "*** Update File: f\n@@\n-old\n+new\n");
        apply(&place, &[], "*** Add File: g\n+x\n");
        let newest_first = ids(&place);
        let undone = undo(&place, &[&newest_first[1].to_uppercase()]);
        assert!(undone.succeeded(), "{undone}");
        assert_eq!(fs::read_to_string(place.ws().join("f")).unwrap(), "old\n");
        assert!(place.ws().join("g").exists());
        assert_eq!(ids(&place), newest_first[..1]);
    }
}

#[test]
fn the_directory_of_the_option_is_meant() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.mkdir("ws/sub");
        place.write("ws/sub/f", "old\n");
        let sub = ["-C", "sub"];
        apply(&place, &sub, "*** Update File: f\n@@\n-old\n+new\n");
        refused(&undo(&place, &[]), "nothing to undo");
        assert!(undo(&place, &sub).succeeded());
        let text = fs::read_to_string(place.ws().join("sub/f")).unwrap();
        assert_eq!(text, "old\n");
    }
}

#[test]
fn further_roots_need_not_be_named_again() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/f", "old\n");
        place.write("out/g", "old\n");
        let before = Tree::of(place.top());
        let out = place.out();
        let out = out.to_str().unwrap();
        let operations = format!(
            "*** Update File: f\n*** Move to: {out}/moved/f\n@@\n-old\n+new\n*** Delete File: {out}/g\n"
        );
        apply(&place, &["--writable", out], &operations);
        assert_ne!(before.difference(&Tree::of(place.top())), "");
        let undone = undo(&place, &[]);
        assert!(undone.succeeded(), "{undone}");
        for dir in [place.ws(), place.out()] {
            assert!(Tree::of(&dir).litter().is_empty());
        }
        fs::remove_dir_all(place.top().join("home/state")).unwrap();
        let _ = fs::remove_dir(place.top().join("home/state"));
        assert_eq!(before.difference(&Tree::of(place.top())), "");
    }
}

#[test]
fn every_front_door_keeps_a_record() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        let before = Tree::of(&place.ws());
        let add = patch("*** Add File: f\n+x\n");
        let alias = || {
            let mut command = place.command(place.alias());
            command.arg(&add);
            command
        };
        let flag = || {
            let mut command = place.command(place.exe());
            command.args(["--run-as-apply-patch", &add]);
            command
        };
        let unsandboxed = || {
            let mut command = place.command(place.exe());
            command.args(["apply", "--backend", "none", &add]);
            command
        };
        let doors: [&dyn Fn() -> Command; 3] = [&alias, &flag, &unsandboxed];
        for door in doors {
            let applied = limited::run(door(), b"", LIMIT);
            assert!(applied.succeeded(), "{applied}");
            assert_eq!(ids(&place).len(), 1);
            let undone = undo(&place, &[]);
            assert!(undone.succeeded(), "{undone}");
            assert_eq!(Tree::of(&place.ws()), before);
        }
    }
}

#[test]
fn without_a_sandbox_it_is_taken_back_too_and_says_so() {
    let place = Place::new(Identity::Caller);
    place.write("ws/f", "old\n");
    apply(&place, &[], "*** Update File: f\n@@\n-old\n+new\n");
    let undone = undo(&place, &["--backend", "none"]);
    assert!(undone.succeeded(), "{undone}");
    assert!(
        undone.stderr_text().starts_with("note: no sandbox: "),
        "{undone}"
    );
    assert_eq!(fs::read_to_string(place.ws().join("f")).unwrap(), "old\n");
}

#[test]
fn programs_get_the_object_of_a_patch() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/f", "old\n");
        apply(
            &place,
            &[],
            "*** Update File: f\n@@\n-old\n+new\n*** Add File: g\n+x\n",
        );
        let undone = undo(&place, &["--json"]);
        let said: Value = serde_json::from_str(&stdout(&undone)).unwrap();
        let expected = json!({
            "version": 1, "status": "undone", "exit_code": 0, "hunks": [], "notes": [], "errors": [],
            "changes": [
                {"kind": "deleted", "path": "g"},
                {"kind": "modified", "path": "f"},
            ],
        });
        assert_eq!(said, expected);
        assert_eq!(undone.stderr_text(), "");
        let again = undo(&place, &["--json"]);
        assert_eq!(again.ended, Ended::Code(1));
        assert_eq!(again.stderr_text(), "");
        let said: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(said["status"], "failed");
        assert_eq!(said["errors"][0]["kind"], "nothing-to-undo");
        let recovered = stdout(&undo(&place, &["--recover", "--json"]));
        let said: Value = serde_json::from_str(&recovered).unwrap();
        assert_eq!(
            (&said["status"], &said["notes"]),
            (&json!("recovered"), &json!([]))
        );
    }
}
