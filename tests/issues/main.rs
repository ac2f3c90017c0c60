//! What users of patch tools reported, one test name for each case.
//!
//! A case folder holds `setup.sh` (makes the tree), `patch.txt` (`@CWD@` stands
//! for the working directory), perhaps `pre.sh` (sourced just before: umask,
//! limits) and `check.sh`, which exits 0 when the tree and `$CODE`, `$STDOUT`,
//! `$STDERR` are right. `$EXE` starts `sandpatch apply` again, `$BASE` is a copy
//! of the tree before. The workspace is `T/ws`, so `../x` stays in the case.
//!
//! A case in `known-failing.txt` must fail: one that passes is a stale entry.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test harness fails its trial by panicking"
)]

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::Trial;
use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::trial::{ensure, trial};
use sandpatch_tests::{bytes, exe, fixtures, list, place};

const APPLY_LIMIT: Duration = Duration::from_secs(5);
const SCRIPT_LIMIT: Duration = Duration::from_secs(20);

/// Runs `$EXE` as a case asks, after its `pre.sh`.
const START: &str =
    "umask 022; if [ -f \"$CASE/pre.sh\" ]; then . \"$CASE/pre.sh\"; fi; exec \"$EXE\"";

fn main() -> ExitCode {
    let dir = fixtures::dir("issues");
    let known = list::read(&dir.join("known-failing.txt"));
    let folders = fixtures::case_folders(&dir);
    let numbers: Vec<String> = folders
        .iter()
        .map(|folder| list::number_of(&fixtures::name_of(folder)).to_owned())
        .collect();
    let unknown: Vec<String> = known
        .keys()
        .filter(|key| !numbers.contains(key))
        .cloned()
        .collect();
    let mut trials = vec![trial("known_failing::name_existing_cases", move || {
        ensure(unknown.is_empty(), || format!("no such case: {unknown:?}"))
    })];
    for folder in folders {
        let name = fixtures::name_of(&folder);
        let reason = known.get(list::number_of(&name)).cloned();
        trials.push(case_trial(name, folder, reason));
    }
    sandpatch_tests::trial::main(trials)
}

fn case_trial(name: String, folder: PathBuf, known_failing: Option<String>) -> Trial {
    trial(name, move || {
        let result = check(&folder);
        match (result, known_failing) {
            (result, None) => result,
            (Err(_), Some(_)) => Ok(()),
            (Ok(()), Some(reason)) => Err(format!(
                "passes now: take it off known-failing.txt (it said: {reason})"
            )),
        }
    })
}

/// The files of one run of a case.
struct Run {
    top: tempfile::TempDir,
    case: PathBuf,
}

impl Run {
    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn bash(&self) -> Command {
        let mut command = Command::new("bash");
        command
            .current_dir(self.path("ws"))
            .env("EXE", self.path("apply_patch"))
            .env("STDOUT", self.path("stdout"))
            .env("STDERR", self.path("stderr"))
            .env("BASE", self.path("base"))
            .env("CASE", &self.case)
            .env("HOME", self.path("home"))
            .env_remove("XDG_STATE_HOME");
        command
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        place::unlock(self.top.path());
    }
}

fn check(folder: &Path) -> Result<(), String> {
    let run = prepare(folder);
    let patch = fs::read(folder.join("patch.txt")).expect("read patch.txt");
    let patch = bytes::replace(&patch, b"@CWD@", run.path("ws").as_os_str().as_bytes());

    let mut start = run.bash();
    start.args(["-c", START]);
    let applied = limited::run(start, &patch, APPLY_LIMIT);
    fs::write(run.path("stdout"), &applied.stdout).expect("write");
    fs::write(run.path("stderr"), &applied.stderr).expect("write");

    let code = match applied.ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
        Ended::TimedOut => 124,
    };
    let mut verdict = run.bash();
    verdict
        .arg(folder.join("check.sh"))
        .env("CODE", code.to_string());
    let verdict = limited::run(verdict, b"", SCRIPT_LIMIT);
    ensure(verdict.succeeded(), || {
        format!("check.sh: {verdict}\nthe run: {applied}")
    })
}

fn prepare(folder: &Path) -> Run {
    let run = Run {
        top: place::top(),
        case: folder.to_owned(),
    };
    for name in ["ws", "home"] {
        fs::create_dir(run.path(name)).expect("create");
    }
    let script = format!(
        "#!/bin/sh\nexec \"{}\" apply \"$@\"\n",
        exe::executable().display()
    );
    fs::write(run.path("apply_patch"), script).expect("write");
    fs::set_permissions(run.path("apply_patch"), fs::Permissions::from_mode(0o755)).expect("chmod");
    let mut setup = run.bash();
    setup.arg(folder.join("setup.sh"));
    let setup = limited::run(setup, b"", SCRIPT_LIMIT);
    assert!(setup.succeeded(), "setup.sh: {setup}");
    let copied = Command::new("cp")
        .arg("-a")
        .arg(run.path("ws"))
        .arg(run.path("base"))
        .status();
    assert!(copied.expect("cp").success(), "copy the tree");
    run
}
