//! What the supervisor tells the stage inside: everything, in one message over
//! a descriptor, so that no argument or variable can be read by others.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use sandbox_policy::facts::FileId;
use sandbox_policy::plan::MountOp;
use sandbox_policy::{AbsolutePath, Plan};
use serde::{Deserialize, Serialize};

use crate::bubblewrap::render::{Place, Way};
use crate::command::{Command, Environment, Program, Stdin};
use crate::error::Errno;

/// The message.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandOff {
    /// What must hold.
    pub(crate) plan: Plan,
    /// What was found outside, one entry for each operation of the plan.
    pub(crate) places: Vec<Option<Place>>,
    /// Who carries each operation out.
    pub(crate) ways: Vec<Way>,
    /// Whether `/proc` was to be mounted.
    pub(crate) has_fresh_proc: bool,
    /// What is run.
    pub(crate) task: Task,
    /// The descriptors of the stage.
    pub(crate) numbers: Numbers,
}

/// A command, as far as it can be told.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The program; without a name it is the executable of the stage itself.
    program: Option<OsString>,
    args: Vec<OsString>,
    path: Option<OsString>,
    vars: Vec<(OsString, OsString)>,
    /// The directory, as it is spelled inside; not a `PathBuf`, of which only
    /// UTF-8 could be told.
    cwd: OsString,
}

/// Descriptors, by the numbers under which they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbers {
    /// Where the stage says that it runs.
    pub(crate) hello: i32,
    /// Where the records go.
    pub(crate) status: i32,
    /// The command's standard error.
    pub(crate) stderr: i32,
    /// The command's standard input, when it is another one.
    pub(crate) stdin: Option<i32>,
    /// What the patch stage inherits.
    pub(crate) inherit: Option<i32>,
    /// What the guardian of the placeholders waits for the end of.
    pub(crate) watched: Option<i32>,
}

impl Task {
    /// Makes it of a command and its real directory.
    pub(crate) fn of(command: &Command, cwd: PathBuf) -> Self {
        Self {
            program: match &command.program {
                Program::Named(name) => Some(name.clone()),
                Program::SelfExe => None,
            },
            args: command.args.clone(),
            path: command.environment.path.clone(),
            vars: command.environment.vars.clone(),
            cwd: cwd.into_os_string(),
        }
    }

    /// Makes a command of it again.
    pub(crate) fn into_command(self, stdin: Option<OwnedFd>) -> Command {
        Command {
            program: self.program.map_or(Program::SelfExe, Program::Named),
            args: self.args,
            environment: Environment {
                path: self.path,
                vars: self.vars,
            },
            stdin: stdin.map_or(Stdin::Inherit, Stdin::Descriptor),
            inherit: None,
            cwd: self.cwd.into(),
        }
    }
}

impl HandOff {
    /// Tells whether the stage inside has something to mount.
    pub(crate) fn needs_nested(&self) -> bool {
        self.ways.contains(&Way::Nested)
    }

    /// Returns the inode that stands in for a missing name.
    pub(crate) fn placeholder(&self, path: &AbsolutePath) -> Option<FileId> {
        let held = |operation: &MountOp| match operation {
            MountOp::HoldMissing { path: held, .. } => held == path,
            _ => false,
        };
        let position = self.plan.mounts.iter().position(held)?;
        Some(self.places.get(position)?.as_ref()?.id)
    }

    /// Encodes the message.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Errno> {
        postcard::to_allocvec(self).map_err(|_| Errno(libc::EINVAL))
    }

    /// Decodes a message.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Errno> {
        postcard::from_bytes(bytes).map_err(|_| Errno(libc::EPROTO))
    }
}

/// Returns the number of the descriptor that a command brings its input by.
pub(crate) fn stdin_number(command: &Command) -> Option<i32> {
    match &command.stdin {
        Stdin::Inherit => None,
        Stdin::Descriptor(fd) => Some(fd.as_raw_fd()),
    }
}
