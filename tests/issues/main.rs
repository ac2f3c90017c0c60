//! What users of patch tools reported, one test name for each case.
//!
//! A case folder holds `setup.sh` (makes the tree), `patch.txt` (`@CWD@` stands
//! for the working directory), perhaps `pre.sh` (sourced just before: umask,
//! limits) and `check.sh`, which exits 0 when the tree and `$CODE`, `$STDOUT`,
//! `$STDERR` are right. `$EXE` starts the same program again, `$BASE` is a copy
//! of the tree before. The workspace is `T/ws`, so `../x` stays in the case.
//!
//! Each case runs through every door. It describes the safe dialect: what the
//! codex dialect answers differently on purpose is in `dialect-differences.txt`,
//! what does not work yet in `known-failing.txt`. A listed case must fail: one
//! that passes is a stale entry.
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

/// The ways in which a patch comes to the patch tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// `sandpatch apply`: the safe dialect.
    Apply,
    /// A link called `apply_patch`: the codex dialect.
    Alias,
    /// `--codex-run-as-apply-patch -`: the same without a sandbox.
    Inner,
}

impl Door {
    const ALL: [Self; 3] = [Self::Apply, Self::Alias, Self::Inner];

    /// The list of the cases that fail through this door.
    fn exceptions(self) -> &'static str {
        match self {
            Self::Apply => "known-failing.txt",
            Self::Alias | Self::Inner => "dialect-differences.txt",
        }
    }

    fn trial_name(self, case: &str) -> String {
        match self {
            Self::Apply => case.to_owned(),
            Self::Alias => format!("alias::{case}"),
            Self::Inner => format!("inner::{case}"),
        }
    }

    /// Makes the program that `$EXE` names.
    fn install(self, path: &Path) {
        let arguments = match self {
            Self::Apply => "apply",
            Self::Alias => {
                std::os::unix::fs::symlink(exe::executable(), path).expect("link");
                return;
            }
            Self::Inner => "--codex-run-as-apply-patch -",
        };
        let program = exe::executable();
        let script = format!(
            "#!/bin/sh\nexec \"{}\" {arguments} \"$@\"\n",
            program.display()
        );
        fs::write(path, script).expect("write");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
    }
}

fn main() -> ExitCode {
    let dir = fixtures::dir("issues");
    let folders = fixtures::case_folders(&dir);
    let numbers: Vec<String> = folders
        .iter()
        .map(|folder| list::number_of(&fixtures::name_of(folder)).to_owned())
        .collect();
    let mut trials = Vec::new();
    for door in Door::ALL {
        let listed = list::read(&dir.join(door.exceptions()));
        let unknown: Vec<String> = listed
            .keys()
            .filter(|key| !numbers.contains(key))
            .cloned()
            .collect();
        trials.push(trial(
            door.trial_name("exceptions::name_existing_cases"),
            move || ensure(unknown.is_empty(), || format!("no such case: {unknown:?}")),
        ));
        for folder in &folders {
            let name = fixtures::name_of(folder);
            let reason = listed.get(list::number_of(&name)).cloned();
            trials.push(case_trial(name, folder.clone(), door, reason));
        }
    }
    sandpatch_tests::trial::main(trials)
}

fn case_trial(name: String, folder: PathBuf, door: Door, exception: Option<String>) -> Trial {
    trial(door.trial_name(&name), move || {
        let result = check(&folder, door);
        match (result, exception) {
            (result, None) => result,
            (Err(_), Some(_)) => Ok(()),
            (Ok(()), Some(reason)) => Err(format!(
                "passes now: take it off {} (it said: {reason})",
                door.exceptions()
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

fn check(folder: &Path, door: Door) -> Result<(), String> {
    let run = prepare(folder, door);
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

fn prepare(folder: &Path, door: Door) -> Run {
    let run = Run {
        top: place::top(),
        case: folder.to_owned(),
    };
    for name in ["ws", "home"] {
        fs::create_dir(run.path(name)).expect("create");
    }
    door.install(&run.path("apply_patch"));
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
