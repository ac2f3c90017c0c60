//! The proof that a pinned directory lies beneath a root: walk `..` from the
//! descriptor until a directory is a root by device and inode. A string could
//! lie; the way up cannot, and it crosses bind mounts as the kernel does.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;

use crate::dir::Dir;
use crate::guard::{Level, last_names};
use crate::id::FileId;
use crate::sys;

/// The directories from a location's own up to its root, both included.
pub(crate) struct Chain {
    dir: Dir,
    above: Vec<Dir>,
}

impl Chain {
    /// Climbs to the nearest root; nothing when the top comes first.
    pub(crate) fn climb(dir: &Dir, roots: &[FileId]) -> io::Result<Option<Self>> {
        let mut above: Vec<Dir> = Vec::new();
        loop {
            let current = above.last().unwrap_or(dir);
            if roots.contains(&current.id()) {
                return Ok(Some(Self {
                    dir: dir.clone(),
                    above,
                }));
            }
            let parent = current.parent()?;
            if parent.id() == current.id() {
                return Ok(None);
            }
            above.push(parent);
        }
    }

    /// Returns the location's own directory.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Returns whether the location's directory is the root itself.
    pub(crate) fn level(&self) -> Level {
        if self.above.is_empty() {
            Level::Root
        } else {
            Level::Deeper
        }
    }

    /// Returns each directory with its parent and the parent's level, deepest first.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&Dir, &Dir, Level)> {
        let children = std::iter::once(&self.dir).chain(&self.above);
        let top = self.above.len();
        children
            .zip(&self.above)
            .enumerate()
            .map(move |(index, (child, parent))| {
                let level = if index + 1 == top {
                    Level::Root
                } else {
                    Level::Deeper
                };
                (child, parent, level)
            })
    }

    /// Returns the directories' names as the kernel has them, deepest first;
    /// nothing when it cannot say.
    pub(crate) fn names(&self) -> Vec<OsString> {
        match sys::current_path(self.dir.as_fd()) {
            Ok(path) => last_names(&path, self.above.len()),
            Err(_) => Vec::new(),
        }
    }
}
