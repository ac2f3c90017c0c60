//! Moving another name of a file to the inode that replaced it, so that hard
//! links stay together.

use super::replace::swap_in;
use crate::error::{Context, Error, Operation};
use crate::id::Stamp;
use crate::location::Location;
use crate::pinned::{Compare, Pinned};
use crate::step::Step;
use crate::sys;
use crate::temporary::{self, Temporary};

/// Makes the name at `at` another name of the file at `source`, provided that
/// it is still `expected`: `linkat(2)` to a temporary name, then an exchange
/// as in [`replace`](crate::replace).
pub fn relink(source: &Location, at: &Location, expected: &Pinned) -> Result<Step, Error> {
    const OP: Operation = Operation::Relink;
    expected.expect_at(at, Compare::Content, OP)?;
    let name = temporary::name("-new").during(OP, at.path())?;
    let link = sys::pair(&at.dir, &name);
    sys::link_at(source.ready(OP)?, link).during(OP, at.path())?;
    let temporary = Temporary::new(at.dir.clone(), name);
    let stat = sys::stat_at(std::os::fd::AsFd::as_fd(&temporary.dir), &temporary.name);
    let new = Stamp::of(&stat.during(OP, at.path())?);
    swap_in(temporary, new, at, expected, OP)
}
