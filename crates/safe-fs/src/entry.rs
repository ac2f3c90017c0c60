//! What is at a location, found out without opening it: a FIFO would wait, a
//! device would act.

use std::ffi::OsString;
use std::os::fd::AsFd;

use nix::sys::stat::SFlag;

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
    /// Something that is never opened.
    Special(SpecialKind),
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
                SFlag::S_IFIFO => Self::Special(SpecialKind::Fifo),
                SFlag::S_IFSOCK => Self::Special(SpecialKind::Socket),
                SFlag::S_IFCHR => Self::Special(SpecialKind::CharDevice),
                SFlag::S_IFBLK => Self::Special(SpecialKind::BlockDevice),
                _ => return Err(Error::new(OP, &at.path, ErrorKind::Os)),
            },
        )
    }
}
