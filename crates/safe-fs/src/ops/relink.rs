//! Moving another name of a file to the inode that replaced it, so that hard
//! links stay together.

use std::ffi::OsStr;

use super::replace::swap_in;
use crate::error::{Context, Error, ErrorKind, Operation};
use crate::location::Location;
use crate::pinned::{Compare, Pinned};
use crate::step::Step;
use crate::sys;
use crate::temporary::{self, Temporary};

const OP: Operation = Operation::Relink;

/// Makes the name at `at` another name of the file at `source`, provided that
/// it is still `expected`: `linkat(2)` to a temporary name, then an exchange
/// as in [`replace`](crate::replace).
pub fn relink(source: &Location, at: &Location, expected: &Pinned) -> Result<Step, Error> {
    let name = temporary::name("-new").during(OP, at.path())?;
    relink_as(source, at, expected, &name)
}

/// Relinks as [`relink`] does, with a temporary name that a journal knows already.
pub(crate) fn relink_as(
    source: &Location,
    at: &Location,
    expected: &Pinned,
    name: &OsStr,
) -> Result<Step, Error> {
    expected.expect_at(at, Compare::Content, OP)?;
    let link = sys::pair(&at.dir, name);
    sys::link_at(source.ready(OP)?, link).during(OP, at.path())?;
    let temporary = Temporary::new(at.dir.clone(), name.to_os_string());
    let new = sys::stamp_at(link.0, link.1).during(OP, at.path())?;
    let new = new.ok_or_else(|| Error::new(OP, at.path(), ErrorKind::Changed))?;
    swap_in(temporary, new, at, expected, OP)
}
