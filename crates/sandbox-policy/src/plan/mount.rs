//! The mount operations, and what each one is about.

use serde::{Deserialize, Serialize};

use std::ffi::OsString;

use crate::facts::{FileId, RootKind};
use crate::path::AbsolutePath;
use crate::rule::Access;

/// The position of a root in [`Plan::roots`](crate::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RootIndex(pub usize);

/// A tree of the host that gets a mount of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedRoot {
    /// The path without symbolic links.
    pub real: AbsolutePath,
    /// The inode that must be found there.
    pub id: FileId,
    /// What it is.
    pub kind: RootKind,
    /// Whether it can be written, or is only shown where nothing else is.
    pub access: Access,
}

/// How the host's tree is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewMode {
    /// Read-only everywhere, without set-id programs.
    ReadOnly,
    /// As it is, without set-id programs: `/` is a writable root.
    Writable,
}

/// How the place of a root is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttachTarget {
    /// The descriptor that pinned the root when it was cloned.
    Pinned,
    /// The path, looked up again: a carve-out above hides the pinned place.
    Resolved,
    /// The path, created first: a private tree hides the host's.
    Created,
}

/// What a denied path is covered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskForm {
    /// An empty directory that nobody may enter or list.
    Directory,
    /// An empty directory that can be entered, not listed: something below it
    /// is visible.
    Passage,
    /// An empty file that nobody may open.
    File,
}

/// One step of the set-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MountOp {
    /// Cuts the tree off from the host's mount events.
    MakePrivate,
    /// Pins a root by descriptor and takes a detached copy of its mounts.
    CloneRoot(RootIndex),
    /// Changes the whole tree at once.
    View(ViewMode),
    /// Opens what was handed over for reading again in the view, and refuses
    /// sockets that could be pointed elsewhere.
    SecureStandardDescriptors,
    /// Replaces the whole tree by an empty one, which is filled afterwards; the
    /// host's stays reachable for the set-up until [`MountOp::LeaveHostView`].
    EmptyView {
        /// Directories that later operations mount on.
        directories: Vec<AbsolutePath>,
        /// Symbolic links of the host that are made again, with their texts.
        links: Vec<(AbsolutePath, OsString)>,
    },
    /// Puts an empty writable directory, mode 1777, at a path.
    PrivateTmp(AbsolutePath),
    /// Puts a `/dev` with a few harmless nodes in place.
    PrivateDev,
    /// Mounts a read-only `/proc` that shows the new processes only.
    FreshProc,
    /// Puts the copy of a root in its place.
    AttachRoot {
        /// Which root.
        root: RootIndex,
        /// How its place is found.
        target: AttachTarget,
    },
    /// Mounts a directory on itself, so that it keeps its place.
    PinAncestor(AbsolutePath),
    /// Mounts a path on itself, read-only, not following a link.
    Protect {
        /// The path.
        path: AbsolutePath,
        /// The inode that must be found there.
        id: FileId,
    },
    /// Holds a name that does not exist, so that it cannot be made.
    HoldMissing {
        /// The path.
        path: AbsolutePath,
        /// What the policy allows there: reading, or nothing.
        access: Access,
    },
    /// Covers a path, so that nothing of it can be read or changed.
    Mask {
        /// The path.
        path: AbsolutePath,
        /// The inode that must be found there.
        id: FileId,
        /// What covers it.
        form: MaskForm,
    },
    /// Makes a passage read-only, once all below it is in place.
    SealPassage(AbsolutePath),
    /// Lets go of the host's tree behind an empty view, and makes that read-only.
    LeaveHostView,
}

impl MountOp {
    /// Returns the path that an operation is about, when it is about one.
    pub fn path<'a>(&'a self, roots: &'a [PinnedRoot]) -> Option<&'a AbsolutePath> {
        match self {
            Self::CloneRoot(root) | Self::AttachRoot { root, .. } => {
                roots.get(root.0).map(|root| &root.real)
            }
            Self::PrivateTmp(path)
            | Self::PinAncestor(path)
            | Self::Protect { path, .. }
            | Self::HoldMissing { path, .. }
            | Self::Mask { path, .. }
            | Self::SealPassage(path) => Some(path),
            Self::MakePrivate
            | Self::View(_)
            | Self::SecureStandardDescriptors
            | Self::EmptyView { .. }
            | Self::PrivateDev
            | Self::FreshProc
            | Self::LeaveHostView => None,
        }
    }

    /// Returns the path and access that decide the order.
    pub(crate) fn place(&self, roots: &[PinnedRoot]) -> (AbsolutePath, Access) {
        let path = match self {
            Self::PrivateDev => AbsolutePath::of_kernel("/dev"),
            Self::FreshProc => AbsolutePath::of_kernel("/proc"),
            other => other
                .path(roots)
                .cloned()
                .unwrap_or_else(AbsolutePath::filesystem_root),
        };
        let access = match self {
            Self::AttachRoot { .. } | Self::PinAncestor(_) => Access::Write,
            Self::Protect { .. } | Self::HoldMissing { .. } | Self::Mask { .. } => Access::Deny,
            _ => Access::Read,
        };
        (path, access)
    }
}
