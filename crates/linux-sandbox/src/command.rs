//! What is run, as data.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// The environment of a command.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The `PATH` by which the program is looked up.
    pub path: Option<OsString>,
    /// All variables of the command.
    pub vars: Vec<(OsString, OsString)>,
}

/// The program to run.
#[derive(Clone, Debug)]
pub enum Program {
    /// A path, or a name that is looked up.
    Named(OsString),
    /// The executable of the calling process, by descriptor.
    SelfExe,
}

/// Where the standard input comes from.
#[derive(Debug)]
pub enum Stdin {
    /// From the caller.
    Inherit,
    /// From a descriptor.
    Descriptor(OwnedFd),
}

/// The number under which [`Command::inherit`] arrives in the program.
pub const INHERITED_FD: i32 = 3;

/// A command to run in a sandbox.
#[derive(Debug)]
pub struct Command {
    /// The program.
    pub program: Program,
    /// The arguments, the name of the program first.
    pub args: Vec<OsString>,
    /// The environment.
    pub environment: Environment,
    /// The standard input.
    pub stdin: Stdin,
    /// What the program finds open as [`INHERITED_FD`], for plans of purpose
    /// `Patch` only: the patch stage is trusted with it, a command would not be.
    /// It stays on the mount it was opened on, past the read-only view. Every
    /// other descriptor above 2 is closed.
    pub inherit: Option<Arc<OwnedFd>>,
    /// The working directory.
    pub cwd: PathBuf,
}
