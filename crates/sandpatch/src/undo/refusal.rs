//! Why `sandpatch undo` does not even begin, as values with their words.

use std::io;
use std::path::PathBuf;

use crate::state::{Id, NoState, ReadError};

/// Says why nothing is taken back; no file was looked at.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Nothing was applied here, or nothing is kept of it.
    #[error("nothing to undo in {}", .0.display())]
    Nothing(PathBuf),
    /// It was applied in another directory.
    #[error("transaction {id} was made in {}", directory.display())]
    MadeElsewhere {
        /// Which one.
        id: Id,
        /// Where it was made.
        directory: PathBuf,
    },
    /// A directory that the patch could write is not there any more.
    #[error("the patch could write {}, which is gone or leads elsewhere now", .0.display())]
    RootChanged(PathBuf),
    /// There is no such transaction.
    #[error("there is no transaction {0}")]
    Unknown(Id),
    /// The record of one transaction cannot be used.
    #[error("transaction {id} cannot be undone: {why}")]
    Unreadable {
        /// Which one.
        id: Id,
        /// What is wrong with it.
        why: ReadError,
    },
    /// The records cannot be listed.
    #[error("the undo records cannot be listed: {0}")]
    Unlisted(io::Error),
    /// There is no place where records could be.
    #[error("the undo records cannot be used: {0}")]
    NoState(NoState),
}

impl Refusal {
    /// Says why a record cannot be used.
    pub fn of(id: Id, why: ReadError) -> Self {
        match why {
            ReadError::Unknown(id) => Self::Unknown(id),
            why => Self::Unreadable { id, why },
        }
    }

    /// Returns the kind that reports use (docs/report.md).
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Nothing(_) => "nothing-to-undo",
            Self::Unknown(_) => "no-such-transaction",
            Self::MadeElsewhere { .. } => "made-elsewhere",
            Self::RootChanged(_) => "root-changed",
            Self::Unreadable { .. } => "record-unreadable",
            Self::Unlisted(_) | Self::NoState(_) => "no-records",
        }
    }

    /// Returns what the reader could do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Nothing(_) => Some("apply --json says why a patch cannot be undone".to_owned()),
            Self::Unknown(_) => {
                Some("sandpatch undo --list shows those of this directory".to_owned())
            }
            Self::MadeElsewhere { directory, .. } => {
                Some(format!("name that directory: -C {}", directory.display()))
            }
            Self::RootChanged(_) => {
                Some("put it back where it was, or undo the patch by hand".to_owned())
            }
            Self::Unreadable { .. } => {
                Some("an older one can be named by the id that undo --list shows".to_owned())
            }
            _ => None,
        }
    }
}
