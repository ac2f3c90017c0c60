//! What is known about the host, as plain data.
//!
//! A backend fills these in; tests write them by hand.

use serde::{Deserialize, Serialize};

use std::ffi::OsString;

use crate::path::AbsolutePath;
use crate::policy::Protection;
use crate::rule::{Origin, Rule};

/// The identity of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId {
    /// The device number.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
}

/// What kind of thing stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RootKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// Neither: a device, a socket, a FIFO.
    Special,
}

/// Whether the mount that holds a root can be written at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MountMode {
    /// The mount is read-only on the host already.
    ReadOnly,
    /// The mount is writable.
    Writable,
}

/// A root that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedRoot {
    /// The path without symbolic links.
    pub real: AbsolutePath,
    /// The inode that the path led to.
    pub id: FileId,
    /// What it is.
    pub kind: RootKind,
    /// Whose it is.
    pub owner_uid: u32,
    /// How its mount is mounted.
    pub mount: MountMode,
    /// One entry for each protected name.
    pub protected: Vec<ProtectedFacts>,
}

/// What is known about one writable root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFacts {
    /// The path as the policy spells it.
    pub logical: AbsolutePath,
    /// What is held below it.
    pub protection: Protection,
    /// Who made it a root.
    pub origin: Origin,
    /// What the path leads to, or `None` when nothing is there.
    pub resolved: Option<ResolvedRoot>,
}

/// What is known about one protected name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedFacts {
    /// The entry name.
    pub name: OsString,
    /// What is there.
    pub state: ProtectedState,
}

/// What stands at a protected name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtectedState {
    /// Nothing, or what another run put there to stand in for nothing.
    Missing,
    /// A directory without anything in it.
    EmptyDirectory(FileId),
    /// A directory.
    Directory(FileId),
    /// A file; a `.git` file may point to the real git directories.
    File {
        /// The file itself.
        id: FileId,
        /// Where it points: the git directory, then its common directory.
        targets: Vec<LinkTarget>,
    },
    /// A symbolic link.
    Link {
        /// The link itself.
        id: FileId,
        /// The text of the link.
        text: OsString,
        /// Where it leads.
        target: LinkTarget,
    },
}

/// The end of a chain of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTarget {
    /// Symbolic links that were crossed on the way, by their real paths.
    pub crossed: Vec<(AbsolutePath, FileId)>,
    /// What was reached.
    pub end: TargetEnd,
}

/// What a chain of names reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetEnd {
    /// Something that exists.
    Found {
        /// Its real path.
        real: AbsolutePath,
        /// Its inode.
        id: FileId,
        /// What it is.
        kind: RootKind,
    },
    /// Nothing: this real path does not exist.
    Missing {
        /// The first name that does not exist.
        real: AbsolutePath,
    },
}

/// What is known about one rule that narrows the policy or gives reading back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFacts {
    /// The rule.
    pub rule: Rule,
    /// Where its path leads.
    pub target: LinkTarget,
}

/// Something that the policy hid, by what it is and not by where it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Denial {
    /// The path by which the policy denies it.
    pub path: AbsolutePath,
    /// Its inode.
    pub id: FileId,
    /// When the inode was made, in nanoseconds since 1970, where the file system
    /// tells: inode numbers are used again.
    pub born_ns: Option<i128>,
}

/// What is known about a git directory of which a part may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDirectoryFacts {
    /// Its real path.
    pub real: AbsolutePath,
    /// Its inode.
    pub id: FileId,
    /// One entry for each guarded name.
    pub guarded: Vec<ProtectedFacts>,
}

/// What is known about a repository below a root, other than the root itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryFacts {
    /// The real path of its `.git`.
    pub path: AbsolutePath,
    /// What stands there.
    pub state: ProtectedState,
    /// The git directories that belong to it and lie in place: its own, and
    /// those of worktrees and submodules in it.
    pub directories: Vec<GitDirectoryFacts>,
}

/// What a walk through the roots found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurveyFacts {
    /// The repositories.
    pub repositories: Vec<RepositoryFacts>,
    /// Directories that were not looked into: the walk had seen enough.
    pub unseen: Vec<AbsolutePath>,
}

/// Whether Landlock can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandlockFacts {
    /// It can, at this ABI version.
    Available {
        /// The version that the kernel reports.
        abi: u32,
    },
    /// It cannot.
    Missing {
        /// Why: `ENOSYS` when not built in, `EOPNOTSUPP` when switched off.
        errno: i32,
    },
}

/// Whether an ordinary user can make user namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserNamespaceFacts {
    /// Not tried: making the sandbox will tell.
    Untried,
    /// Refused.
    Unavailable {
        /// The error of the attempt.
        errno: i32,
    },
}

/// Who the caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerFacts {
    /// The effective user id.
    pub euid: u32,
    /// The effective group id.
    pub egid: u32,
    /// The effective capabilities, one bit each.
    pub capabilities: u64,
}

/// Everything that is known about the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// One entry for each writable root of the policy, in its order.
    pub roots: Vec<RootFacts>,
    /// One entry for each other rule of the policy that leads anywhere, and for
    /// each further name of what must not be read.
    pub rules: Vec<RuleFacts>,
    /// What is denied and lies where the program might move it.
    pub denials: Vec<Denial>,
    /// What lies below the roots.
    pub survey: SurveyFacts,
    /// Symbolic links on the way to what can be read, with their texts; only
    /// where the rest cannot.
    pub links: Vec<(AbsolutePath, OsString)>,
    /// The real path of `/tmp`, when it is a directory.
    pub tmp: Option<AbsolutePath>,
    /// Who the caller is.
    pub caller: CallerFacts,
    /// Whether Landlock can be used.
    pub landlock: LandlockFacts,
    /// Whether user namespaces can be made.
    pub user_namespaces: UserNamespaceFacts,
}
