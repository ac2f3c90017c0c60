//! Giving a staged inode a name where nothing is.

use super::stage::Staged;
use crate::error::{Context, Error, Operation};
use crate::location::Location;
use crate::step::{Change, Step};

/// Puts a staged inode at a free place (`linkat(2)`, or `renameat2(2)` with
/// `RENAME_NOREPLACE` when it has a temporary name).
///
/// It never replaces: when something is there, a dangling link too, the error
/// is [`ErrorKind::Exists`](crate::ErrorKind::Exists).
pub fn create(staged: Staged, at: &Location) -> Result<Step, Error> {
    const OP: Operation = Operation::Create;
    let new = staged.into_place(at.ready(OP)?).during(OP, at.path())?;
    Ok(Step::new(at, Change::Created { new }))
}
