//! Asks a bubblewrap what it can do, and has it prove that it works here.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::fs::{CWD, Mode, OFlags, openat};
use sandbox_policy::Plan;
use sandbox_policy::plan::Requirement;

use crate::bubblewrap::features::Features;
use crate::bubblewrap::{INNER_STAGE_SWITCH, PROBE};

/// The variables of every bubblewrap that is started. None of the caller's: by
/// `LD_LIBRARY_PATH` it would load what a sandboxed program has written.
pub(crate) const VARIABLES: [(&str, &str); 2] = [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C")];

/// What a proof has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// It works, but for a `/proc` of its own where the value is false.
    Works { fresh_proc: bool },
    /// It does not, and says why.
    Fails(String),
}

/// Reads version and help.
pub(crate) fn features(program: &Path) -> Result<Features, String> {
    let version = run(program, &["--version".into()])?;
    let help = run(program, &["--help".into()])?;
    if !version.status.success() || !help.status.success() {
        return Err(complaint(&help.stderr).unwrap_or_else(|| "it has no --help".to_owned()));
    }
    // Old versions print their help as a complaint.
    let text = [help.stdout, help.stderr].concat();
    Ok(Features::of_texts(
        &String::from_utf8_lossy(&version.stdout),
        &String::from_utf8_lossy(&text),
    ))
}

/// Starts a sandbox with the namespaces of a plan, and nothing in it but this
/// executable, which returns at once.
pub(crate) fn prove(program: &Path, plan: &Plan) -> Proof {
    let complaint = match started(program, plan, true) {
        Ok(()) => return Proof::Works { fresh_proc: true },
        Err(complaint) => complaint,
    };
    match started(program, plan, false) {
        Ok(()) => Proof::Works { fresh_proc: false },
        Err(_) => Proof::Fails(complaint),
    }
}

fn started(program: &Path, plan: &Plan, fresh_proc: bool) -> Result<(), String> {
    // Open across the execution, so that the program finds it.
    let own = openat(CWD, c"/proc/self/exe", OFlags::PATH, Mode::empty());
    let own = own.map_err(|errno| errno.to_string())?;
    let mut words: Vec<OsString> = ["--die-with-parent", "--as-pid-1", "--ro-bind", "/", "/"]
        .map(OsString::from)
        .to_vec();
    let options = [
        (Requirement::UserNamespace, "--unshare-user"),
        (Requirement::PidNamespace, "--unshare-pid"),
        (Requirement::IpcNamespace, "--unshare-ipc"),
        (Requirement::NetworkNamespace, "--unshare-net"),
    ];
    let options = options.into_iter().filter(|(it, _)| plan.requires(*it));
    words.extend(options.map(|(_, option)| OsString::from(option)));
    if fresh_proc {
        words.extend(["--proc", "/proc"].map(OsString::from));
    }
    let itself = format!("/proc/self/fd/{}", own.as_raw_fd());
    words.extend(["--", &itself, INNER_STAGE_SWITCH, PROBE].map(OsString::from));
    let output = run(program, &words)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(complaint(&output.stderr).unwrap_or_else(|| output.status.to_string())),
    }
}

fn run(program: &Path, words: &[OsString]) -> Result<Output, String> {
    Command::new(program)
        .args(words)
        .env_clear()
        .envs(VARIABLES)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())
}

/// Returns the first line that a program complained with, without its name and
/// without anything that a terminal would act on.
pub(crate) fn complaint(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.strip_prefix("bwrap: ").unwrap_or(line);
    Some(
        line.chars()
            .filter(|it| !it.is_control())
            .take(300)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_one_plain_line() {
        let said = complaint(b"\n  bwrap: no \x1b[31mspace\x07 left\nbwrap: more\n");
        assert_eq!(said.as_deref(), Some("no [31mspace left"));
        assert_eq!(complaint(b" \n\n"), None);
        assert_eq!(complaint(&[b'x'; 1000]).map(|line| line.len()), Some(300));
    }
}
