//! `--as-user`: root becomes somebody else before any path is touched, so the
//! kernel applies that user's permissions. Each refusal has its control.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::unistd::geteuid;
use sandpatch_tests::identity::ORDINARY_UID;
use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::{Identity, Outcome, Place, skip};

const LIMIT: Duration = Duration::from_secs(20);

/// The ordinary user, by numbers: it has no account.
const SPEC: &str = "12345:12345";

/// A group that nothing on the host belongs to.
const GROUP: u32 = 54_321;

/// Returns a place of root's, or nothing where the tests are not root's.
fn place(test: &str) -> Option<Place> {
    if geteuid().is_root() {
        return Some(Place::new(Identity::Caller));
    }
    skip::skip(test, "only root can become another user").unwrap();
    None
}

fn apply(place: &Place, options: &[&str], patch: &str) -> Outcome {
    let mut command = place.command(place.exe());
    command.arg("apply").args(options);
    limited::run(command, patch.as_bytes(), LIMIT)
}

fn as_user(place: &Place, patch: &str) -> Outcome {
    apply(place, &["--as-user", SPEC], patch)
}

/// Runs a shell script in a sandbox with these options.
pub fn run(place: &Place, options: &[&str], script: &str) -> Outcome {
    let mut command = place.command(place.exe());
    command
        .arg("run")
        .args(options)
        .args(["--", "sh", "-c", script]);
    limited::run(command, b"", LIMIT)
}

fn set(path: &Path, owner: u32, group: u32, mode: u32) {
    chown(path, Some(owner), Some(group)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn delete(path: &str) -> String {
    format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n")
}

fn update(path: &str) -> String {
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n-old\n+new\n*** End Patch\n")
}

fn add(path: &str) -> String {
    format!("*** Begin Patch\n*** Add File: {path}\n+new\n*** End Patch\n")
}

fn refused(outcome: &Outcome) {
    assert_eq!(outcome.ended, Ended::Code(1), "{outcome}");
    let said = outcome.stderr_text();
    let denied = said.contains("Permission denied") || said.contains("Operation not permitted");
    assert!(denied, "{outcome}");
}

#[test]
fn files_of_others_in_a_sticky_directory_stay() {
    let Some(place) = place("sticky directory") else {
        return;
    };
    place.write("ws/sticky/theirs", "old\n");
    place.write("ws/sticky/mine", "old\n");
    set(&place.ws().join("sticky"), 0, 0, 0o1777);
    set(
        &place.ws().join("sticky/mine"),
        ORDINARY_UID,
        ORDINARY_UID,
        0o644,
    );
    for patch in [delete("sticky/theirs"), update("sticky/theirs")] {
        refused(&as_user(&place, &patch));
    }
    let theirs = place.ws().join("sticky/theirs");
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "old\n");
    assert!(as_user(&place, &update("sticky/mine")).succeeded());
    assert!(as_user(&place, &delete("sticky/mine")).succeeded());
    assert!(
        apply(&place, &[], &delete("sticky/theirs")).succeeded(),
        "control"
    );
}

#[test]
fn what_the_user_may_not_read_is_not_read() {
    let Some(place) = place("unreadable files") else {
        return;
    };
    place.write("ws/secret", "old\n");
    place.write("out/patch", add("made"));
    place.mkdir("closed");
    set(&place.ws(), ORDINARY_UID, ORDINARY_UID, 0o755);
    for (path, mode) in [
        ("ws/secret", 0o600),
        ("out/patch", 0o600),
        ("closed", 0o700),
    ] {
        set(&place.top().join(path), 0, 0, mode);
    }
    refused(&as_user(&place, &update("secret")));
    let patch = place.out().join("patch");
    let patch = patch.to_str().unwrap();
    refused(&apply(&place, &["--as-user", SPEC, patch], ""));
    let closed = apply(
        &place,
        &["--as-user", SPEC, "-C", "../closed"],
        &add("made"),
    );
    assert_eq!(closed.ended, Ended::Code(2), "{closed}");
    assert!(
        closed.stderr_text().contains("Permission denied"),
        "{closed}"
    );
    assert!(!place.ws().join("made").exists() && !place.top().join("closed/made").exists());

    assert!(apply(&place, &[], &update("secret")).succeeded(), "control");
    assert!(
        apply(&place, &["-C", "../closed"], &add("made")).succeeded(),
        "control"
    );
    assert!(apply(&place, &[patch], "").succeeded(), "control");
}

#[test]
fn what_the_user_makes_is_the_users() {
    let Some(place) = place("new files") else {
        return;
    };
    place.write("ws/file", "old\n");
    for path in [place.ws(), place.ws().join("file")] {
        set(&path, ORDINARY_UID, ORDINARY_UID, 0o755);
    }
    let outcome = as_user(&place, &update("file"));
    assert!(outcome.succeeded(), "{outcome}");
    assert!(as_user(&place, &add("dir/made")).succeeded());
    assert!(
        apply(
            &place,
            &["--backend", "none", "--as-user", SPEC],
            &add("free")
        )
        .succeeded()
    );
    for path in ["file", "dir", "dir/made", "free"] {
        let meta = place.ws().join(path).metadata().unwrap();
        assert_eq!(
            (meta.uid(), meta.gid()),
            (ORDINARY_UID, ORDINARY_UID),
            "{path}"
        );
    }
}

/// Has `command` see other user databases, in a mount namespace of its own.
fn with_accounts(place: &Place, command: &Command) -> Command {
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let home = place.top().join("home");
    let user = format!(
        "patcher:x:{ORDINARY_UID}:{ORDINARY_UID}::{}:/bin/sh\n",
        home.display()
    );
    place.write("out/passwd", passwd + &user);
    place.write("out/group", format!("shared:x:{GROUP}:patcher\n"));
    let mut wrapped = place.command(Path::new("unshare"));
    wrapped
        .args(["--mount", "sh", "-c"])
        .arg("mount --bind \"$1\" /etc/passwd && mount --bind \"$2\" /etc/group && shift 2 && exec \"$@\"")
        .arg("sh")
        .args([place.out().join("passwd"), place.out().join("group")])
        .arg(command.get_program())
        .args(command.get_args());
    wrapped
}

fn with_shared_group(place: &Place, spec: &str, patch: &str) -> Outcome {
    let mut command = place.command(place.exe());
    command.args(["apply", "--as-user", spec]);
    limited::run(with_accounts(place, &command), patch.as_bytes(), LIMIT)
}

#[test]
fn an_account_brings_its_groups() {
    let Some(place) = place("supplementary groups") else {
        return;
    };
    let mount = Command::new("unshare").args(["--mount", "true"]).status();
    if !mount.is_ok_and(|status| status.success()) {
        skip::skip("supplementary groups", "no mount namespace can be made").unwrap();
        return;
    }
    place.write("ws/shared/file", "old\n");
    set(&place.ws().join("shared"), 0, GROUP, 0o775);
    set(&place.ws().join("shared/file"), 0, GROUP, 0o664);
    for spec in ["patcher", "12345"] {
        let outcome = with_shared_group(&place, spec, &add(&format!("shared/{spec}")));
        assert!(outcome.succeeded(), "{outcome}");
    }
    // A group that is given is the only one.
    refused(&with_shared_group(
        &place,
        "patcher:12345",
        &add("shared/alone"),
    ));
    let unknown = with_shared_group(&place, "nobody-knows", &add("shared/alone"));
    assert_eq!(unknown.ended, Ended::Code(2), "{unknown}");
    assert!(!place.ws().join("shared/alone").exists());
}

#[test]
fn a_command_has_the_users_ids_and_no_capabilities() {
    let Some(place) = place("ids of a command") else {
        return;
    };
    let script = "id -u; id -g; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status";
    for backend in ["auto", "none"] {
        let outcome = run(&place, &["--as-user", SPEC, "--backend", backend], script);
        let said = String::from_utf8(outcome.stdout.clone()).unwrap();
        let mut lines = said.lines();
        assert_eq!(lines.next(), Some("12345"), "{outcome}");
        assert_eq!(lines.next(), Some("12345"), "{outcome}");
        let sets: Vec<&str> = lines
            .filter_map(|line| line.split_whitespace().last())
            .collect();
        assert_eq!(sets, ["0000000000000000"; 4], "{backend}: {outcome}");
    }
}

#[test]
fn what_root_left_open_is_closed() {
    let Some(place) = place("inherited descriptors") else {
        return;
    };
    place.write("out/secret", "secret\n");
    set(&place.out().join("secret"), 0, 0, 0o600);
    let shown = |options: &str| {
        let script = format!(
            "exec 7<../out/secret; exec {} run --backend none {options} -- sh -c 'cat <&7'",
            place.exe().display()
        );
        let mut command = place.command(Path::new("sh"));
        command.args(["-c", &script]);
        String::from_utf8(limited::run(command, b"", LIMIT).stdout).unwrap()
    };
    assert_eq!(shown(&format!("--as-user {SPEC}")), "");
    assert_eq!(shown(""), "secret\n", "control");
}

#[test]
fn whoever_cannot_be_become_is_a_usage_error() {
    let ordinary = Identity::all().pop().unwrap();
    let place = Place::new(ordinary);
    let specs: &[&str] = match ordinary {
        Identity::Caller => &[SPEC],
        Identity::Uid(_) => &[SPEC, "root", "no-such-user"],
    };
    for spec in specs {
        let outcome = apply(&place, &["--as-user", spec], &add("made"));
        assert_eq!(outcome.ended, Ended::Code(2), "{outcome}");
        assert!(outcome.stderr_text().contains("only root"), "{outcome}");
    }
    if let Identity::Uid(_) = ordinary {
        let place = Place::new(Identity::Caller);
        for spec in [
            "no-such-user",
            "54321",
            "0:0",
            "root",
            "12345:",
            "12345:wheel",
        ] {
            for outcome in [
                apply(&place, &["--as-user", spec], &add("made")),
                run(&place, &["--as-user", spec], "touch made"),
            ] {
                assert_eq!(outcome.ended, Ended::Code(2), "{outcome}");
                assert_eq!(outcome.stderr_text().lines().count(), 1, "{outcome}");
            }
        }
        assert!(!place.ws().join("made").exists());
    }
}
