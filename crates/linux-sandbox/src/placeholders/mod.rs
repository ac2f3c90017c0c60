//! Stand-ins for protected names that do not exist, so that a command cannot
//! make them.
//!
//! A mount needs something to lie on, so an empty directory is made for the
//! time of a run, and process 1 covers it. Removing a mount point on the host
//! takes the mount away in every sandbox that has one there, so nobody may
//! remove a placeholder that another run relies on: each run holds a shared
//! lock on the directory, and removing takes an exclusive one, which is never
//! waited for. The last run that leaves removes it.
//!
//! The mark is the sticky bit: `mkdir` sets it in the same instant, the umask
//! does not touch it, and nobody gives it to an empty `.git`. So what a killed
//! run leaves behind is known for what it is by the next one, without a record.

mod guardian;
mod held;
mod take;
#[cfg(test)]
mod tests;
mod times;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FlockOperation, Mode, Stat, fchmod, flock, fstat, statat, unlinkat};
use rustix::io::Errno as Os;
use sandbox_policy::AbsolutePath;
use sandbox_policy::facts::FileId;

use crate::resolve::id_of;

pub(crate) use held::{GivenBack, Held};

/// The sticky bit.
const MARK: u32 = 0o1000;

/// Tells whether a directory has the mark of a placeholder.
pub(crate) fn is_marked(stat: &Stat) -> bool {
    stat.st_mode & MARK != 0
}

/// Whose a directory is that stands in for a missing name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A run's; the mark tells everybody.
    Marked,
    /// This run's, on a file system that keeps no mark.
    Unmarkable,
    /// An empty directory of somebody's own; it is never removed.
    Foreign,
}

/// A directory that stands in for a missing name.
struct Placeholder {
    path: AbsolutePath,
    parent: OwnedFd,
    name: OsString,
    directory: OwnedFd,
    id: FileId,
    kind: Kind,
}

/// The stand-ins of one run; dropping gives them back.
#[derive(Default)]
pub(crate) struct Placeholders {
    held: Vec<Placeholder>,
    /// Names that the caller cannot make now, in directories of its own: the
    /// command could, after a `chmod`.
    open: Vec<AbsolutePath>,
}

/// How a placeholder ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It is gone.
    Removed,
    /// It stays: another run needs it, or it is somebody's own.
    Left,
    /// It stays with what somebody put into it.
    Filled,
}

impl Placeholders {
    /// Returns the inode that stands in for a name.
    pub(crate) fn id_at(&self, path: &AbsolutePath) -> Option<FileId> {
        let held = self.held.iter().find(|it| it.path == *path);
        held.map(|it| it.id)
    }

    /// Removes what nobody needs any more; returns what somebody filled.
    fn give_back(&mut self) -> Vec<PathBuf> {
        let ends = self.held.drain(..).map(|it| (it.give_back(), it.path));
        let filled = ends.filter(|(end, _)| *end == End::Filled);
        filled.map(|(_, path)| path.as_path().into()).collect()
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Placeholder {
    /// Tells whether the name still leads to this directory.
    fn is_in_place(&self) -> bool {
        let found = statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|stat| id_of(&stat) == self.id)
    }

    /// Removes the directory if this run was the last that needed it. `rmdir`
    /// itself makes sure that nothing is lost.
    fn give_back(&self) -> End {
        if flock(&self.directory, FlockOperation::NonBlockingLockExclusive).is_err() {
            return End::Left;
        }
        let Ok(stat) = fstat(&self.directory) else {
            return End::Left;
        };
        let is_ours = match self.kind {
            Kind::Marked => is_marked(&stat),
            Kind::Unmarkable => true,
            Kind::Foreign => false,
        };
        if !is_ours || !self.is_in_place() {
            return End::Left;
        }
        let before = fstat(&self.parent);
        match unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
            Ok(()) => {
                if let (Ok(before), Ok(removed)) = (before, fstat(&self.directory)) {
                    times::put_back(&self.parent, &before, &removed);
                }
                End::Removed
            }
            Err(Os::NOTEMPTY | Os::EXIST) => {
                // It is theirs now, and no longer a placeholder's.
                let mode = Mode::from_raw_mode(stat.st_mode & !MARK & 0o7777);
                let _ = fchmod(&self.directory, mode);
                End::Filled
            }
            Err(_) => End::Left,
        }
    }
}
