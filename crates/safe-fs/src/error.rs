//! Errors that keep the evidence: what was tried, where, why it failed in
//! terms a program can match on, and what the kernel said.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::entry::SpecialKind;

/// Names what was being done when an error arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opening a root or the base directory.
    Open,
    /// Turning a path into a location.
    Resolve,
    /// Following a symbolic link to its target.
    Follow,
    /// Looking at what is at a location.
    Inspect,
    /// Reading a file.
    Read,
    /// Asking whether a file may be written.
    CheckAccess,
    /// Writing a new inode.
    Stage,
    /// Giving a new inode its name.
    Create,
    /// Putting a new inode in the place of another.
    Replace,
    /// Taking a name away.
    Remove,
    /// Moving a name.
    Rename,
    /// Moving another name of a file to a new inode.
    Relink,
    /// Writing a file in place.
    Rewrite,
    /// Making a directory.
    MakeDirectory,
    /// Searching for the other names of a file.
    FindLinks,
    /// Locking the workspace.
    Lock,
    /// Writing down what is about to be done.
    Journal,
    /// Taking up what a killed transaction left.
    Recover,
    /// Waiting until a change has reached the disk.
    Sync,
    /// Taking a change back.
    Undo,
    /// Dropping what a change kept for its undo.
    Finish,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Resolve => "resolve",
            Self::Follow => "follow",
            Self::Inspect => "inspect",
            Self::Read => "read",
            Self::CheckAccess => "check access to",
            Self::Stage => "stage",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Relink => "relink",
            Self::Rewrite => "rewrite",
            Self::MakeDirectory => "make directory",
            Self::FindLinks => "find links below",
            Self::Lock => "lock",
            Self::Journal => "write the journal",
            Self::Recover => "recover from the journal",
            Self::Sync => "flush to the disk",
            Self::Undo => "undo the change of",
            Self::Finish => "finish the change of",
        })
    }
}

/// Describes a symbolic link that a resolution went through.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinkHop {
    /// Where the link is.
    pub link: PathBuf,
    /// What it says, as it is written in the link.
    pub target: OsString,
}

/// Tells programs why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The place lies beneath no root.
    #[error("outside the writable roots{}", via_text(.via.as_ref()))]
    Outside {
        /// The link inside the roots that led out, when there was one.
        via: Option<LinkHop>,
    },
    /// The place is, or lies below, a guarded name.
    #[error("{} is protected", .name.display())]
    Guarded {
        /// The guarded name, as the guard spells it.
        name: OsString,
    },
    /// Something in the way is not a directory (`ENOTDIR`).
    #[error("not a directory")]
    NotADirectory,
    /// A file was wanted and the path names a directory (`EISDIR`).
    #[error("is a directory")]
    IsADirectory,
    /// Too many symbolic links, or a link where none may be (`ELOOP`).
    #[error("too many symbolic links")]
    Loop,
    /// A FIFO, socket or device: never opened.
    #[error("is a {0}")]
    Special(SpecialKind),
    /// The path holds a NUL byte.
    #[error("the path holds a NUL byte")]
    InvalidName,
    /// The path ends with a slash.
    #[error("the path ends with a slash")]
    TrailingSlash,
    /// A component or the path is too long (`ENAMETOOLONG`).
    #[error("the name is too long")]
    NameTooLong,
    /// Nothing is there (`ENOENT`).
    #[error("not found")]
    NotFound,
    /// Something is there already (`EEXIST`).
    #[error("exists already")]
    Exists,
    /// The file is not the one that was pinned, or it was written since
    /// (also `ESTALE`).
    #[error("changed by somebody else meanwhile")]
    Changed,
    /// The two places lie on different mounts (`EXDEV`).
    #[error("the places are on different mounts")]
    CrossDevice,
    /// The file is a mount point or is being executed (`EBUSY`, `ETXTBSY`).
    #[error("busy: a mount point or a running program")]
    Busy,
    /// The file has several names, so it is not written in place.
    #[error("has {links} hard links")]
    HardLinked {
        /// The link count.
        links: u64,
    },
    /// The file has the journal's name and is no journal that was written here.
    #[error("not a journal that was written here")]
    NotAJournal,
    /// A journal that another user wrote.
    #[error("it belongs to user {uid}")]
    ForeignOwner {
        /// Whose it is.
        uid: u32,
    },
    /// A place that an interrupted transaction changed is not where it was.
    #[error("the directory is not where it was when a patch was interrupted")]
    Unreachable,
    /// The kernel refuses (`EACCES`, `EPERM`).
    #[error("permission denied")]
    PermissionDenied,
    /// The disk or the quota is full (`ENOSPC`, `EDQUOT`).
    #[error("no space left")]
    NoSpace,
    /// The file system is mounted read-only (`EROFS`).
    #[error("read-only file system")]
    ReadOnly,
    /// Anything else: see the source.
    #[error("the system refused")]
    Os,
}

fn via_text(via: Option<&LinkHop>) -> String {
    via.map_or_else(String::new, |hop| {
        format!(
            " (through the link {} -> {})",
            hop.link.display(),
            hop.target.display()
        )
    })
}

impl ErrorKind {
    fn of_errno(errno: Option<i32>) -> Self {
        match errno {
            Some(libc::ENOENT) => Self::NotFound,
            Some(libc::EEXIST) => Self::Exists,
            Some(libc::ENOTDIR) => Self::NotADirectory,
            Some(libc::EISDIR) => Self::IsADirectory,
            Some(libc::ELOOP) => Self::Loop,
            Some(libc::ENAMETOOLONG) => Self::NameTooLong,
            Some(libc::ESTALE) => Self::Changed,
            Some(libc::EXDEV) => Self::CrossDevice,
            Some(libc::EBUSY | libc::ETXTBSY) => Self::Busy,
            Some(libc::EACCES | libc::EPERM) => Self::PermissionDenied,
            Some(libc::ENOSPC | libc::EDQUOT) => Self::NoSpace,
            Some(libc::EROFS) => Self::ReadOnly,
            _ => Self::Os,
        }
    }
}

/// Says what failed, where, and why.
#[derive(Debug, thiserror::Error)]
#[error("{op} {}: {kind}", .path.display())]
pub struct Error {
    op: Operation,
    path: PathBuf,
    kind: ErrorKind,
    source: Option<io::Error>,
}

impl Error {
    pub(crate) fn new(op: Operation, path: &Path, kind: ErrorKind) -> Self {
        Self {
            op,
            path: path.to_path_buf(),
            kind,
            source: None,
        }
    }

    pub(crate) fn io(op: Operation, path: &Path, source: io::Error) -> Self {
        let kind = ErrorKind::of_errno(source.raw_os_error());
        Self {
            op,
            path: path.to_path_buf(),
            kind,
            source: Some(source),
        }
    }

    /// Returns what was being done.
    pub fn operation(&self) -> Operation {
        self.op
    }

    /// Returns the place that it is about.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the reason, for programs.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns the kernel's error number when a call failed (`errno(3)`).
    pub fn errno(&self) -> Option<i32> {
        self.source.as_ref().and_then(io::Error::raw_os_error)
    }
}

/// Adds operation and path to a failed call.
pub(crate) trait Context<T> {
    fn during(self, op: Operation, path: &Path) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn during(self, op: Operation, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::io(op, path, source))
    }
}
