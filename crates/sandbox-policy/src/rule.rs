//! One line of a policy: a path, what may be done with it, and who said so.
//!
//! The access of a path is that of the longest rule above it; the origin is
//! kept for the reader, who wants to know which flag or default refused.

use serde::{Deserialize, Serialize};

use crate::path::AbsolutePath;

/// What may be done with a path; on one path the later kind wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Access {
    /// The path can be read, not changed.
    Read,
    /// The path can be read and changed.
    Write,
    /// The path can be neither read nor changed.
    Deny,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The default policy.
    Default,
    /// The working directory, which is writable by default.
    Workspace,
    /// A flag of the command line, as it is typed (`--writable`).
    Flag(&'static str),
    /// The list of secrets that `run` hides.
    Secret,
    /// A name that is protected below every writable root.
    Protected,
    /// An entry of a profile, counted from 0.
    Profile {
        /// The position of the entry.
        entry: usize,
    },
    /// A pattern of file names.
    Glob,
    /// What an earlier run had to hide and was moved since.
    Record,
}

/// One rule; the path is logical, as the caller spells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// Where the rule holds: the path and everything below it.
    pub path: AbsolutePath,
    /// What it allows.
    pub access: Access,
    /// Who said so.
    pub origin: Origin,
}

impl Rule {
    /// Makes a rule.
    pub fn new(path: AbsolutePath, access: Access, origin: Origin) -> Self {
        Self {
            path,
            access,
            origin,
        }
    }
}
