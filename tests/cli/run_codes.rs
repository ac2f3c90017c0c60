//! The exit codes of `sandpatch run`: the command's own where it ran, and the
//! shell's conventions where it did not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::{Identity, Outcome, Place, skip};

const LIMIT: Duration = Duration::from_secs(20);

fn run(place: &Place, command_line: &[&str]) -> Outcome {
    let mut command = place.command(place.exe());
    command.args(["run", "--"]).args(command_line);
    limited::run(command, b"", LIMIT)
}

fn ends_with(command_line: &[&str], code: i32) {
    for identity in Identity::all() {
        let outcome = run(&Place::new(identity), command_line);
        let who = identity.label();
        assert_eq!(outcome.ended, Ended::Code(code), "{who}: {outcome}");
    }
}

#[test]
fn the_commands_own_code() {
    ends_with(&["true"], 0);
    ends_with(&["sh", "-c", "exit 42"], 42);
    ends_with(&["sh", "-c", "exit 255"], 255);
}

#[test]
fn a_signal_is_128_and_its_number() {
    ends_with(&["sh", "-c", "kill -TERM $$"], 143);
    ends_with(&["sh", "-c", "kill -KILL $$"], 137);
    ends_with(&["sh", "-c", "kill -SEGV $$"], 139);
}

#[test]
fn not_found_is_127_and_names_the_command() {
    ends_with(&["./no-such-command"], 127);
    let outcome = run(&Place::new(Identity::Caller), &["no-such-command"]);
    assert_eq!(outcome.ended, Ended::Code(127), "{outcome}");
    assert!(
        outcome.stderr_text().contains("no-such-command"),
        "{outcome}"
    );
}

#[test]
fn not_executable_is_126() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/script", "#!/bin/sh\nexit 0\n");
        let outcome = run(&place, &["./script"]);
        assert_eq!(outcome.ended, Ended::Code(126), "{outcome}");
        // The control: with the permission it runs.
        let path = place.ws().join("script");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let outcome = run(&place, &["./script"]);
        assert_eq!(outcome.ended, Ended::Code(0), "{outcome}");
    }
}

#[test]
fn output_and_input_pass_through() {
    let place = Place::new(Identity::Caller);
    let mut command = place.command(place.exe());
    command.args(["run", "--", "sh", "-c", "cat; echo error >&2"]);
    let outcome = limited::run(command, b"text\n", LIMIT);
    assert!(outcome.succeeded(), "{outcome}");
    assert_eq!(outcome.stdout, b"text\n", "{outcome}");
    assert_eq!(outcome.stderr, b"error\n", "{outcome}");
}

#[test]
fn an_unknown_option_is_never_taken_for_a_command() {
    let place = Place::new(Identity::Caller);
    let mut command = place.command(place.exe());
    command.args(["run", "--no-such-option", "true"]);
    let outcome = limited::run(command, b"", LIMIT);
    assert_eq!(outcome.ended, Ended::Code(2), "{outcome}");
    let outcome = run(&place, &["echo", "--no-such-option"]);
    assert_eq!(outcome.stdout, b"--no-such-option\n", "{outcome}");
}

#[test]
fn protected_names_that_are_not_held_are_reported() {
    let place = Place::new(Identity::Caller);
    fs::create_dir(place.ws().join(".git")).unwrap();
    let mut command = place.command(place.exe());
    command.args(["run", "--missing-names", "off", "--verbose", "--", "true"]);
    let outcome = limited::run(command, b"", LIMIT);
    assert_eq!(outcome.ended, Ended::Code(0), "{outcome}");
    let said = String::from_utf8(outcome.stderr.clone()).unwrap();
    assert!(said.starts_with("note: not protected"), "{outcome}");
    assert!(
        said.contains("/.codex") && said.contains("/.agents"),
        "{outcome}"
    );
    assert!(!said.contains("/.git"), "{outcome}");
}

/// Becomes an ordinary user in a user namespace that allows no further one,
/// which is how a host without unprivileged namespaces looks.
const NO_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
    exec setpriv --ambient-caps=-all --inh-caps=-all \"$@\"";

#[test]
fn a_sandbox_that_cannot_be_set_up_is_125() {
    let place = Place::new(Identity::all().pop().unwrap());
    let confined = |program: &[&str]| {
        let mut command = place.command("unshare".as_ref());
        command.args([
            "-U",
            "--map-current-user",
            "--keep-caps",
            "sh",
            "-c",
            NO_NAMESPACES,
            "sh",
        ]);
        command.args(program);
        limited::run(command, b"", LIMIT)
    };
    // Is this such a host now? A namespace must be refused, a plain run not.
    let plain = confined(&["true"]).succeeded();
    if !plain || confined(&["unshare", "-U", "true"]).succeeded() {
        let skipped = skip::skip("125", "cannot make a host without user namespaces here");
        return skipped.unwrap();
    }
    let exe = place.exe().to_str().unwrap();
    let outcome = confined(&[exe, "run", "--backend", "native", "--", "touch", "ran"]);
    assert_eq!(outcome.ended, Ended::Code(125), "{outcome}");
    assert!(
        !outcome.stderr_text().trim().is_empty(),
        "no reason: {outcome}"
    );
    assert!(!place.ws().join("ran").exists(), "ran without its sandbox");
}
