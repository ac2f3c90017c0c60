//! `sandpatch undo --list`: records as they lie on disk, and what is said of them.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandpatch_tests::identity::ORDINARY_UID;
use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::{Identity, Outcome, Place, skip};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(20);

fn list(place: &Place, state: &Path, options: &[&str]) -> Outcome {
    let mut command = place.command(place.exe());
    command
        .args(["undo", "--list"])
        .args(options)
        .env("XDG_STATE_HOME", state);
    limited::run(command, b"", LIMIT)
}

/// The FNV-1a hash of a path, which stands for the workspace in names.
fn key(path: &Path) -> u64 {
    path.as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// Writes a record, and returns its path.
fn record(place: &Place, id: &str, time: u64, workspace: &Path, paths: &[&str]) -> PathBuf {
    let changes: Vec<Value> = paths
        .iter()
        .map(|path| json!({"kind": "modified", "path": path}))
        .collect();
    let header = json!({
        "version": 1, "time": time, "dialect": "safe", "roots": [],
        "workspace": {"path": workspace.to_str().unwrap(), "dev": 1, "ino": 2},
        "changes": changes, "more_changes": 0,
    });
    let header = header.to_string();
    let mut bytes = b"a body".to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(b"sndpatch");
    let name = format!(
        "{time:016x}.{id}.{:016x}.{:016x}",
        key(workspace),
        bytes.len()
    );
    let relative = format!("out/state/sandpatch/undo/{name}");
    place.write(&relative, bytes);
    for dir in ["out/state/sandpatch", "out/state/sandpatch/undo"] {
        set_mode(&place.top().join(dir), 0o700);
    }
    let path = place.top().join(relative);
    set_mode(&path, 0o600);
    path
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn stdout(outcome: &Outcome) -> String {
    assert!(outcome.succeeded(), "{outcome}");
    String::from_utf8(outcome.stdout.clone()).unwrap()
}

#[test]
fn the_newest_comes_first_and_other_workspaces_do_not() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        let ws = place.ws();
        record(&place, "00000001", 60, &ws, &["a"]);
        record(&place, "00000002", 86_400, &ws, &["b", "c d", "e", "f"]);
        record(&place, "00000003", 90, &place.top().join("home"), &["g"]);
        let state = place.out().join("state");
        let outcome = list(&place, &state, &[]);
        assert_eq!(
            stdout(&outcome),
            "00000002 1970-01-02T00:00:00Z M b, M c d, M e, 1 more\n\
             00000001 1970-01-01T00:01:00Z M a\n"
        );
        assert_eq!(outcome.stderr_text(), "");
        let there = stdout(&list(&place, &state, &["-C", "../home"]));
        assert_eq!(there, "00000003 1970-01-01T00:01:30Z M g\n");
    }
}

#[test]
fn programs_get_one_object() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        record(&place, "0000000a", 60, &place.ws(), &["a"]);
        let bad = record(&place, "0000000b", 61, &place.ws(), &["b"]);
        set_mode(&bad, 0o644);
        let state = place.out().join("state");
        let said: Value =
            serde_json::from_str(&stdout(&list(&place, &state, &["--json"]))).unwrap();
        let expected = json!({
            "version": 1,
            "transactions": [{
                "id": "0000000a", "time": "1970-01-01T00:01:00Z", "dialect": "safe",
                "changes": [{"kind": "modified", "path": "a"}], "more_changes": 0,
            }],
            "unreadable": [{
                "id": "0000000b", "message": "the undo record is not the file that was kept",
            }],
        });
        assert_eq!(said, expected);
        let text = list(&place, &state, &[]);
        assert!(
            text.stderr_text()
                .starts_with("warning: transaction 0000000b"),
            "{text}"
        );
    }
}

#[test]
fn without_records_there_is_nothing_to_undo() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        let state = place.top().join("home/none");
        let outcome = list(&place, &state, &[]);
        assert_eq!(stdout(&outcome), "");
        assert!(
            outcome
                .stderr_text()
                .starts_with("note: nothing to undo in "),
            "{outcome}"
        );
        let said: Value =
            serde_json::from_str(&stdout(&list(&place, &state, &["--json"]))).unwrap();
        assert_eq!(said["transactions"], json!([]));
        assert!(!state.exists(), "looking makes nothing");
    }
}

#[test]
fn records_that_a_sandbox_could_write_are_not_believed() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        record(&place, "00000001", 60, &place.top().join("out"), &["a"]);
        let state = place.out().join("state");
        // The workspace holds the state: a command in it could have written that.
        let outcome = list(&place, &state, &["-C", "../out"]);
        assert_eq!(outcome.ended, Ended::Code(1), "{outcome}");
        assert!(outcome.stderr_text().contains("overlap"), "{outcome}");
        assert_eq!(outcome.stdout, b"");
    }
}

#[test]
fn root_does_not_lend_its_state_to_another_user() {
    if !nix::unistd::geteuid().is_root() {
        skip::skip(
            "state of an assumed user",
            "only root can become another user",
        )
        .unwrap();
        return;
    }
    let place = Place::new(Identity::Uid(ORDINARY_UID));
    record(&place, "00000001", 60, &place.ws(), &["a"]);
    let state = place.out().join("state");
    let mut command = std::process::Command::new(place.exe());
    command
        .args(["undo", "--list", "--as-user", "12345:12345"])
        .current_dir(place.ws())
        .env("XDG_STATE_HOME", &state);
    let outcome = limited::run(command, b"", LIMIT);
    assert_eq!(outcome.ended, Ended::Code(1), "{outcome}");
    assert!(
        outcome.stderr_text().contains("no home directory is known"),
        "{outcome}"
    );
    assert!(
        stdout(&list(&place, &state, &[])).starts_with("00000001"),
        "control"
    );
}
