//! Protected names that do not exist, while a command runs that wants to make
//! them: held inside, harmless outside, and gone afterwards however the run ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail the test that called them"
)]

mod inside;
mod killed;
mod outside;
mod places;
mod running;
mod together;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sandpatch_tests::limited::{self, Outcome};
use sandpatch_tests::{Identity, Place};

const LIMIT: Duration = Duration::from_secs(60);

/// The protected names.
const NAMES: [&str; 3] = [".git", ".codex", ".agents"];

/// Runs a check as every identity.
fn each(check: impl Fn(&Place)) {
    for identity in Identity::all() {
        check(&Place::new(identity));
    }
}

/// A command line of the executable.
fn run_with(place: &Place, flags: &[&str], script: &str) -> Command {
    let mut command = place.command(place.exe());
    command.arg("run").args(flags);
    command.args(["--", "sh", "-c", script]);
    command
}

/// Runs a script in the sandbox, in the workspace.
fn sandboxed(place: &Place, flags: &[&str], script: &str) -> Outcome {
    limited::run(run_with(place, flags, script), b"", LIMIT)
}

/// Runs a program of the host as the place's identity, in the workspace.
fn on_host(place: &Place, line: &str) -> Outcome {
    let mut command = place.command(Path::new("/bin/sh"));
    command.args(["-c", line]);
    command.env("GIT_CONFIG_NOSYSTEM", "1");
    limited::run(command, b"", LIMIT)
}

/// The names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("list").map(|entry| {
        let name = entry.expect("entry").file_name();
        name.into_string().expect("a name in UTF-8")
    });
    let mut names: Vec<String> = entries.collect();
    names.sort_unstable();
    names
}

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}
