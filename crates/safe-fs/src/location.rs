//! A proved place: a pinned directory beneath a root, and a name in it.

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use crate::dir::Dir;
use crate::error::{Error, ErrorKind, Operation};
use crate::id::FileId;
use crate::sys;

/// Names a place beneath a root, whether or not something is there.
#[derive(Clone, Debug)]
pub struct Location {
    pub(crate) dir: Dir,
    pub(crate) missing: Vec<OsString>,
    pub(crate) name: OsString,
    pub(crate) path: PathBuf,
}

/// Compares places: equal for all paths that lead to one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocationKey {
    /// The deepest directory that exists.
    pub dir: FileId,
    /// The directories below it that do not.
    pub missing: Vec<OsString>,
    /// The last component.
    pub name: OsString,
}

impl Location {
    /// Returns the deepest parent directory that exists.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Returns the parents below [`Self::dir`] that would have to be made.
    pub fn missing(&self) -> &[OsString] {
        &self.missing
    }

    /// Returns the places of the parents that would have to be made, each after its own parent.
    pub fn missing_parents(&self) -> impl Iterator<Item = Location> {
        (0..self.missing.len()).map(|depth| Location {
            dir: self.dir.clone(),
            missing: self.missing.iter().take(depth).cloned().collect(),
            name: self.missing.get(depth).cloned().unwrap_or_default(),
            path: (self.path.ancestors().nth(self.missing.len() - depth))
                .unwrap_or(&self.path)
                .to_path_buf(),
        })
    }

    /// Returns the last component.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the absolute path for messages: base and path without `.` and `..`.
    ///
    /// It says what was asked for and proves nothing: never open it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a value that is equal for all aliases of this place.
    pub fn key(&self) -> LocationKey {
        LocationKey {
            dir: self.dir.id(),
            missing: self.missing.clone(),
            name: self.name.clone(),
        }
    }

    /// Returns directory and name for a call, once all parents exist.
    pub(crate) fn ready(&self, op: Operation) -> Result<(BorrowedFd<'_>, &OsStr), Error> {
        if self.missing.is_empty() {
            return Ok(sys::pair(&self.dir, &self.name));
        }
        Err(Error::new(op, &self.path, ErrorKind::NotFound))
    }
}
