//! Runs that do not end by themselves.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::running::{Running, eventually};
use crate::{each, names, run_with, sandboxed};

#[test]
fn a_killed_supervisor_leaves_nothing() {
    each(|place| {
        let running = Running::start(place, &[], "true");
        assert!(!names(&place.ws()).is_empty());
        running.kill();
        eventually("nothing is left", || names(&place.ws()).is_empty());
    });
}

#[test]
fn what_is_left_of_both_is_removed_by_the_next_run() {
    each(|place| {
        Running::start(place, &[], "true").kill_with_guardian();
        assert_eq!(names(&place.ws()), [".agents", ".codex", ".git"]);
        let mode = fs::metadata(place.ws().join(".git")).expect("stat").mode();
        assert_eq!(mode & 0o7777, 0o1755);
        let next = sandboxed(
            place,
            &[],
            "mkdir .git || rmdir .git || echo evil > .git/config",
        );
        assert!(!next.succeeded(), "{next}");
        assert!(names(&place.ws()).is_empty());
    });
}

#[test]
fn a_guardian_holds_nothing_of_the_callers() {
    each(|place| {
        let running = Running::start(place, &[], "true");
        let guardian = running.guardian();
        let open = || -> Vec<String> {
            let entries = fs::read_dir(format!("/proc/{guardian}/fd")).expect("descriptors");
            let links = entries.map(|entry| fs::read_link(entry.expect("entry").path()));
            let links = links.map(|link| link.expect("link").display().to_string());
            links.collect()
        };
        // The workspace and the directory for each of three names, and the pipe.
        eventually("it closed the rest", || open().len() == 7);
        let pipes = open();
        let pipes: Vec<_> = pipes.iter().filter(|it| it.starts_with("pipe:")).collect();
        assert_eq!(pipes.len(), 1);
        let cwd = fs::read_link(format!("/proc/{guardian}/cwd")).expect("cwd");
        assert_eq!(cwd.to_str(), Some("/"));
        assert!(running.end().1.success());
        assert!(fs::metadata(format!("/proc/{guardian}")).is_err());
    });
}

#[test]
fn nobody_guards_where_nothing_is_missing() {
    each(|place| {
        for name in crate::NAMES {
            place.write(&format!("ws/{name}/file"), "content\n");
        }
        let running = Running::start(place, &[], "true");
        assert_eq!(running.children().len(), 1);
        assert!(running.end().1.success());
    });
}

#[test]
fn a_command_that_is_not_found_leaves_nothing() {
    each(|place| {
        let mut command = place.command(place.exe());
        command.args(["run", "--", "no-such-command-anywhere"]);
        let outcome = sandpatch_tests::limited::run(command, b"", crate::LIMIT);
        assert_eq!(
            outcome.ended,
            sandpatch_tests::Ended::Code(127),
            "{outcome}"
        );
        assert!(names(&place.ws()).is_empty());
    });
}

#[test]
fn a_signal_to_the_group_leaves_nothing() {
    each(|place| {
        use std::os::unix::process::CommandExt;
        let script = "echo up > up; while :; do sleep 1; done";
        let mut command = run_with(place, &[], script);
        let mut child = command.process_group(0).spawn().expect("start");
        eventually("it runs", || place.ws().join("up").exists());
        assert_eq!(names(&place.ws()).len(), 4);
        let group = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
        nix::sys::signal::killpg(group, nix::sys::signal::SIGTERM).expect("signal");
        child.wait().expect("wait");
        assert_eq!(names(&place.ws()), ["up"]);
    });
}
