//! Taking a name away, so that it can be put back: it is renamed aside first
//! and unlinked when the step is finished.

use std::ffi::OsStr;

use crate::error::{Context, Error, Operation};
use crate::location::Location;
use crate::ops::rename::move_verified;
use crate::pinned::{Compare, Pinned};
use crate::step::{Change, Step};
use crate::temporary::{self, Held};

const OP: Operation = Operation::Remove;

/// Removes the file or link at a place, provided that it is `expected`.
///
/// `renameat2(RENAME_NOREPLACE)` to a temporary name in the same directory;
/// when it was not the expected file after all, it is moved back and the
/// error is [`ErrorKind::Changed`](crate::ErrorKind::Changed). A link goes
/// itself; its target stays.
pub fn remove(at: &Location, expected: &Pinned) -> Result<Step, Error> {
    let name = temporary::name("-old").during(OP, at.path())?;
    remove_as(at, expected, &name)
}

/// Removes as [`remove`] does, with a temporary name that a journal knows already.
pub(crate) fn remove_as(at: &Location, expected: &Pinned, aside: &OsStr) -> Result<Step, Error> {
    expected.expect_at(at, Compare::Content, OP)?;
    let old = expected.stamp()?;
    let aside = Held {
        dir: at.dir.clone(),
        name: aside.to_os_string(),
    };
    move_verified(at.ready(OP)?, aside.pair(), expected).map_err(|stop| stop.at(OP, at))?;
    Ok(Step::new(at, Change::Removed { aside, old }))
}
