//! `sandpatch undo` where it must not: every refusal says why, and changes nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use sandpatch_tests::identity::ORDINARY_UID;
use sandpatch_tests::limited::{Ended, Outcome};
use sandpatch_tests::{Identity, Place, Tree, skip};
use serde_json::Value;

use crate::undo_take::{apply, ids, patch, refused, run, undo};

const UPDATE: &str = "*** Update File: f\n@@\n-old\n+new\n";

fn place(identity: Identity) -> Place {
    let place = Place::new(identity);
    place.write("ws/f", "old\n");
    place.write("ws/g", "old\n");
    place.write("ws/h", "old\n");
    place
}

/// Where the place's records lie.
fn records(place: &Place) -> Vec<PathBuf> {
    let dir = place.top().join("home/state/sandpatch/undo");
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Undoes, expects a refusal that says this, and that nothing was changed.
fn stays(place: &Place, options: &[&str], said: &str) {
    let (before, kept) = (Tree::of(&place.ws()), records(place));
    refused(&undo(place, options), said);
    assert_eq!(before.difference(&Tree::of(&place.ws())), "", "{said}");
    assert_eq!(records(place), kept, "{said}");
}

#[test]
fn all_files_that_were_changed_since_are_named() {
    for identity in Identity::all() {
        let place = place(identity);
        apply(
            &place,
            &[],
            "*** Update File: f\n@@\n-old\n+new\n*** Delete File: g\n\
             *** Update File: h\n*** Move to: d/h\n*** Add File: new\n+x\n",
        );
        let applied = Tree::of(&place.ws());
        place.write("ws/f", "theirs\n");
        place.write("ws/g", "theirs\n");
        place.write("ws/d/h", "theirs\n");
        stays(
            &place,
            &[],
            "Error: not undone, since this would be lost:\n  d/h was changed since the patch was applied\n",
        );
        let said = undo(&place, &[]).stderr_text();
        for name in ["d/h", "f", "g"] {
            let line = format!("\n  {name} was changed since the patch was applied\n");
            assert!(said.contains(&line), "{name}: {said}");
        }
        assert!(!said.contains("new was"), "{said}");
        assert!(said.ends_with("note: nothing was changed\n"), "{said}");
        let answer: Value = serde_json::from_slice(&undo(&place, &["--json"]).stdout).unwrap();
        assert_eq!(answer["status"], "failed");
        let errors = answer["errors"].as_array().unwrap();
        let paths: Vec<&str> = errors.iter().filter_map(|e| e["path"].as_str()).collect();
        assert_eq!(paths, ["d/h", "f", "g"]);
        assert!(errors.iter().all(|error| error["kind"] == "changed-since"));
        // When they are as the patch left them it works.
        fs::remove_file(place.ws().join("g")).unwrap();
        place.write("ws/f", "new\n");
        place.write("ws/d/h", "old\n");
        assert_eq!(applied.difference(&Tree::of(&place.ws())), "");
        assert!(undo(&place, &[]).succeeded());
    }
}

/// What is said of a path of the patch does not act on the terminal.
#[test]
fn names_with_control_characters_are_escaped() {
    let place = place(Identity::Caller);
    apply(&place, &[], "*** Add File: a\u{1b}[2Jb\n+x\n");
    place.write("ws/a\u{1b}[2Jb", "theirs\n");
    let outcome = undo(&place, &[]);
    refused(&outcome, "a\\u{1b}[2Jb was changed");
    assert!(!outcome.stderr.contains(&0x1b), "{outcome}");
}

#[test]
fn ids_that_name_nothing_here_are_refused() {
    for identity in Identity::all() {
        let place = place(identity);
        stays(
            &place,
            &["12345678"],
            "Error: there is no transaction 12345678\n",
        );
        stays(&place, &[], "Error: nothing to undo in ");
        apply(&place, &[], UPDATE);
        stays(&place, &["12345678"], "  hint: sandpatch undo --list shows");
        for bad in ["1234567", "newest", "1234567g", "../f", ""] {
            let outcome = undo(&place, &[bad]);
            assert_eq!(outcome.ended, Ended::Code(2), "{bad}: {outcome}");
        }
        let kept = ids(&place).remove(0);
        for switch in ["--list", "--recover"] {
            let outcome = undo(&place, &[&kept, switch]);
            assert_eq!(outcome.ended, Ended::Code(2), "{switch}: {outcome}");
        }
        assert_eq!(ids(&place), [kept]);
    }
}

#[test]
fn another_directory_has_other_transactions() {
    for identity in Identity::all() {
        let place = place(identity);
        place.write("out/f", "old\n");
        let elsewhere = place.out();
        let elsewhere = elsewhere.to_str().unwrap();
        apply(&place, &["-C", elsewhere], UPDATE);
        apply(&place, &[], UPDATE);
        let listed = undo(&place, &["--list", "-C", elsewhere]).stdout;
        let other = String::from_utf8(listed).unwrap()[..8].to_owned();
        stays(
            &place,
            &[&other],
            &format!("transaction {other} was made in {elsewhere}\n"),
        );
        stays(
            &place,
            &[&other],
            &format!("  hint: name that directory: -C {elsewhere}\n"),
        );
        assert_eq!(fs::read_to_string(place.out().join("f")).unwrap(), "new\n");
        assert!(undo(&place, &[&other, "-C", elsewhere]).succeeded());
        assert_eq!(fs::read_to_string(place.out().join("f")).unwrap(), "old\n");
    }
}

#[test]
fn what_changes_nothing_is_not_kept() {
    for identity in Identity::all() {
        let place = place(identity);
        for switches in [&["--check"][..], &["--diff"], &["--check", "--json"]] {
            apply(&place, switches, UPDATE);
        }
        let wrong = "*** Update File: f\n@@\n-older\n+new\n";
        let failing = [
            patch(&format!("{UPDATE}{wrong}")),
            patch(&format!("{UPDATE}*** Add File: ../out/x\n+x\n")),
            patch(&format!("{UPDATE}*** Add File: .git/x\n+x\n")),
            "no patch".to_owned(),
        ];
        for text in &failing {
            let outcome = run(&place, &["apply", "-"], text);
            assert!(!outcome.succeeded(), "{outcome}");
        }
        assert_eq!(records(&place), Vec::<PathBuf>::new());
        stays(&place, &[], "nothing to undo");
        apply(&place, &[], UPDATE);
        assert_eq!(records(&place).len(), 1, "control");
    }
}

fn damaged(place: &Place, damage: &dyn Fn(&Path)) {
    place.write("ws/f", "old\n");
    apply(place, &[], "*** Update File: f\n@@\n-old\n+new\n");
    let record = records(place).remove(0);
    let meta = fs::metadata(&record).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.nlink()), (0o600, 1));
    damage(&record);
}

type Damage = fn(&Path);
/// What may happen to a record on the disk.
const DAMAGES: [(&str, Damage); 6] = [
    ("cut off", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("longer", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, [&bytes[..], b"x"].concat()).unwrap();
    }),
    ("no header", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, vec![0; bytes.len()]).unwrap();
    }),
    ("open to others", |path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }),
    ("two names", |path| {
        fs::hard_link(path, path.with_file_name("other")).unwrap();
    }),
    ("a link", |path| {
        let moved = path.with_file_name("moved");
        fs::rename(path, &moved).unwrap();
        symlink(moved, path).unwrap();
    }),
];

#[test]
fn a_record_that_is_not_what_was_kept_is_refused() {
    for identity in Identity::all() {
        for (what, damage) in DAMAGES {
            let place = place(identity);
            damaged(&place, &damage);
            // Not the one before it either: that would be out of order.
            stays(&place, &[], " cannot be undone: ");
            let listed = undo(&place, &["--list"]);
            assert!(listed.succeeded(), "{what}: {listed}");
            assert!(
                listed.stderr_text().starts_with("warning: "),
                "{what}: {listed}"
            );
            assert_eq!(
                fs::read_to_string(place.ws().join("f")).unwrap(),
                "new\n",
                "{what}"
            );
        }
    }
}

/// Its body is what the sandboxed stage wrote; it is read in a sandbox again.
#[test]
fn a_body_that_is_no_record_is_refused_by_the_stage() {
    for identity in Identity::all() {
        let place = place(identity);
        damaged(&place, &|path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[0] = b'S';
            fs::write(path, bytes).unwrap();
        });
        stays(&place, &[], "Error: what was kept is damaged: ");
        let answer: Value = serde_json::from_slice(&undo(&place, &["--json"]).stdout).unwrap();
        assert_eq!(answer["errors"][0]["kind"], "not-a-record");
    }
}

/// Puts another body in the place of the one that the sandboxed stage wrote.
fn forge(place: &Place, body: &[u8]) {
    let path = records(place).remove(0);
    let bytes = fs::read(&path).unwrap();
    let (rest, magic) = bytes.split_last_chunk::<8>().unwrap();
    let (rest, length) = rest.split_last_chunk::<4>().unwrap();
    assert_eq!(magic, b"sndpatch");
    let header = &rest[rest.len() - u32::from_le_bytes(*length) as usize..];
    let forged = [&b"sandpatch undo 1\n"[..], body, header, length, magic].concat();
    fs::write(&path, &forged).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let (name, _) = name.rsplit_once('.').unwrap();
    let name = format!("{name}.{:016x}", forged.len());
    fs::rename(&path, path.with_file_name(name)).unwrap();
}

/// What a record says is believed no more than a patch.
#[test]
fn a_forged_body_reaches_no_more_than_a_patch() {
    for identity in Identity::all() {
        let paths = [
            ("x", 0),
            (".git/hooks/x", 3),
            (".git/x", 3),
            ("../out/x", 3),
            ("out/x", 3),
        ];
        for (path, code) in paths {
            let place = place(identity);
            place.mkdir("ws/.git/hooks");
            place.link("ws/out", "../out");
            apply(&place, &[], UPDATE);
            let before = Tree::of(place.top());
            // One change: a link of this path to "a" was removed.
            let length = u8::try_from(path.len()).unwrap();
            forge(
                &place,
                &[&[1, 2, 0, length], path.as_bytes(), &[2, 0, 1, b'a']].concat(),
            );
            let (forged, outcome) = (Tree::of(place.top()), undo(&place, &[]));
            assert_eq!(outcome.ended, Ended::Code(code), "{path}: {outcome}");
            let is_made = place.ws().join(path).is_symlink();
            assert_eq!(is_made, code == 0, "{path}");
            if code != 0 {
                let said = format!("\n  path {path}\n  hint: ");
                assert!(outcome.stderr_text().contains(&said), "{outcome}");
                assert_eq!(forged.difference(&Tree::of(place.top())), "", "{path}");
                assert_ne!(before.difference(&forged), "", "it was forged");
            }
        }
    }
}

#[test]
fn the_newest_is_not_passed_over_when_it_cannot_be_read() {
    for identity in Identity::all() {
        let place = place(identity);
        apply(&place, &[], "*** Delete File: g\n");
        let older = records(&place);
        apply(&place, &[], UPDATE);
        let newest = records(&place)
            .into_iter()
            .find(|path| !older.contains(path));
        let newest = newest.unwrap();
        fs::set_permissions(&newest, fs::Permissions::from_mode(0o644)).unwrap();
        stays(&place, &[], " cannot be undone: ");
        assert!(undo(&place, &[&ids(&place)[0]]).succeeded());
        assert!(place.ws().join("g").exists());
    }
}

#[test]
fn a_record_of_another_owner_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        skip::skip("records of others", "only root can give files away").unwrap();
        return;
    }
    for identity in Identity::all() {
        let place = place(identity);
        damaged(&place, &|path| {
            std::os::unix::fs::chown(path, Some(ORDINARY_UID + 1), None).unwrap();
        });
        let outcome = undo(&place, &[]);
        assert_eq!(outcome.ended, Ended::Code(1), "{outcome}");
        assert_eq!(fs::read_to_string(place.ws().join("f")).unwrap(), "new\n");
    }
}

/// Who can write above a further root may have put a link in its place since.
#[test]
fn a_root_that_leads_elsewhere_now_is_not_written() {
    for identity in Identity::all() {
        let place = place(identity);
        place.write("out/root/f", "old\n");
        place.write("home/theirs/f", "new\n");
        let root = place.out().join("root");
        let writable = ["--writable", root.to_str().unwrap()];
        let file = root.join("f");
        apply(
            &place,
            &writable,
            &format!("*** Update File: {}\n@@\n-old\n+new\n", file.display()),
        );
        let moved = place.out().join("moved");
        fs::rename(&root, &moved).unwrap();
        let said = format!("{}, which is gone or leads elsewhere now\n", root.display());
        stays(&place, &[], &said);
        symlink(place.top().join("home/theirs"), &root).unwrap();
        stays(&place, &[], &said);
        stays(&place, &writable, &said);
        let theirs = place.top().join("home/theirs/f");
        assert_eq!(fs::read_to_string(theirs).unwrap(), "new\n");
        fs::remove_file(&root).unwrap();
        fs::rename(&moved, &root).unwrap();
        assert!(undo(&place, &[]).succeeded(), "control");
        assert_eq!(fs::read_to_string(file).unwrap(), "old\n");
    }
}

#[test]
fn records_below_a_further_root_are_not_believed() {
    for identity in Identity::all() {
        let place = place(identity);
        apply(&place, &[], UPDATE);
        let home = place.top().join("home");
        stays(&place, &["--writable", home.to_str().unwrap()], "overlap");
        assert!(undo(&place, &[]).succeeded(), "control");
    }
}

#[test]
fn of_two_at_once_one_succeeds() {
    for identity in Identity::all() {
        for _ in 0..10 {
            let place = place(identity);
            apply(&place, &[], UPDATE);
            let id = ids(&place).remove(0);
            let outcomes: Vec<Outcome> = thread::scope(|scope| {
                let start = || scope.spawn(|| undo(&place, &[&id]));
                let running = [start(), start()];
                running.map(|it| it.join().unwrap()).into()
            });
            let succeeded = outcomes.iter().filter(|it| it.succeeded()).count();
            assert_eq!(succeeded, 1, "{} {}", outcomes[0], outcomes[1]);
            assert!(outcomes.iter().any(|it| it.ended == Ended::Code(1)));
            assert_eq!(fs::read_to_string(place.ws().join("f")).unwrap(), "old\n");
            assert!(Tree::of(&place.ws()).litter().is_empty());
            assert_eq!(records(&place), Vec::<PathBuf>::new());
        }
    }
}
