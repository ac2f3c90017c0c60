//! Putting a staged inode in the place of another. Both names exist at every
//! instant, and the displaced inode is looked at after the swap, when nobody
//! can put another one there: so what was read is what is replaced.

use std::os::fd::AsFd;

use super::stage::Staged;
use crate::error::{Context, Error, ErrorKind, Operation};
use crate::id::Stamp;
use crate::location::Location;
use crate::pinned::{Compare, Pinned};
use crate::step::{Change, Step};
use crate::sys;
use crate::temporary::{self, Temporary};

/// Replaces the file at a place by a staged one (`renameat2(2)` with
/// `RENAME_EXCHANGE`), provided that it is `expected` and unchanged.
///
/// Otherwise everything is swapped back and the error is
/// [`ErrorKind::Changed`]. Where the file system lacks the exchange, the old
/// file is linked aside and renamed over. The old inode stays under a
/// temporary name until the step is finished.
pub fn replace(staged: Staged, at: &Location, expected: &Pinned) -> Result<Step, Error> {
    const OP: Operation = Operation::Replace;
    expected.expect_at(at, Compare::Everything, OP)?;
    let (temporary, new) = staged.into_named().during(OP, at.path())?;
    swap_in(temporary, new, at, expected, OP)
}

/// Swaps a temporary name with a place and verifies what came out.
pub(super) fn swap_in(
    temporary: Temporary,
    new: Stamp,
    at: &Location,
    expected: &Pinned,
    op: Operation,
) -> Result<Step, Error> {
    let place = at.ready(op)?;
    let old = expected.stamp()?;
    match sys::exchange(sys::pair(&temporary.dir, &temporary.name), place) {
        Ok(()) => {}
        Err(error) if sys::lacks_rename_flag(&error) => {
            return rename_over(temporary, new, at, expected, op);
        }
        Err(error) => return Err(error).during(op, at.path()),
    }
    let aside = sys::pair(&temporary.dir, &temporary.name);
    let displaced = sys::stat_at(aside.0, aside.1);
    if displaced
        .as_ref()
        .is_ok_and(|now| expected.matches(now, Compare::Content))
    {
        return Ok(Step::new(
            at,
            Change::Replaced {
                aside: temporary.keep(),
                new,
                old,
            },
        ));
    }
    if let Err(error) = sys::exchange(aside, place) {
        // The old file must not go with the temporary name.
        let kept = temporary.keep();
        let path = at.path().with_file_name(&kept.name);
        return Err(error).during(Operation::Undo, &path);
    }
    displaced.during(op, at.path())?;
    Err(Error::new(op, at.path(), ErrorKind::Changed))
}

/// For file systems without the exchange: the old file gets a second name,
/// is verified by it, and is renamed over. Between the two calls another
/// writer's file could be lost; nothing better exists there.
fn rename_over(
    temporary: Temporary,
    new: Stamp,
    at: &Location,
    expected: &Pinned,
    op: Operation,
) -> Result<Step, Error> {
    let place = at.ready(op)?;
    let path = at.path();
    let old = expected.stamp()?;
    let name = temporary::aside_of(&temporary.name);
    sys::link_at(place, sys::pair(&at.dir, &name)).during(op, path)?;
    let aside = Temporary::new(at.dir.clone(), name);
    let linked = sys::stat_at(aside.dir.as_fd(), &aside.name).during(op, path)?;
    if !expected.matches(&linked, Compare::Content) {
        return Err(Error::new(op, path, ErrorKind::Changed));
    }
    sys::rename_over(sys::pair(&temporary.dir, &temporary.name), place).during(op, path)?;
    drop(temporary.keep());
    Ok(Step::new(
        at,
        Change::Replaced {
            aside: aside.keep(),
            new,
            old,
        },
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::entry::Entry;
    use crate::ops::stage::testing::stage_named;
    use crate::{Resolver, Roots};

    fn setup() -> (tempfile::TempDir, Location, Pinned) {
        let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        std::fs::write(temp.path().join("f"), "old").unwrap();
        let roots = [temp.path().to_path_buf()];
        let roots = Roots::open(temp.path(), &roots, &[], Resolver::detect()).unwrap();
        let at = roots.resolve(Path::new("f")).unwrap();
        let Entry::File(pinned) = roots.entry(&at).unwrap() else {
            panic!("no file")
        };
        (temp, at, pinned)
    }

    fn content(temp: &tempfile::TempDir) -> Vec<u8> {
        std::fs::read(temp.path().join("f")).unwrap()
    }

    fn names(temp: &tempfile::TempDir) -> usize {
        std::fs::read_dir(temp.path()).unwrap().count()
    }

    #[test]
    fn without_exchange_the_old_file_is_kept_aside() {
        let (temp, at, pinned) = setup();
        let (new, id) = stage_named(at.dir(), b"new").into_named().unwrap();
        let step = rename_over(new, id, &at, &pinned, Operation::Replace).unwrap();
        assert_eq!((content(&temp), names(&temp)), (b"new".to_vec(), 2));
        step.undo().unwrap();
        assert_eq!((content(&temp), names(&temp)), (b"old".to_vec(), 1));
        let (new, id) = stage_named(at.dir(), b"new").into_named().unwrap();
        rename_over(new, id, &at, &pinned, Operation::Replace)
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!((content(&temp), names(&temp)), (b"new".to_vec(), 1));
    }

    #[test]
    fn without_exchange_another_file_is_not_touched() {
        let (temp, at, pinned) = setup();
        std::fs::remove_file(temp.path().join("f")).unwrap();
        std::fs::write(temp.path().join("f"), "theirs").unwrap();
        let (new, id) = stage_named(at.dir(), b"new").into_named().unwrap();
        let error = rename_over(new, id, &at, &pinned, Operation::Replace).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Changed);
        assert_eq!((content(&temp), names(&temp)), (b"theirs".to_vec(), 1));
    }

    #[test]
    fn after_the_swap_another_file_is_swapped_back() {
        let (temp, at, pinned) = setup();
        std::fs::write(temp.path().join("f"), "longer than before").unwrap();
        let (new, id) = stage_named(at.dir(), b"new").into_named().unwrap();
        let error = swap_in(new, id, &at, &pinned, Operation::Replace).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Changed);
        assert_eq!(
            (content(&temp), names(&temp)),
            (b"longer than before".to_vec(), 1)
        );
    }

    #[test]
    fn a_named_file_is_created_and_leaves_nothing_when_dropped() {
        let (temp, at, _pinned) = setup();
        drop(stage_named(at.dir(), b"new"));
        assert_eq!(names(&temp), 1);
        let error = crate::create(stage_named(at.dir(), b"new"), &at).unwrap_err();
        assert_eq!((error.kind(), names(&temp)), (&ErrorKind::Exists, 1));
        std::fs::remove_file(temp.path().join("f")).unwrap();
        crate::create(stage_named(at.dir(), b"new"), &at)
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!((content(&temp), names(&temp)), (b"new".to_vec(), 1));
    }
}
