//! What is at a location, found out without opening it: a FIFO would wait, a
//! device would act.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::stat::{FileStat, SFlag};

use crate::error::{Context, Error, ErrorKind, Operation};
use crate::id::FileId;
use crate::location::Location;
use crate::pinned::Pinned;
use crate::sys;

/// Names a kind of file that is never opened (`inode(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl std::fmt::Display for SpecialKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fifo => "FIFO",
            Self::Socket => "socket",
            Self::CharDevice => "character device",
            Self::BlockDevice => "block device",
        })
    }
}

/// Says what is at a location.
#[derive(Debug)]
pub enum Entry {
    /// Nothing.
    Missing,
    /// A regular file.
    File(Pinned),
    /// A symbolic link, not followed.
    Link {
        /// The link itself.
        pinned: Pinned,
        /// What it says.
        target: OsString,
    },
    /// A directory.
    Directory(FileId),
    /// Something that is never opened; it can be moved and removed.
    Special {
        /// What it is.
        kind: SpecialKind,
        /// The thing itself.
        pinned: Pinned,
    },
}

impl Entry {
    /// `openat(O_PATH | O_NOFOLLOW)`, `fstat`, and `readlinkat` for a link.
    pub(crate) fn at(at: &Location) -> Result<Self, Error> {
        const OP: Operation = Operation::Inspect;
        if !at.missing.is_empty() {
            return Ok(Self::Missing);
        }
        let fd = match sys::open_at(at.dir.as_fd(), &at.name, sys::PIN_ANYTHING) {
            Err(error) if sys::is(&error, libc::ENOENT) => return Ok(Self::Missing),
            result => result.during(OP, &at.path)?,
        };
        let stat = sys::stat_fd(fd.as_fd()).during(OP, &at.path)?;
        Ok(
            match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
                SFlag::S_IFREG => Self::File(Pinned::new(fd, stat, at.clone())),
                SFlag::S_IFLNK => {
                    let target = sys::read_link(fd.as_fd()).during(OP, &at.path)?;
                    Self::Link {
                        pinned: Pinned::new(fd, stat, at.clone()),
                        target,
                    }
                }
                SFlag::S_IFDIR => Self::Directory(FileId::of(&stat)),
                SFlag::S_IFIFO => Self::special(SpecialKind::Fifo, fd, stat, at),
                SFlag::S_IFSOCK => Self::special(SpecialKind::Socket, fd, stat, at),
                SFlag::S_IFCHR => Self::special(SpecialKind::CharDevice, fd, stat, at),
                SFlag::S_IFBLK => Self::special(SpecialKind::BlockDevice, fd, stat, at),
                _ => return Err(Error::new(OP, &at.path, ErrorKind::Os)),
            },
        )
    }

    fn special(kind: SpecialKind, fd: OwnedFd, stat: FileStat, at: &Location) -> Self {
        let pinned = Pinned::new(fd, stat, at.clone());
        Self::Special { kind, pinned }
    }
}
