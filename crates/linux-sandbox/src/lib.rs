//! Builds a sandbox from a [`Plan`] and runs one command in it.
//!
//! The plan says what must hold; this crate makes it hold, or refuses. Layers
//! are independent of each other: mounts in namespaces of their own, Landlock,
//! a seccomp filter, no capabilities and no way to gain any. Each one is
//! reported in [`Enforcement`].
//!
//! # Processes
//!
//! The *supervisor* is the caller, outside. It starts process 1 of the new
//! namespaces, which sets everything up, confines itself, starts the *command*
//! as process 2, reaps orphans, and ends with the command. The kernel kills
//! process 1 when the supervisor dies, and everything inside when process 1
//! does.
//!
//! # Obligations of the caller
//!
//! [`run`] forks, so the calling process must have one thread; this is checked.

pub mod bubblewrap;
mod carrier;
mod command;
mod error;
mod facts;
mod landlock;
mod list;
mod mountinfo;
mod native;
mod placeholders;
mod report;
mod resolve;
mod seccomp;
mod status;
mod sys;

pub use carrier::carry;
pub use command::{Command, Environment, INHERITED_FD, Program, Stdin};
pub use error::{Errno, Error, Step};
pub use facts::{gather, gather_with};
pub use report::{Enforcement, LandlockStatus, Outcome, ProcView, RunReport};
pub use sandbox_policy::Plan;

/// A way of building the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// Namespaces and mounts made by this crate itself.
    Native,
    /// Namespaces and mounts made by bubblewrap, and looked at by this crate.
    Bubblewrap,
}

/// What a backend needs to be started.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Launcher<'a> {
    /// Nothing.
    Native,
    /// A bubblewrap, to be found. The executable of the caller must pass its
    /// arguments to [`bubblewrap::inner_stage`] when the first one is
    /// [`bubblewrap::INNER_STAGE_SWITCH`].
    Bubblewrap(&'a bubblewrap::Search<'a>),
}

/// Runs a command in the sandbox that a plan describes.
pub fn run(plan: &Plan, command: Command) -> Result<Outcome, Error> {
    run_reported(plan, command, Launcher::Native).map(|report| report.outcome)
}

/// Runs a command and also returns what was enforced.
pub fn run_reported(
    plan: &Plan,
    command: Command,
    launcher: Launcher<'_>,
) -> Result<RunReport, Error> {
    match launcher {
        Launcher::Native => native::run(plan, command),
        Launcher::Bubblewrap(search) => bubblewrap::run(plan, &command, search),
    }
}
