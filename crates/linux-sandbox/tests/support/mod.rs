//! Runs the `run` example in throw-away places, as every identity that this
//! host allows.
//!
//! A sandbox is made by forking, which a test harness with threads must not do
//! itself. A host that cannot make sandboxes skips loudly, or fails when
//! `SANDBOX_MUST_WORK=1`.
#![allow(dead_code, clippy::print_stderr, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The ordinary user of tests that start as root.
const ORDINARY_ID: u32 = 12345;

/// Who runs the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Whoever runs the tests.
    Caller,
    /// An ordinary user, made from root.
    Ordinary,
}

/// One identity with a workspace and a place outside of it.
pub struct Place {
    pub identity: Identity,
    pub ws: PathBuf,
    pub out: PathBuf,
    dir: tempfile::TempDir,
}

/// Returns the example beside the test executable.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("test executable");
    let target = test.ancestors().nth(2).expect("target directory");
    target.join("examples/run")
}

impl Place {
    /// Makes the directories below `/var/tmp`, which no policy makes writable.
    pub fn new(identity: Identity) -> Self {
        Self::below(identity, Path::new("/var/tmp"))
    }

    pub fn below(identity: Identity, base: &Path) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("sandbox-test")
            .tempdir_in(base)
            .expect("tempdir");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        fs::copy(example(), dir.path().join("run")).expect("copy the example");
        let (ws, out) = (dir.path().join("ws"), dir.path().join("out"));
        let place = Self {
            identity,
            ws,
            out,
            dir,
        };
        for made in [&place.ws, &place.out] {
            fs::create_dir(made).expect("mkdir");
            place.give(made);
        }
        place.write(&place.out.join("secret"), "original");
        place
    }

    /// Gives a path to the identity.
    pub fn give(&self, path: &Path) {
        if self.identity == Identity::Ordinary {
            chown(path, Some(ORDINARY_ID), Some(ORDINARY_ID)).expect("chown");
        }
    }

    /// Writes a file that belongs to the identity.
    pub fn write(&self, path: &Path, content: &str) {
        fs::write(path, content).expect("write");
        self.give(path);
    }

    /// Makes a directory that belongs to the identity.
    pub fn mkdir(&self, path: &Path) {
        fs::create_dir(path).expect("mkdir");
        self.give(path);
    }

    pub fn secret(&self) -> String {
        fs::read_to_string(self.out.join("secret")).expect("read")
    }

    /// Returns a command that starts the example with options and words.
    pub fn command(&self, words: &[&str]) -> Command {
        let run = self.dir.path().join("run");
        let mut command = match self.identity {
            Identity::Caller => Command::new(run),
            Identity::Ordinary => {
                let mut command = Command::new("setpriv");
                let id = ORDINARY_ID.to_string();
                command
                    .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
                    .arg(run);
                command
            }
        };
        command
            .args(words)
            .current_dir(&self.ws)
            .stdin(Stdio::null());
        command.env("WS", &self.ws).env("OUT", &self.out);
        command
    }

    /// Returns a command that runs a script with another command as its words.
    pub fn through_shell(&self, script: &str, command: &Command) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", script, "sh"])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(&self.ws)
            .stdin(Stdio::null());
        shell
    }

    /// Runs a shell script in the sandbox.
    pub fn sh(&self, script: &str) -> Output {
        self.command(&["--", "/bin/sh", "-c", script])
            .output()
            .expect("start")
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// Tells once whether sandboxes work here, and why not.
fn works() -> &'static Result<(), String> {
    static WORKS: OnceLock<Result<(), String>> = OnceLock::new();
    WORKS.get_or_init(|| {
        let place = Place::new(Identity::Caller);
        let output = place.command(&["--", "/bin/true"]).output().expect("start");
        if output.status.success() {
            Ok(())
        } else {
            Err(text(&output.stderr))
        }
    })
}

/// Runs a test as every identity, or skips it loudly.
pub fn as_each(test: impl Fn(&Place)) {
    if let Err(reason) = works() {
        let must = std::env::var_os("SANDBOX_MUST_WORK").is_some_and(|value| value == "1");
        assert!(!must, "no sandbox can be made here: {reason}");
        eprintln!("SKIPPED: no sandbox can be made here: {reason}");
        return;
    }
    test(&Place::new(Identity::Caller));
    if is_root() {
        test(&Place::new(Identity::Ordinary));
    } else {
        eprintln!("SKIPPED as a second identity: the tests do not run as root");
    }
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
