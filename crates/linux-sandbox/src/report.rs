//! What happened, and what was enforced while it did.

use std::path::PathBuf;

use sandbox_policy::plan::{NotCovered, Requirement};

use crate::Backend;
use crate::error::Errno;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It exited with a code.
    Exited(u8),
    /// A signal ended it.
    Signaled(i32),
    /// There is no such program.
    NotFound,
    /// The program cannot be executed.
    NotExecutable(Errno),
}

/// How far Landlock took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandlockStatus {
    /// Every right that is asked for is handled.
    Full,
    /// The kernel knows only some of the rights.
    Partial,
}

/// Which `/proc` the command saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcView {
    /// A read-only one of its own.
    Fresh,
    /// The host's, read-only, because mounting another one was refused.
    Host,
}

/// What was enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enforcement {
    /// How the sandbox was built.
    pub backend: Backend,
    /// The namespaces and features that were in force.
    pub in_force: Vec<Requirement>,
    /// How far Landlock took effect.
    pub landlock: LandlockStatus,
    /// Which `/proc` was seen.
    pub proc: ProcView,
    /// What the plan left open.
    pub not_covered: Vec<NotCovered>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    /// How the command ended.
    pub outcome: Outcome,
    /// What was enforced while it ran.
    pub enforcement: Enforcement,
    /// Placeholders of missing names into which somebody outside put something;
    /// they are theirs now.
    pub filled_placeholders: Vec<PathBuf>,
}
