//! The identity of a file: names can be swapped, device and inode cannot
//! while somebody holds the file open.

use nix::sys::stat::FileStat;

/// Names an inode: equal values are one file as long as one side is held open.
///
/// Inode numbers are reused once a file is gone (`inode(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// Tells a file from a later one that got its inode number again, without
/// holding it open: by size and modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) id: FileId,
    size: i64,
    modified: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(stat: &FileStat) -> Self {
        Self {
            id: FileId::of(stat),
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }
}
