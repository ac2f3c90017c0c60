//! Runs a command with a time limit and collects what it wrote.
//!
//! Output goes to unnamed files, not pipes: a background process that keeps a
//! pipe open would make the test wait for it, and "no hang" is what is tested.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
    /// It was still running at the limit, and was killed with its group.
    TimedOut,
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "{code}"),
            Self::Signal(signal) => write!(out, "-{signal}"),
            Self::TimedOut => out.write_str("timeout"),
        }
    }
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

/// What a command did.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// Everything it wrote to standard output.
    pub stdout: Vec<u8>,
    /// Everything it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl Outcome {
    /// Standard error as text, for messages and searches.
    #[must_use]
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// True when it exited with code 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.ended == Ended::Code(0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stdout = String::from_utf8_lossy(&self.stdout);
        write!(
            out,
            "code {}\nstdout: {stdout}\nstderr: {}",
            self.ended,
            self.stderr_text()
        )
    }
}

/// Runs `command` with `input` on a pipe, for at most `limit`.
///
/// # Panics
/// When the command cannot be started at all.
#[must_use]
pub fn run(mut command: Command, input: &[u8], limit: Duration) -> Outcome {
    let mut stdout = tempfile::tempfile().expect("output file");
    let mut stderr = tempfile::tempfile().expect("output file");
    command
        .stdin(Stdio::piped())
        .stdout(stdout.try_clone().expect("clone"))
        .stderr(stderr.try_clone().expect("clone"))
        .process_group(0);
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("start {:?}: {error}", command.get_program()));
    feed(&mut child, input.to_vec());
    let ended = wait(&mut child, limit);
    Outcome {
        ended,
        stdout: contents(&mut stdout),
        stderr: contents(&mut stderr),
    }
}

/// Writes from a thread: the child may read late, partly, or never.
fn feed(child: &mut Child, input: Vec<u8>) {
    if let Some(mut pipe) = child.stdin.take() {
        // A child that stops reading early closes the pipe, which is its right.
        thread::spawn(move || pipe.write_all(&input).unwrap_or_default());
    }
}

fn wait(child: &mut Child, limit: Duration) -> Ended {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_micros(500);
    while Instant::now() < end {
        if let Some(status) = child.try_wait().expect("wait") {
            return status.into();
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
    let group = Pid::from_raw(child.id().cast_signed());
    // The group may be gone by now; the child is reaped below either way.
    killpg(group, Signal::SIGKILL).unwrap_or_default();
    child.wait().expect("reap");
    Ended::TimedOut
}

fn contents(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().expect("rewind");
    file.read_to_end(&mut bytes).expect("read output");
    bytes
}
