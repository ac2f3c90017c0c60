//! The identity of a file: names can be swapped, device and inode cannot
//! while somebody holds the file open.

use nix::sys::stat::FileStat;
use serde::{Deserialize, Serialize};

/// Names an inode: equal values are one file as long as one side is held open.
///
/// Inode numbers are reused once a file is gone (`inode(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// The device that holds the file (`st_dev`).
    pub dev: u64,
    /// The inode number on that device (`st_ino`).
    pub ino: u64,
}

impl FileId {
    pub(crate) fn of(stat: &FileStat) -> Self {
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
        }
    }
}

/// Seconds and nanoseconds since 1970.
pub(crate) type Time = (i64, u32);

/// Tells a file from a later one that got its inode number again, without
/// holding it open: by the time of its birth, its size and its modification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) id: FileId,
    /// When the inode was made (`statx(2)`, Linux 4.11); not every file system knows.
    pub(crate) birth: Option<Time>,
    pub(crate) size: u64,
    pub(crate) modified: Time,
}

impl Stamp {
    /// Tells whether both are of one inode, whatever was written to it.
    ///
    /// An overlay makes a file anew when it is first changed, which keeps its
    /// number, size and modification time, but not its birth.
    pub(crate) fn is_same_inode(&self, other: &Self) -> bool {
        let unwritten = (self.size, self.modified) == (other.size, other.modified);
        self.id == other.id && (self.birth == other.birth || unwritten)
    }

    /// Tells whether this is the same inode after it was written in place.
    ///
    /// Without a time of birth only the number can tell.
    pub(crate) fn is_rewritten(&self, before: &Self) -> bool {
        self.id == before.id && self.birth == before.birth
    }
}
