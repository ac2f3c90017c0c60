//! Why an operation cannot be done: evidence first, wording second.
//!
//! Programs match on the first line of the reference tool's messages, so every
//! message begins with that text where it has one; what the reference leaves
//! out (the cause, the rule, the next step) follows it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::edit::EditError;

/// The kinds of file that are never opened for reading or writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

impl fmt::Display for SpecialKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::CharacterDevice => "a character device",
            Self::BlockDevice => "a block device",
        })
    }
}

/// A symbolic link and the text that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkHop {
    /// Where the link is.
    pub link: PathBuf,
    /// What it says.
    pub target: OsString,
}

/// The reason behind a failed operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The operating system refused.
    Os {
        /// The errno value.
        code: i32,
    },
    /// The path is a link, and nothing is where it leads.
    Dangling {
        /// The link.
        hop: Box<LinkHop>,
    },
    /// The path is a directory.
    Directory,
    /// The path is neither a regular file nor a directory nor a link.
    Special(SpecialKind),
    /// The path lies outside every writable root.
    Outside {
        /// The link that leads out, when one does.
        via: Option<LinkHop>,
    },
    /// The path is, or lies below, a protected name.
    Protected {
        /// The name as the policy spells it.
        name: OsString,
    },
    /// The path ends in a slash, which a file cannot.
    TrailingSlash,
    /// The path has a NUL byte in it.
    Nul,
    /// A file is there already.
    Exists,
    /// A parent of the path is a file that the same patch makes.
    ParentIsFile,
    /// An earlier operation of the patch has taken the path away, or never left one there.
    Gone,
    /// Another operation of the patch writes the same path.
    TargetTwice {
        /// The line of that operation's header.
        line: usize,
    },
    /// A later operation of the patch still needs what is there.
    StillNeeded {
        /// The line of that operation's header.
        line: usize,
    },
    /// A parent of the path is a link which an earlier operation removes or moves.
    ParentRemoved {
        /// The line of that operation's header.
        line: usize,
    },
    /// The file has other names, and the options refuse to part or follow them.
    HardLinked {
        /// The number of names.
        names: u64,
    },
    /// A link would take the place of the file that it leads to.
    OntoOwnTarget,
    /// Something of the file would be lost with its new content.
    WouldLose {
        /// What.
        what: String,
    },
    /// Something else changed the file while the patch was being applied.
    Changed,
}

impl Cause {
    /// Tells whether the policy, not the state of the files, is what stands in the way.
    pub fn is_policy(&self) -> bool {
        matches!(
            self,
            Self::Special(_) | Self::Outside { .. } | Self::Protected { .. }
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os { code } => write!(f, "{}", std::io::Error::from_raw_os_error(*code)),
            Self::Dangling { hop } => write!(
                f,
                "{}: the symbolic link {} leads to {}, where nothing is",
                std::io::Error::from_raw_os_error(NO_SUCH_FILE),
                hop.link.display(),
                hop.target.display()
            ),
            Self::Directory => f.write_str("it is a directory"),
            Self::Special(kind) => write!(f, "it is {kind}, and only regular files are edited"),
            Self::Outside { via: None } => f.write_str("it lies outside the writable roots"),
            Self::Outside { via: Some(hop) } => write!(
                f,
                "the symbolic link {} leads to {}, outside the writable roots",
                hop.link.display(),
                hop.target.display()
            ),
            Self::Protected { name } => write!(f, "{} is protected", name.display()),
            Self::TrailingSlash => f.write_str("a file's path cannot end in a slash"),
            Self::Nul => f.write_str("a path cannot contain a NUL byte"),
            Self::Exists => f.write_str("a file of that name exists already"),
            Self::ParentIsFile => f.write_str("a parent of it is a file that this patch makes"),
            Self::Gone => f.write_str("an earlier operation of this patch removed it"),
            Self::TargetTwice { line } => {
                write!(
                    f,
                    "the operation on line {line} of this patch already writes it"
                )
            }
            Self::StillNeeded { line } => {
                write!(
                    f,
                    "the operation on line {line} of this patch still needs the file there"
                )
            }
            Self::ParentRemoved { line } => {
                write!(
                    f,
                    "the operation on line {line} of this patch takes a parent of it away"
                )
            }
            Self::HardLinked { names } => write!(f, "it has {names} names (hard links)"),
            Self::OntoOwnTarget => {
                f.write_str("the link that is to be moved there leads to this very file")
            }
            Self::WouldLose { what } => write!(f, "its {what} would be lost"),
            Self::Changed => f.write_str("something else keeps changing it"),
        }
    }
}

/// The step that failed, which decides the reference's wording.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The old content of an updated file could not be had (R75).
    Read(Cause),
    /// A file could not be written (R83, R93).
    Write(Cause),
    /// Missing parents could not be made (R85).
    CreateParents(Cause),
    /// A path could not be removed (R40).
    Delete(Cause),
    /// The source of a move could not be removed (R83).
    RemoveOriginal(Cause),
    /// The path cannot be a path here (R84).
    InvalidPath,
    /// The chunks do not fit the file.
    Edit(EditError),
}

/// `ENOENT`.
const NO_SUCH_FILE: i32 = 2;

/// Longest path that a message shows whole, in bytes; the kernel takes none that is longer
/// (`PATH_MAX`, path_resolution(7)).
const LONGEST_PATH_BYTES: usize = 4096;

/// Returns a path for a message; of one that cannot exist, only its ends.
pub fn shown(path: &Path) -> String {
    const END_CHARACTERS: usize = 100;
    let text = path.display().to_string();
    if text.len() < LONGEST_PATH_BYTES {
        return text;
    }
    let start: String = text.chars().take(END_CHARACTERS).collect();
    let mut end: Vec<char> = text.chars().rev().take(END_CHARACTERS).collect();
    end.reverse();
    format!("{start}...{}", end.into_iter().collect::<String>())
}

/// One operation that cannot be done, with what is needed to explain it.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The index of the operation in the patch.
    pub operation: usize,
    /// The line of the operation's header; 0 of an undo, which has no lines.
    pub line: usize,
    /// The path as the patch spells it.
    pub path: String,
    /// The absolute path, lexically normal.
    pub absolute: PathBuf,
    /// What failed, and why.
    pub kind: FailureKind,
}

impl Failure {
    /// Tells whether the policy, not the state of the files, is what stands in the way.
    pub fn is_policy(&self) -> bool {
        match &self.kind {
            FailureKind::Read(cause)
            | FailureKind::Write(cause)
            | FailureKind::CreateParents(cause)
            | FailureKind::Delete(cause)
            | FailureKind::RemoveOriginal(cause) => cause.is_policy(),
            FailureKind::InvalidPath | FailureKind::Edit(_) => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(&self.absolute);
        match &self.kind {
            FailureKind::Read(cause @ (Cause::Directory | Cause::Special(_))) => {
                write!(
                    f,
                    "Failed to read file to update {path}: path `{path}` is not a file: {cause}"
                )
            }
            FailureKind::Read(cause) => {
                write!(f, "Failed to read file to update {path}: {cause}")
            }
            FailureKind::Write(cause) => write!(f, "Failed to write file {path}: {cause}"),
            FailureKind::CreateParents(cause) => {
                write!(f, "Failed to create parent directories for {path}: {cause}")
            }
            FailureKind::Delete(cause) => write!(f, "Failed to delete file {path}: {cause}"),
            FailureKind::RemoveOriginal(cause) => {
                write!(f, "Failed to remove original {path}: {cause}")
            }
            FailureKind::InvalidPath => {
                write!(
                    f,
                    "'{}' is invalid on 'linux'",
                    shown(Path::new(&self.path))
                )
            }
            FailureKind::Edit(error) => f.write_str(&error.message(&path)),
        }
    }
}
