//! What is kept between runs, in a directory of the user's own.
//!
//! It lies outside every writable root, so that nothing inside a sandbox can
//! reach it: not what an earlier run did, nor what a later one will believe.
//! Where that cannot be had there is no state, for a reason that is a value:
//! patches apply all the same, without undo.

pub mod base;
pub mod denied;
mod directory;
mod features;
mod header;
mod name;
mod retention;
mod small_file;
mod store;

use std::io;
use std::path::PathBuf;

pub use base::Base;
pub use directory::{Missing, Root};
pub use features::Features;
pub use header::{Change, Header, Place};
pub use name::Id;
pub use store::{Entry, Listing, Pending, ReadError, Record, Store};

/// Says why there is no state.
#[derive(Debug, thiserror::Error)]
pub enum NoState {
    /// Neither the environment nor the user database names a place.
    #[error("no home directory is known for user {uid}")]
    NoHome {
        /// The effective user.
        uid: u32,
    },
    /// Nothing is there, and nothing was to be made.
    #[error("{} does not exist", path.display())]
    Missing {
        /// What is missing.
        path: PathBuf,
    },
    /// A call failed.
    #[error("failed to {step} {}: {source}", path.display())]
    Os {
        /// What was tried.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Somebody else could change it.
    #[error("{} belongs to user {owner}, not to {uid}", path.display())]
    ForeignOwner {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// The effective user.
        uid: u32,
    },
    /// Others could read or change it.
    #[error("{} is open to other users (mode {mode:04o}): chmod it to 0700", path.display())]
    OpenToOthers {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A sandbox could write it.
    #[error("{} and the writable root {} overlap", path.display(), root.display())]
    Writable {
        /// The directory.
        path: PathBuf,
        /// The root.
        root: PathBuf,
    },
}

impl NoState {
    fn os(step: &'static str, path: impl Into<PathBuf>, error: impl Into<io::Error>) -> Self {
        Self::Os {
            step,
            path: path.into(),
            source: error.into(),
        }
    }
}
