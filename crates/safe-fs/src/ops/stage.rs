//! Writing a new inode beside its place, before anything is changed: whatever
//! can fail (space, quota, permissions, attributes) fails here.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::fcntl::OFlag;

use super::attributes::{LostAttribute, SavedAttributes, give, take_over};
use crate::dir::Dir;
use crate::error::{Context, Error, Operation};
use crate::id::{FileId, Stamp};
use crate::pinned::Pinned;
use crate::sys;
use crate::temporary::{self, Held, Temporary, move_new};

const OP: Operation = Operation::Stage;

/// Nobody else reads a copy before it has the old file's own mode.
const PRIVATE: u32 = 0o600;

/// Says what attributes a new inode gets.
#[derive(Clone, Copy, Debug)]
pub enum Attributes<'a> {
    /// Those of a new file; the kernel applies the umask and the directory's
    /// default ACL.
    New {
        /// The permission bits before the umask.
        mode: u32,
    },
    /// Those of an existing file: mode with set-user-ID bits, owner, group,
    /// extended attributes and ACLs.
    Like(&'a Pinned),
    /// Those that a file had which is gone.
    Saved(&'a SavedAttributes),
}

/// Holds a new, complete inode that has no place yet; dropping it leaves nothing.
#[derive(Debug)]
pub struct Staged {
    fd: OwnedFd,
    stamp: Stamp,
    name: OsString,
    holding: Holding,
    lost: Vec<LostAttribute>,
}

#[derive(Debug)]
enum Holding {
    /// `O_TMPFILE`: the kernel frees it when the descriptor is closed.
    Unnamed(Dir),
    /// Under a temporary name.
    Named(Temporary),
}

impl Staged {
    /// Returns what could not be taken over from the old file.
    pub fn lost(&self) -> &[LostAttribute] {
        &self.lost
    }

    /// Returns the new file's identity.
    pub fn id(&self) -> FileId {
        self.stamp.id
    }

    /// Returns what the inode can be told by, and the temporary name that it
    /// gets when it takes the place of another.
    pub(crate) fn told_by(&self) -> (Stamp, OsString) {
        (self.stamp, self.name.clone())
    }

    /// Waits until the content has reached the disk (`fsync(2)`).
    pub(crate) fn sync(&self) -> io::Result<()> {
        sys::sync(self.fd.as_fd())
    }

    /// Gives the inode a temporary name, for calls that need one.
    pub(super) fn into_named(self) -> io::Result<(Temporary, Stamp)> {
        match self.holding {
            Holding::Named(temporary) => Ok((temporary, self.stamp)),
            Holding::Unnamed(dir) => {
                sys::link_unnamed(self.fd.as_fd(), sys::pair(&dir, &self.name))?;
                Ok((Temporary::new(dir, self.name), self.stamp))
            }
        }
    }

    /// Gives the inode its final name; never replaces one (`EEXIST`).
    pub(super) fn into_place(self, to: (BorrowedFd<'_>, &OsStr)) -> io::Result<Stamp> {
        match self.holding {
            Holding::Unnamed(_) => sys::link_unnamed(self.fd.as_fd(), to)?,
            Holding::Named(temporary) => {
                move_new(sys::pair(&temporary.dir, &temporary.name), to)?;
                let _moved: Held = temporary.keep();
            }
        }
        Ok(self.stamp)
    }
}

/// Writes a new inode in a directory, on the file system where it will stay.
///
/// It has no name (`O_TMPFILE`, `open(2)`, Linux 3.11) where the file system
/// and `/proc` allow that, else a temporary one.
pub fn stage(dir: &Dir, bytes: &[u8], attributes: Attributes<'_>) -> Result<Staged, Error> {
    stage_telling(dir, bytes, attributes, |_| Ok(()))
}

/// Stages as [`stage`] does, and tells a temporary name before there is a file of it.
pub(crate) fn stage_telling(
    dir: &Dir,
    bytes: &[u8],
    attributes: Attributes<'_>,
    tell: impl FnOnce(&OsStr) -> Result<(), Error>,
) -> Result<Staged, Error> {
    let path = shown(dir, &attributes);
    let mode = match attributes {
        Attributes::New { mode } => mode,
        Attributes::Like(_) | Attributes::Saved(_) => PRIVATE,
    };
    let name = temporary::name("-new").during(OP, &path)?;
    let (fd, holding) = match make_unnamed(dir, mode).during(OP, &path)? {
        Some(fd) => (fd, Holding::Unnamed(dir.clone())),
        None => {
            tell(&name)?;
            make_named(dir, &name, mode).during(OP, &path)?
        }
    };
    let write = || -> io::Result<Staged> {
        sys::write_all_at(fd.as_fd(), bytes, 0)?;
        let given = match attributes {
            Attributes::New { .. } => None,
            Attributes::Like(old) => Some(take_over(old, fd.as_fd())?),
            Attributes::Saved(saved) => Some(give(saved, fd.as_fd())?),
        };
        let (stamp, mode) = sys::stamp_and_mode(fd.as_fd())?;
        let lost = given.map_or_else(Vec::new, |given| given.lost_with(mode));
        Ok(Staged {
            fd,
            stamp,
            name,
            holding,
            lost,
        })
    };
    write().during(OP, &path)
}

/// Makes a symbolic link under a temporary name, which is told before it is there
/// (`symlinkat(2)`): links cannot be made without one.
pub(crate) fn stage_link(
    dir: &Dir,
    target: &OsStr,
    tell: impl FnOnce(&OsStr) -> Result<(), Error>,
) -> Result<Staged, Error> {
    let shown = sys::current_path(dir.as_fd()).unwrap_or_default();
    let path = Path::new(&shown);
    let name = temporary::name("-new").during(OP, path)?;
    tell(&name)?;
    sys::symlink_at(target, sys::pair(dir, &name)).during(OP, path)?;
    let temporary = Temporary::new(dir.clone(), name.clone());
    let fd = sys::open_at(dir.as_fd(), &name, sys::PIN_ANYTHING).during(OP, path)?;
    let stamp = sys::stamp_fd(fd.as_fd()).during(OP, path)?;
    Ok(Staged {
        fd,
        stamp,
        name,
        holding: Holding::Named(temporary),
        lost: Vec::new(),
    })
}

/// Makes an inode without a name; nothing where there are none.
fn make_unnamed(dir: &Dir, mode: u32) -> io::Result<Option<OwnedFd>> {
    // Whatever got a name there could not be taken back.
    if sys::is_append_only(dir.as_fd())? {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    if !sys::has_proc() {
        return Ok(None);
    }
    let flags = OFlag::O_TMPFILE | OFlag::O_WRONLY;
    match sys::make_at(dir.as_fd(), OsStr::new("."), flags, mode) {
        Err(error) if sys::lacks_unnamed(&error) => Ok(None),
        result => result.map(Some),
    }
}

fn make_named(dir: &Dir, name: &OsStr, mode: u32) -> io::Result<(OwnedFd, Holding)> {
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW;
    let fd = sys::make_at(dir.as_fd(), name, flags, mode)?;
    Ok((
        fd,
        Holding::Named(Temporary::new(dir.clone(), name.to_os_string())),
    ))
}

fn shown(dir: &Dir, attributes: &Attributes<'_>) -> std::path::PathBuf {
    match attributes {
        Attributes::Like(old) => old.path().to_path_buf(),
        Attributes::New { .. } | Attributes::Saved(_) => sys::current_path(dir.as_fd())
            .map_or_else(|_| Path::new("a new file").to_path_buf(), Into::into),
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// Stages as on a file system without unnamed files.
    pub(in super::super) fn stage_named(dir: &Dir, bytes: &[u8]) -> Staged {
        let name = temporary::name("-new").unwrap();
        let (fd, holding) = make_named(dir, &name, 0o644).unwrap();
        sys::write_all_at(fd.as_fd(), bytes, 0).unwrap();
        let stamp = sys::stamp_fd(fd.as_fd()).unwrap();
        Staged {
            fd,
            stamp,
            name,
            holding,
            lost: Vec::new(),
        }
    }
}
