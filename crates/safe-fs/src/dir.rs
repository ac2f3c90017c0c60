//! A pinned directory: the handle every operation is relative to.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::id::FileId;
use crate::sys;

/// Holds a directory by descriptor, wherever it is moved (`open(2)`, `O_PATH`).
#[derive(Clone, Debug)]
pub struct Dir {
    fd: Arc<OwnedFd>,
    id: FileId,
}

impl Dir {
    pub(crate) fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        let id = FileId::of(&sys::stat_fd(fd.as_fd())?);
        Ok(Self {
            fd: Arc::new(fd),
            id,
        })
    }

    /// Returns the directory's identity.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Pins a directory in this one; a link is not followed (`ENOTDIR`).
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Self> {
        Self::from_fd(sys::open_at(self.as_fd(), name, sys::PIN_DIRECTORY)?)
    }

    /// Pins the directory above, across mount points as the kernel sees them.
    pub(crate) fn parent(&self) -> io::Result<Self> {
        self.child(OsStr::new(".."))
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
