//! Moving a name to a free place.

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;

use crate::error::{Error, ErrorKind, Operation};
use crate::location::Location;
use crate::pinned::{Compare, Pinned};
use crate::step::{Change, Step};
use crate::sys;
use crate::temporary::move_new;

/// Moves the file or link at `from` to the free place `to`, provided that it
/// is `expected` (`renameat2(2)` with `RENAME_NOREPLACE`).
///
/// Another mount is [`ErrorKind::CrossDevice`]; something at `to` is
/// [`ErrorKind::Exists`]; another file at `from` is moved back and is
/// [`ErrorKind::Changed`].
pub fn rename(from: &Location, to: &Location, expected: &Pinned) -> Result<Step, Error> {
    const OP: Operation = Operation::Rename;
    expected.expect_at(from, Compare::Content, OP)?;
    let moved = expected.stamp()?;
    let about = |stop: Stop| stop.between(OP, from, to);
    move_verified(from.ready(OP)?, to.ready(OP)?, expected).map_err(about)?;
    Ok(Step::new(
        from,
        Change::Renamed {
            to: to.clone(),
            moved,
        },
    ))
}

/// Why a move did not happen.
pub(super) enum Stop {
    Failed(io::Error),
    /// Another file was moved, and could not be moved back.
    Stuck(io::Error),
    Changed,
}

impl Stop {
    pub(super) fn at(self, op: Operation, at: &Location) -> Error {
        match self {
            Self::Failed(error) => Error::io(op, at.path(), error),
            Self::Stuck(error) => Error::io(Operation::Undo, at.path(), error),
            Self::Changed => Error::new(op, at.path(), ErrorKind::Changed),
        }
    }

    /// What exists already is about the destination.
    fn between(self, op: Operation, from: &Location, to: &Location) -> Error {
        match self {
            Self::Failed(error) if sys::is(&error, libc::EEXIST) => Error::io(op, to.path(), error),
            stop => stop.at(op, from),
        }
    }
}

/// Moves a name and looks at what arrived; moves it back if it is another file.
pub(super) fn move_verified(
    from: (BorrowedFd<'_>, &OsStr),
    to: (BorrowedFd<'_>, &OsStr),
    expected: &Pinned,
) -> Result<(), Stop> {
    move_new(from, to).map_err(Stop::Failed)?;
    let arrived = sys::stat_at(to.0, to.1);
    if arrived
        .as_ref()
        .is_ok_and(|now| expected.matches(now, Compare::Content))
    {
        return Ok(());
    }
    move_new(to, from).map_err(Stop::Stuck)?;
    arrived.map_err(Stop::Failed)?;
    Err(Stop::Changed)
}
