//! A change that was made: it can be taken back as long as nobody built on
//! it, or finished, which drops what the undo would need.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::sys::stat::FileStat;

use crate::dir::Dir;
use crate::error::{Context, Error, ErrorKind, Operation};
use crate::id::{FileId, Stamp};
use crate::location::Location;
use crate::ops::restore;
use crate::sys;
use crate::temporary::{Held, move_new};

/// Holds a change until it is undone or finished.
///
/// A step that is merely dropped does neither: the change stays, and so do
/// its temporary names, for whoever recovers.
#[derive(Debug)]
#[must_use = "a step has to be undone or finished"]
pub struct Step {
    at: Location,
    change: Change,
}

#[derive(Debug)]
pub(crate) enum Change {
    Created {
        new: Stamp,
    },
    Replaced {
        aside: Held,
        new: Stamp,
        old: Stamp,
    },
    Removed {
        aside: Held,
        old: Stamp,
    },
    Renamed {
        to: Location,
        moved: Stamp,
    },
    Rewritten(Box<Rewriting>),
    MadeDirectories(Vec<MadeDirectory>),
    /// Nothing yet: the directory goes when the step is finished.
    RemovesDirectory(FileId),
}

#[derive(Debug)]
pub(crate) struct Rewriting {
    pub(crate) fd: OwnedFd,
    pub(crate) old: Vec<u8>,
    pub(crate) before: FileStat,
    pub(crate) after: Stamp,
}

#[derive(Debug)]
pub(crate) struct MadeDirectory {
    pub(crate) parent: Dir,
    pub(crate) name: OsString,
    pub(crate) id: FileId,
}

impl Step {
    pub(crate) fn new(at: &Location, change: Change) -> Self {
        Self {
            at: at.clone(),
            change,
        }
    }

    /// Takes the change back.
    ///
    /// What somebody else put in the place meanwhile is left alone: the error
    /// is then [`ErrorKind::Changed`] or [`ErrorKind::Exists`], and the old
    /// file stays under its temporary name rather than being lost.
    pub fn undo(self) -> Result<(), Error> {
        const OP: Operation = Operation::Undo;
        let place = sys::pair(&self.at.dir, &self.at.name);
        let result = match &self.change {
            Change::Created { new } => undo_create(place, *new),
            Change::Replaced { aside, new, old } => undo_replace(place, aside.pair(), *new, *old),
            Change::Removed { aside, old } => undo_move(aside.pair(), place, *old),
            Change::Renamed { to, moved } => undo_move(sys::pair(&to.dir, &to.name), place, *moved),
            Change::Rewritten(rewriting) => undo_rewrite(rewriting),
            Change::MadeDirectories(made) => undo_directories(made),
            Change::RemovesDirectory(_) => Ok(Undone::Yes),
        };
        match result.during(OP, self.at.path())? {
            Undone::Yes => Ok(()),
            Undone::Foreign => Err(Error::new(OP, self.at.path(), ErrorKind::Changed)),
        }
    }

    /// Returns the place, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.at.path()
    }

    /// Waits until a file that was written in place has reached the disk (`fsync(2)`).
    pub(crate) fn sync(&self) -> io::Result<()> {
        match &self.change {
            Change::Rewritten(rewriting) => sys::sync(rewriting.fd.as_fd()),
            _ => Ok(()),
        }
    }

    /// Drops what was kept for the undo: the old inode's temporary name, which
    /// an error names.
    pub fn finish(self) -> Result<(), Error> {
        let aside = match &self.change {
            Change::Replaced { aside, .. } | Change::Removed { aside, .. } => aside,
            Change::RemovesDirectory(id) => {
                let place = sys::pair(&self.at.dir, &self.at.name);
                return remove_directory(place, *id).during(Operation::Finish, self.at.path());
            }
            _ => return Ok(()),
        };
        match sys::unlink_at(aside.dir.as_fd(), &aside.name) {
            Err(error) if sys::is(&error, libc::ENOENT) => Ok(()),
            result => {
                let left = self.at.path().with_file_name(&aside.name);
                result.during(Operation::Finish, &left)
            }
        }
    }
}

pub(crate) enum Undone {
    Yes,
    /// Somebody else's file is in the way.
    Foreign,
}

pub(crate) type Place<'a> = (std::os::fd::BorrowedFd<'a>, &'a OsStr);

fn stamp(place: Place<'_>) -> io::Result<Option<Stamp>> {
    sys::stamp_at(place.0, place.1)
}

fn is_inode(found: Option<Stamp>, wanted: Stamp) -> bool {
    found.is_some_and(|found| found.is_same_inode(&wanted))
}

fn unlink(place: Place<'_>) -> io::Result<Undone> {
    sys::unlink_at(place.0, place.1).map(|()| Undone::Yes)
}

pub(crate) fn undo_create(place: Place<'_>, new: Stamp) -> io::Result<Undone> {
    match stamp(place)? {
        None => Ok(Undone::Yes),
        Some(found) if found == new => unlink(place),
        Some(_) => Ok(Undone::Foreign),
    }
}

/// Undoes a replacement from wherever it was interrupted.
pub(crate) fn undo_replace(
    place: Place<'_>,
    aside: Place<'_>,
    new: Stamp,
    old: Stamp,
) -> io::Result<Undone> {
    let (found, kept) = (stamp(place)?, stamp(aside)?);
    if is_inode(found, old) {
        // It was not swapped yet: what has the other name goes, if it is ours.
        return match kept {
            None => Ok(Undone::Yes),
            Some(kept) if kept == new || kept.is_same_inode(&old) => unlink(aside),
            Some(_) => Ok(Undone::Foreign),
        };
    }
    match found {
        Some(found) if found == new && is_inode(kept, old) => swap_back(place, aside, new),
        // Somebody else replaced the old file before we did: only ours goes.
        Some(found) if found != new && kept == Some(new) => unlink(aside),
        None if is_inode(kept, old) => move_new(aside, place).map(|()| Undone::Yes),
        _ => Ok(Undone::Foreign),
    }
}

/// Swaps the old inode back, looks at what came out, and only then removes it.
fn swap_back(place: Place<'_>, aside: Place<'_>, new: Stamp) -> io::Result<Undone> {
    match sys::exchange(aside, place) {
        Err(error) if sys::lacks_rename_flag(&error) => {
            return sys::rename_over(aside, place).map(|()| Undone::Yes);
        }
        result => result?,
    }
    if stamp(aside)? != Some(new) {
        sys::exchange(aside, place)?;
        return Ok(Undone::Foreign);
    }
    unlink(aside)
}

/// Takes a move back from wherever it was interrupted.
pub(crate) fn undo_move(from: Place<'_>, to: Place<'_>, moved: Stamp) -> io::Result<Undone> {
    match (is_inode(stamp(from)?, moved), is_inode(stamp(to)?, moved)) {
        (true, true) => unlink(from),
        // Where something else is by now, this fails and replaces nothing.
        (true, false) => move_new(from, to).map(|()| Undone::Yes),
        (false, true) => Ok(Undone::Yes),
        _ => Ok(Undone::Foreign),
    }
}

fn undo_rewrite(rewriting: &Rewriting) -> io::Result<Undone> {
    let fd = rewriting.fd.as_fd();
    if sys::stamp_fd(fd)? != rewriting.after {
        return Ok(Undone::Foreign);
    }
    restore(fd, &rewriting.old, &rewriting.before).map(|()| Undone::Yes)
}

/// Deepest first; what is not empty or not ours any more stays.
fn undo_directories(made: &[MadeDirectory]) -> io::Result<Undone> {
    for directory in made.iter().rev() {
        remove_directory(sys::pair(&directory.parent, &directory.name), directory.id)?;
    }
    Ok(Undone::Yes)
}

fn remove_directory(place: Place<'_>, id: FileId) -> io::Result<()> {
    match stamp(place)?.map(|found| found.id) == Some(id) {
        true => remove_if_empty(place),
        false => Ok(()),
    }
}

/// `unlinkat(AT_REMOVEDIR)`; what has something in it, or is gone, is let be.
pub(crate) fn remove_if_empty(place: Place<'_>) -> io::Result<()> {
    const HARMLESS: [i32; 4] = [libc::ENOENT, libc::ENOTEMPTY, libc::EEXIST, libc::ENOTDIR];
    match sys::rmdir_at(place.0, place.1) {
        Err(error) if HARMLESS.iter().any(|errno| sys::is(&error, *errno)) => Ok(()),
        result => result,
    }
}
