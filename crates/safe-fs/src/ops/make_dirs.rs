//! Making the parents that a location lacks, each pinned before the next.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use crate::dir::Dir;
use crate::error::{Context, Error, Operation};
use crate::location::Location;
use crate::step::{Change, MadeDirectory, Step};
use crate::sys;

/// Makes the missing parents of a place (`mkdirat(2)`, mode 0777 without the
/// umask) and returns the place with all parents pinned.
///
/// A directory that somebody else made meanwhile is used and not undone; a
/// link or a file in its place is refused. The undo removes what was made
/// and is empty still.
pub fn make_directories(at: &Location) -> Result<(Location, Step), Error> {
    make_directories_telling(at, |_, _| Ok(()))
}

/// Makes them as [`make_directories`] does, and tells of each before it is there.
pub(crate) fn make_directories_telling(
    at: &Location,
    mut tell: impl FnMut(&Dir, &OsStr) -> Result<(), Error>,
) -> Result<(Location, Step), Error> {
    let mut made = Vec::new();
    let mut ready = at.clone();
    ready.missing.clear();
    for (index, name) in at.missing.iter().enumerate() {
        let depth = at.missing.len() - index;
        let path = at.path.ancestors().nth(depth).unwrap_or(&at.path);
        let result = tell(&ready.dir, name).and_then(|()| {
            make(&ready.dir, name, &mut made).during(Operation::MakeDirectory, path)
        });
        match result {
            Ok(dir) => ready.dir = dir,
            Err(error) => {
                Step::new(at, Change::MadeDirectories(made)).undo()?;
                return Err(error);
            }
        }
    }
    Ok((ready, Step::new(at, Change::MadeDirectories(made))))
}

/// Makes one directory, or takes the one that somebody else made, and pins it.
fn make(parent: &Dir, name: &OsStr, made: &mut Vec<MadeDirectory>) -> io::Result<Dir> {
    match sys::mkdir_at(parent.as_fd(), name) {
        Err(error) if sys::is(&error, libc::EEXIST) => return parent.child(name),
        result => result?,
    }
    let dir = parent.child(name).inspect_err(|_| {
        let _ = sys::rmdir_at(parent.as_fd(), name);
    })?;
    made.push(MadeDirectory {
        parent: parent.clone(),
        name: name.to_os_string(),
        id: dir.id(),
    });
    Ok(dir)
}
