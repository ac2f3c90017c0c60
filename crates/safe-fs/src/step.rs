//! A change that was made: it can be taken back as long as nobody built on
//! it, or finished, which drops what the undo would need.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

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

/// Names a temporary entry that a step holds.
#[derive(Clone, Copy, Debug)]
pub struct TemporaryName<'a> {
    /// The directory it is in.
    pub dir: &'a Dir,
    /// Its name there.
    pub name: &'a OsStr,
}

#[derive(Debug)]
pub(crate) enum Change {
    Created {
        new: Stamp,
    },
    Replaced {
        aside: Held,
        new: Stamp,
        old: FileId,
    },
    Removed {
        aside: Held,
        old: FileId,
    },
    Renamed {
        to: Location,
        id: FileId,
    },
    Rewritten(Box<Rewriting>),
    MadeDirectories(Vec<MadeDirectory>),
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
            Change::Replaced { aside, new, old } => undo_replace(place, aside, *new, *old),
            Change::Removed { aside, old } => undo_move(aside.pair(), place, *old),
            Change::Renamed { to, id } => undo_move(sys::pair(&to.dir, &to.name), place, *id),
            Change::Rewritten(rewriting) => undo_rewrite(rewriting),
            Change::MadeDirectories(made) => undo_directories(made),
        };
        match result.during(OP, self.at.path())? {
            Undone::Yes => Ok(()),
            Undone::Foreign => Err(Error::new(OP, self.at.path(), ErrorKind::Changed)),
        }
    }

    /// Drops what was kept for the undo: the old inode's temporary name, which
    /// an error names.
    pub fn finish(self) -> Result<(), Error> {
        let (Change::Replaced { aside, .. } | Change::Removed { aside, .. }) = &self.change else {
            return Ok(());
        };
        match sys::unlink_at(aside.dir.as_fd(), &aside.name) {
            Err(error) if sys::is(&error, libc::ENOENT) => Ok(()),
            result => {
                let left = self.at.path().with_file_name(&aside.name);
                result.during(Operation::Finish, &left)
            }
        }
    }

    /// Returns the temporary names that the step holds, for a journal.
    pub fn temporary_names(&self) -> impl Iterator<Item = TemporaryName<'_>> {
        let aside = match &self.change {
            Change::Replaced { aside, .. } | Change::Removed { aside, .. } => Some(aside),
            _ => None,
        };
        aside.into_iter().map(|held| TemporaryName {
            dir: &held.dir,
            name: &held.name,
        })
    }
}

enum Undone {
    Yes,
    /// Somebody else's file is in the way.
    Foreign,
}

/// Tells what is at a name; nothing when nothing is.
fn stamp(place: Place<'_>) -> io::Result<Option<Stamp>> {
    match sys::stat_at(place.0, place.1) {
        Ok(stat) => Ok(Some(Stamp::of(&stat))),
        Err(error) if sys::is(&error, libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn identity(place: Place<'_>) -> io::Result<Option<FileId>> {
    Ok(stamp(place)?.map(|stamp| stamp.id))
}

type Place<'a> = (std::os::fd::BorrowedFd<'a>, &'a OsStr);

fn undo_create(place: Place<'_>, new: Stamp) -> io::Result<Undone> {
    match stamp(place)? {
        None => Ok(Undone::Yes),
        Some(found) if found == new => sys::unlink_at(place.0, place.1).map(|()| Undone::Yes),
        Some(_) => Ok(Undone::Foreign),
    }
}

/// Swaps the old inode back, looks at what came out, and only then removes it.
fn undo_replace(place: Place<'_>, aside: &Held, new: Stamp, old: FileId) -> io::Result<Undone> {
    if stamp(place)? != Some(new) || identity(aside.pair())? != Some(old) {
        return Ok(Undone::Foreign);
    }
    match sys::exchange(aside.pair(), place) {
        Err(error) if sys::lacks_rename_flag(&error) => {
            return sys::rename_over(aside.pair(), place).map(|()| Undone::Yes);
        }
        result => result?,
    }
    if stamp(aside.pair())? != Some(new) {
        sys::exchange(aside.pair(), place)?;
        return Ok(Undone::Foreign);
    }
    sys::unlink_at(aside.dir.as_fd(), &aside.name).map(|()| Undone::Yes)
}

fn undo_move(from: Place<'_>, to: Place<'_>, id: FileId) -> io::Result<Undone> {
    if identity(from)? != Some(id) {
        return Ok(Undone::Foreign);
    }
    move_new(from, to).map(|()| Undone::Yes)
}

fn undo_rewrite(rewriting: &Rewriting) -> io::Result<Undone> {
    let fd = rewriting.fd.as_fd();
    if Stamp::of(&sys::stat_fd(fd)?) != rewriting.after {
        return Ok(Undone::Foreign);
    }
    restore(fd, &rewriting.old, &rewriting.before).map(|()| Undone::Yes)
}

/// Deepest first; what is not empty or not ours any more stays.
fn undo_directories(made: &[MadeDirectory]) -> io::Result<Undone> {
    for directory in made.iter().rev() {
        let place = sys::pair(&directory.parent, &directory.name);
        if identity(place)? != Some(directory.id) {
            continue;
        }
        match sys::rmdir_at(place.0, place.1) {
            Err(error) if sys::is(&error, libc::ENOTEMPTY) || sys::is(&error, libc::ENOENT) => {}
            result => result?,
        }
    }
    Ok(Undone::Yes)
}
