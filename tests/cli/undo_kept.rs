//! What is kept for `sandpatch undo`, for how long, and where it cannot be.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sandpatch_tests::limited::{self, Ended, Outcome};
use sandpatch_tests::{Identity, Place, Snapshot, Tree};
use serde_json::Value;

use crate::undo_take::{apply, ids, patch, refused, run, undo};

const LIMIT: Duration = Duration::from_secs(60);

const UPDATE: &str = "*** Update File: f\n@@\n-old\n+new\n";

fn place(identity: Identity) -> Place {
    let place = Place::new(identity);
    place.write("ws/f", "old\n");
    place
}

#[test]
fn the_last_twenty_are_kept() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        for n in 1..=25 {
            apply(&place, &[], &format!("*** Add File: {n}\n+x\n"));
        }
        place.mkdir("out/other");
        let other = place.out().join("other");
        apply(
            &place,
            &["-C", other.to_str().unwrap()],
            "*** Add File: a\n+x\n",
        );
        assert_eq!(ids(&place).len(), 20);
        for n in (6..=25).rev() {
            assert!(undo(&place, &[]).succeeded(), "{n}");
            assert!(!place.ws().join(n.to_string()).exists(), "{n}");
        }
        refused(&undo(&place, &[]), "nothing to undo");
        assert_eq!(fs::read_dir(place.ws()).unwrap().count(), 5);
    }
}

fn large(place: &Place, name: &str, mebibytes: u64) {
    let relative = format!("ws/{name}");
    place.write(&relative, "");
    let file = File::options().write(true).open(place.top().join(relative));
    file.unwrap().set_len(mebibytes << 20).unwrap();
}

#[test]
fn what_is_kept_has_a_size_in_all() {
    let place = Place::new(Identity::Caller);
    large(&place, "a", 40);
    large(&place, "b", 20);
    large(&place, "c", 10);
    for name in ["a", "b", "c"] {
        apply(&place, &[], &format!("*** Delete File: {name}\n"));
    }
    assert_eq!(ids(&place).len(), 2, "the oldest had to go");
    for name in ["c", "b"] {
        assert!(undo(&place, &[]).succeeded(), "{name}");
        assert!(place.ws().join(name).exists());
    }
    assert_eq!(fs::metadata(place.ws().join("b")).unwrap().len(), 20 << 20);
    refused(&undo(&place, &[]), "nothing to undo");
}

#[test]
fn a_patch_that_replaces_too_much_is_applied_and_says_that_it_stays() {
    let place = place(Identity::Caller);
    apply(&place, &[], UPDATE);
    large(&place, "large", 65);
    let outcome = apply(&place, &[], "*** Delete File: large\n");
    let said =
        "note: this patch cannot be undone: what the patch replaced is more than 67108864 bytes\n";
    assert_eq!(outcome.stderr_text(), said);
    assert!(!place.ws().join("large").exists());
    assert_eq!(ids(&place).len(), 1, "the older one can still be undone");
    assert!(undo(&place, &[]).succeeded());
}

/// Applies with a place for the state, and returns what text and JSON say.
fn with_state(place: &Place, state: &Path) -> (Outcome, Value) {
    let apply = |options: &[&str], operations: &str| {
        let mut command = place.command(place.exe());
        command
            .arg("apply")
            .args(options)
            .env("XDG_STATE_HOME", state);
        let outcome = limited::run(command, patch(operations).as_bytes(), LIMIT);
        assert!(outcome.succeeded(), "{outcome}");
        outcome
    };
    let text = apply(&[], UPDATE);
    let json = apply(&["--json"], "*** Update File: f\n@@\n-new\n+newer\n");
    assert_eq!(json.stderr_text(), "");
    let text_now = fs::read_to_string(place.ws().join("f")).unwrap();
    assert_eq!(text_now, "newer\n");
    (text, serde_json::from_slice(&json.stdout).unwrap())
}

#[test]
fn where_no_record_can_be_patches_apply_and_programs_are_told() {
    for identity in Identity::all() {
        let closed = |place: &Place| {
            place.mkdir("home/closed");
            let path = place.top().join("home/closed");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
            place.mkdir("home/closed/sandpatch");
            let path = path.join("sandpatch");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
            place.top().join("home/closed")
        };
        type State = dyn Fn(&Place) -> PathBuf;
        let states: [(&str, &State); 4] = [
            ("overlap", &|place| place.ws().join("state")),
            ("overlap", &|place| place.ws()),
            ("failed to open the directory", &|place| {
                place.ws().join("f/state")
            }),
            ("is open to other users", &closed),
        ];
        for (why, state) in states {
            let place = place(identity);
            let state = state(&place);
            let before = Snapshot::of(place.top());
            let (text, json) = with_state(&place, &state);
            assert_eq!(text.stderr_text(), "", "{why}");
            let note = &json["notes"][0];
            assert_eq!(note["kind"], "no-undo", "{why}: {json}");
            let message = note["message"].as_str().unwrap();
            assert!(
                message.starts_with("this patch cannot be undone: "),
                "{message}"
            );
            assert!(message.contains(why), "{why}: {message}");
            let changed = before.difference(&Snapshot::of(place.top()));
            assert_eq!(changed.lines().count(), 1, "only the file: {changed}");
        }
    }
}

#[test]
fn a_home_that_cannot_be_written_is_no_hindrance() {
    let identity = *Identity::all().last().unwrap();
    if nix::unistd::geteuid().is_root() && identity == Identity::Caller {
        return;
    }
    let place = place(identity);
    let home = place.top().join("home");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o555)).unwrap();
    let (text, json) = with_state(&place, &home.join("state"));
    assert_eq!(text.stderr_text(), "");
    let message = json["notes"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("failed to make the directory"),
        "{message}"
    );
    assert!(message.contains("Permission denied"), "{message}");
}

/// The first patch of a new user is in a directory of the home.
#[test]
fn a_workspace_below_the_home_is_no_hindrance() {
    for identity in Identity::all() {
        let place = place(identity);
        let state = place.top().join("out/.local/state");
        place.write("out/project/f", "old\n");
        let start = |arguments: &[&str], input: &str| {
            let mut command = place.command(place.exe());
            command
                .args(arguments)
                .current_dir(place.out().join("project"))
                .env("XDG_STATE_HOME", &state);
            limited::run(command, input.as_bytes(), LIMIT)
        };
        let applied = start(&["apply"], &patch(UPDATE));
        assert!(applied.succeeded(), "{applied}");
        let undone = start(&["undo"], "");
        assert!(undone.succeeded(), "{undone}");
        let text = fs::read_to_string(place.out().join("project/f")).unwrap();
        assert_eq!(text, "old\n");
    }
}

#[test]
fn a_command_cannot_touch_what_is_kept() {
    for identity in Identity::all() {
        let place = place(identity);
        apply(&place, &[], UPDATE);
        let kept = Snapshot::of(&place.top().join("home"));
        assert!(kept.0.len() > 3, "{kept:?}");
        let undo_dir = place.top().join("home/state/sandpatch/undo");
        let names = std::fs::read_dir(&undo_dir).unwrap();
        let record = names.map(|entry| entry.unwrap().path()).next().unwrap();
        let record = record.to_str().unwrap();
        let script = "u=../home/state/sandpatch/undo\n\
            for do in 'ls $u' 'cd $u' 'cat $f' 'echo x >>$f' 'rm $f' 'mv $f $f.0' 'echo x >$u/new' \
            'ln -s x $u/new' 'chmod 644 $f' 'mv ../home/state ../home/s' 'rmdir ../home/state/sandpatch'\n\
            do (f=$0; eval \"$do\") >/dev/null 2>&1 && echo \"could $do\"; done; echo done";
        let outcome = run(&place, &["run", "--", "sh", "-c", script, record], "");
        assert_eq!(
            String::from_utf8_lossy(&outcome.stdout),
            "done\n",
            "{outcome}"
        );
        assert_eq!(
            kept.difference(&Snapshot::of(&place.top().join("home"))),
            ""
        );
        let reach = "*** Add File: ../home/state/sandpatch/undo/x\n+x\n";
        let outcome = run(&place, &["apply"], &patch(reach));
        assert_eq!(outcome.ended, Ended::Code(3), "{outcome}");
        assert!(undo(&place, &[]).succeeded(), "control");
    }
}

/// Where a further root holds the state, a command could forge it from then on.
#[test]
fn below_a_further_root_nothing_is_kept() {
    for identity in Identity::all() {
        let place = place(identity);
        let home = place.top().join("home");
        let writable = ["--writable", home.to_str().unwrap()];
        apply(&place, &writable, UPDATE);
        assert!(!home.join("state").exists());
        refused(&undo(&place, &[]), "nothing to undo");
    }
}

/// Whoever comes first, both are whole: they take turns.
#[test]
fn an_undo_and_a_patch_at_once_take_turns() {
    for identity in Identity::all() {
        for _ in 0..10 {
            let place = Place::new(identity);
            place.write("ws/f", "old a\nold b\n");
            apply(&place, &[], "*** Update File: f\n@@\n-old a\n+new a\n");
            let id = ids(&place).remove(0);
            let text = patch("*** Update File: f\n@@\n-old b\n+new b\n");
            let (undone, applied) = thread::scope(|scope| {
                let undone = scope.spawn(|| undo(&place, &[&id]));
                let applied = run(&place, &["apply"], &text);
                (undone.join().unwrap(), applied)
            });
            assert!(applied.succeeded(), "{applied}");
            let first = match undone.ended {
                Ended::Code(0) => "old a",
                Ended::Code(1) => "new a",
                other => panic!("{other:?}: {undone}"),
            };
            let text = fs::read_to_string(place.ws().join("f")).unwrap();
            assert_eq!(text, format!("{first}\nnew b\n"), "{undone}");
            assert!(Tree::of(&place.ws()).litter().is_empty());
        }
    }
}

/// It would be in the way of the one before it.
#[test]
fn a_patch_that_changes_nothing_keeps_nothing() {
    for identity in Identity::all() {
        let place = place(identity);
        apply(&place, &[], UPDATE);
        apply(&place, &[], "*** Update File: f\n@@\n-new\n+new\n");
        assert_eq!(ids(&place).len(), 1);
        assert!(undo(&place, &[]).succeeded());
        assert_eq!(fs::read_to_string(place.ws().join("f")).unwrap(), "old\n");
    }
}
