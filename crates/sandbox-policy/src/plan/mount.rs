//! The mount operations, and where each one stands.

use crate::facts::{FileId, HostFacts, RootKind};
use crate::path::AbsolutePath;
use crate::plan::grants::Grant;
use crate::plan::order;
use crate::plan::protect::CarveOuts;
use crate::plan::roots::Kept;
use crate::policy::{Access, Policy, Purpose, Tmp};

/// The position of a root in [`Plan::roots`](crate::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RootIndex(pub usize);

/// A root that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedRoot {
    /// The path without symbolic links.
    pub real: AbsolutePath,
    /// The inode that must be found there.
    pub id: FileId,
    /// What it is.
    pub kind: RootKind,
}

/// How the host's tree is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewMode {
    /// Read-only everywhere, without set-id programs.
    ReadOnly,
    /// As it is, without set-id programs: `/` is a writable root.
    Writable,
}

/// How the place of a root is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachTarget {
    /// The descriptor that pinned the root when it was cloned.
    Pinned,
    /// The path, looked up again: a carve-out above hides the pinned place.
    Resolved,
    /// The path, created first: a private tree hides the host's.
    Created,
}

/// One step of the set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

/// Which private trees a plan has.
pub(crate) struct Layout {
    view: ViewMode,
    tmp: Option<AbsolutePath>,
    purpose: Purpose,
}

impl Layout {
    pub(crate) fn new(policy: &Policy, facts: &HostFacts, purpose: Purpose, kept: &[Kept]) -> Self {
        let covers =
            |path: &AbsolutePath| kept.iter().any(|root| path.is_within(&root.pinned.real));
        let wanted = policy.tmp() == Tmp::Private && purpose == Purpose::Command;
        let tmp = facts.tmp.clone().filter(|tmp| wanted && !covers(tmp));
        let view = match covers(&AbsolutePath::filesystem_root()) {
            true => ViewMode::Writable,
            false => ViewMode::ReadOnly,
        };
        Self { view, tmp, purpose }
    }

    /// Lists the operations in their order.
    ///
    /// Roots are cloned before the view turns read-only, since a clone takes
    /// the flags along.
    pub(crate) fn operations(&self, kept: &[Kept], carved: &CarveOuts) -> Vec<MountOp> {
        let indices = || (0..kept.len()).filter(|index| !self.is_the_view(&kept[*index]));
        let mut first = vec![MountOp::MakePrivate];
        first.extend(indices().map(|index| MountOp::CloneRoot(RootIndex(index))));
        first.push(MountOp::View(self.view));
        // What a private tree will hide can still be named now.
        if self.view == ViewMode::ReadOnly {
            first.push(MountOp::SecureStandardDescriptors);
        }

        let mut placed = vec![MountOp::FreshProc];
        placed.extend(self.tmp.clone().map(MountOp::PrivateTmp));
        if self.has_private_dev() {
            placed.push(MountOp::PrivateDev);
        }
        placed.extend(indices().map(|index| MountOp::AttachRoot {
            root: RootIndex(index),
            target: self.target(&kept[index]),
        }));
        placed.extend(carved.ancestors.iter().cloned().map(MountOp::PinAncestor));
        placed.extend(carved.protected.iter().map(|(path, id)| MountOp::Protect {
            path: path.clone(),
            id: *id,
        }));
        order::sort(&mut placed, |operation| operation.place(kept));
        first.append(&mut placed);
        // In a writable view only the carve-outs make the difference.
        if self.view == ViewMode::Writable {
            first.push(MountOp::SecureStandardDescriptors);
        }
        first
    }

    /// Lists what Landlock allows.
    pub(crate) fn grants(&self, kept: &[Kept]) -> Vec<Grant> {
        let mut grants = vec![Grant::ReadEverything];
        grants.extend((0..kept.len()).map(|index| Grant::Root(RootIndex(index))));
        grants.extend(self.tmp.clone().map(Grant::PrivateTmp));
        if self.has_private_dev() {
            grants.push(Grant::Devices);
        }
        grants
    }

    /// The patch stage opens no device.
    fn has_private_dev(&self) -> bool {
        self.purpose == Purpose::Command
    }

    fn is_the_view(&self, root: &Kept) -> bool {
        root.pinned.real == AbsolutePath::filesystem_root()
    }

    fn target(&self, root: &Kept) -> AttachTarget {
        let real = &root.pinned.real;
        let in_tmp = self.tmp.as_ref().is_some_and(|tmp| real.is_below(tmp));
        let in_dev = self.has_private_dev() && real.is_below(&AbsolutePath::of_kernel("/dev"));
        match (in_tmp || in_dev, root.is_nested) {
            (true, _) => AttachTarget::Created,
            (false, true) => AttachTarget::Resolved,
            (false, false) => AttachTarget::Pinned,
        }
    }
}

impl MountOp {
    /// Returns the path and access that decide the order.
    fn place(&self, kept: &[Kept]) -> (AbsolutePath, Access) {
        match self {
            Self::MakePrivate
            | Self::CloneRoot(_)
            | Self::View(_)
            | Self::SecureStandardDescriptors => (AbsolutePath::filesystem_root(), Access::Read),
            Self::PrivateTmp(path) => (path.clone(), Access::Read),
            Self::PrivateDev => (AbsolutePath::of_kernel("/dev"), Access::Read),
            Self::FreshProc => (AbsolutePath::of_kernel("/proc"), Access::Read),
            Self::AttachRoot { root, .. } => (kept[root.0].pinned.real.clone(), Access::Write),
            Self::PinAncestor(path) => (path.clone(), Access::Write),
            Self::Protect { path, .. } => (path.clone(), Access::Deny),
        }
    }
}
