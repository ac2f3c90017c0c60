//! A pinned directory: the handle every operation is relative to.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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

/// Lets places in one directory share one descriptor, so that thousands of
/// files in it do not need thousands. Directories are told by the identity of
/// a descriptor that is held, never by a path, so nothing can go stale.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<HashMap<FileId, Weak<OwnedFd>>>);

impl Pool {
    /// Returns the descriptor that is held already for the same directory.
    pub(crate) fn share(&self, dir: Dir) -> Dir {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = held.get(&dir.id).and_then(Weak::upgrade) {
            return Dir { fd, id: dir.id };
        }
        held.insert(dir.id, Arc::downgrade(&dir.fd));
        dir
    }
}
