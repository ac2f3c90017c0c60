//! The same escapes, tried by a command inside `sandpatch run`.
//!
//! The exit code of the script tells little (a shell may swallow an error), so
//! each test looks at the outside, and its control proves that the same act on
//! an allowed target works in the same sandbox.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use sandpatch_tests::{Identity, Outcome, Place, Snapshot, limited};

use crate::door::has_bytes;

const LIMIT: Duration = Duration::from_secs(10);

fn run(place: &Place, script: &str) -> Outcome {
    let mut command = place.command(place.exe());
    command.args(["run", "--", "sh", "-c", script]);
    limited::run(command, b"", LIMIT)
}

/// Runs `bad`, which must leave the outside alone and fail; then `good`, which
/// must succeed and leave `control` in the workspace.
fn held(setup: &dyn Fn(&Place), bad: &str, good: &str) {
    for identity in Identity::all() {
        let place = Place::new(identity);
        let who = identity.label();
        place.write("out/secret", "original\n");
        setup(&place);
        let before = Snapshot::of(&place.out());
        let attempt = run(&place, bad);
        assert!(!attempt.succeeded(), "{who}: {attempt}");
        let difference = before.difference(&Snapshot::of(&place.out()));
        assert_eq!(difference, "", "{who}: outside; {attempt}");
        let control = run(&place, good);
        assert!(control.succeeded(), "{who}: control: {control}");
        has_bytes(&place, "ws/control", "x\n", who);
    }
}

#[test]
fn hard_link_made_inside() {
    held(
        &|_| {},
        "ln ../out/secret here && echo hacked > here",
        "echo original > f && ln f control && echo x > f",
    );
}

#[test]
fn write_through_a_symlink() {
    held(
        &|place| place.link("ws/link", "../out/secret"),
        "echo hacked > link",
        "echo original > control && ln -s control l && echo x > l",
    );
}

#[test]
fn symlink_made_inside() {
    held(
        &|_| {},
        "ln -s ../out d && echo hacked > d/planted",
        "mkdir r && ln -s r e && echo x > e/f && cp e/f control",
    );
}

#[test]
fn write_by_dotdot_and_by_absolute_path() {
    held(
        &|_| {},
        "out=$(cd .. && pwd)/out; echo a > ../out/planted; echo b > \"$out/secret\"",
        "mkdir -p sub && echo x > sub/../control",
    );
}

#[test]
fn change_the_mode_of_an_outside_file() {
    held(
        &|_| {},
        "chmod 777 ../out/secret",
        "echo x > control && chmod 600 control",
    );
}

#[test]
fn rename_outside() {
    held(
        &|_| {},
        "mv ../out/secret ../out/renamed",
        "echo x > f && mv f control",
    );
}

#[test]
fn write_into_a_fifo_outside() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        let who = identity.label();
        let path = place.out().join("fifo");
        mkfifo(&path, Mode::from_bits_truncate(0o666)).expect("mkfifo");
        identity.own(&path);
        // A reader that is there before, so that a writer would not wait.
        let mut reader = OpenOptions::new()
            .read(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(&path)
            .expect("open the reader");
        let attempt = run(&place, "echo hacked > ../out/fifo");
        assert!(!attempt.succeeded(), "{who}: {attempt}");
        let mut got = Vec::new();
        let count = reader.read_to_end(&mut got).unwrap_or(0);
        assert_eq!(count, 0, "{who}: the reader outside got {got:?}");
        let control = run(
            &place,
            "mkfifo p && { cat p > control & } && echo x > p && wait",
        );
        assert!(control.succeeded(), "{who}: control: {control}");
        has_bytes(&place, "ws/control", "x\n", who);
    }
}

#[test]
fn a_file_that_is_open_in_the_launcher() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        let who = identity.label();
        place.write("out/secret", "original\n");
        // The shell opens descriptor 9 for the launcher, not for the command.
        let mut shell = place.command("sh".as_ref());
        shell.args([
            "-c",
            "exec \"$0\" run -- sh -c 'echo hacked >&9' 9>>../out/secret",
        ]);
        shell.arg(place.exe());
        let attempt = limited::run(shell, b"", LIMIT);
        assert!(!attempt.succeeded(), "{who}: {attempt}");
        let secret = fs::read(place.out().join("secret")).expect("read");
        assert_eq!(secret, b"original\n", "{who}");
        let control = run(&place, "exec 9>control; echo x >&9");
        assert!(control.succeeded(), "{who}: control: {control}");
        has_bytes(&place, "ws/control", "x\n", who);
    }
}
