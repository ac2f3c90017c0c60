//! From what must hold to the operations that make it hold.
//!
//! A mount follows the directory it is made on, so what is held is only as firm
//! as the names that lead to it: every directory between a writable mount and
//! something held in it is mounted on itself (a mount point can be neither
//! renamed nor removed).

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{FileId, HostFacts, RootKind};
use crate::path::AbsolutePath;
use crate::plan::effective::{Entries, Entry, Standing};
use crate::plan::grants::Grant;
use crate::plan::mount::{AttachTarget, MaskForm, MountOp, PinnedRoot, RootIndex, ViewMode};
use crate::plan::order;
use crate::policy::{Policy, Purpose, Tmp};
use crate::rule::{Access, Origin};

/// What a path lies on: the nearest thing at or above it that was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// The host's tree.
    View(Access),
    /// Nothing of the host: an empty view, or the cover of a denied directory.
    Hidden,
    /// A tree of this run's own, which can be mounted in.
    Private,
    /// A tree of the kernel's, in which nothing is mounted.
    Kernel,
    /// A root that is mounted.
    Root(Access),
    /// Something that is held read-only in its place.
    Held,
}

impl Ground {
    /// Tells whether names on this ground can be changed by the program, in the
    /// host's files.
    fn is_writable(self) -> bool {
        matches!(self, Self::View(Access::Write) | Self::Root(Access::Write))
    }
}

/// What a sandbox is made of.
pub(crate) struct Layout {
    /// The roots that are mounted, or are the view itself.
    pub(crate) roots: Vec<PinnedRoot>,
    /// The operations, in their order.
    pub(crate) mounts: Vec<MountOp>,
    /// What Landlock allows.
    pub(crate) grants: Vec<Grant>,
}

struct Builder<'a> {
    policy: &'a Policy,
    facts: &'a HostFacts,
    entries: &'a Entries,
    has_private_dev: bool,
    tmp: Option<AbsolutePath>,
    grounds: BTreeMap<AbsolutePath, Ground>,
    roots: Vec<PinnedRoot>,
    placed: Vec<MountOp>,
    ancestors: BTreeSet<AbsolutePath>,
    passages: BTreeSet<AbsolutePath>,
}

/// Lays a sandbox out.
pub(crate) fn lay_out(
    policy: &Policy,
    facts: &HostFacts,
    purpose: Purpose,
    entries: &Entries,
) -> Layout {
    let mut builder = Builder {
        policy,
        facts,
        entries,
        // The patch stage opens no device.
        has_private_dev: purpose == Purpose::Command,
        tmp: private_tmp(policy, facts, purpose, entries),
        grounds: BTreeMap::new(),
        roots: Vec::new(),
        placed: Vec::new(),
        ancestors: BTreeSet::new(),
        passages: BTreeSet::new(),
    };
    builder.prepare_grounds();
    for (path, entry) in entries {
        builder.place(path, entry);
    }
    builder.finish()
}

/// Returns where a private `/tmp` goes: nowhere when a rule decides about it.
fn private_tmp(
    policy: &Policy,
    facts: &HostFacts,
    purpose: Purpose,
    entries: &Entries,
) -> Option<AbsolutePath> {
    let wanted = policy.tmp() == Tmp::Private && purpose == Purpose::Command;
    let decided = |tmp: &AbsolutePath| {
        let rules = entries.iter().map(|(path, entry)| (path, entry.access));
        order::decide(rules, Access::Read, tmp) != Access::Read
    };
    facts.tmp.clone().filter(|tmp| wanted && !decided(tmp))
}

impl Builder<'_> {
    fn prepare_grounds(&mut self) {
        let base = match self.base() {
            Access::Deny => Ground::Hidden,
            access => Ground::View(access),
        };
        self.grounds.insert(AbsolutePath::filesystem_root(), base);
        let proc = AbsolutePath::of_kernel("/proc");
        self.grounds.insert(proc, Ground::Kernel);
        if self.has_private_dev {
            let dev = AbsolutePath::of_kernel("/dev");
            self.grounds.insert(dev, Ground::Private);
        }
        if let Some(tmp) = &self.tmp {
            self.grounds.insert(tmp.clone(), Ground::Private);
        }
    }

    /// A root at `/` makes the whole view writable.
    fn base(&self) -> Access {
        let root = self.entries.get(&AbsolutePath::filesystem_root());
        root.map_or(self.policy.base(), |entry| entry.access)
    }

    /// Returns the nearest decided path at or above another, and what it is.
    fn ground(&self, path: &AbsolutePath) -> (AbsolutePath, Ground) {
        let mut next = Some(path.clone());
        while let Some(at) = next {
            if let Some(ground) = self.grounds.get(&at) {
                return (at, *ground);
            }
            next = at.parent();
        }
        (AbsolutePath::filesystem_root(), Ground::Hidden)
    }

    fn place(&mut self, path: &AbsolutePath, entry: &Entry) {
        if *path == AbsolutePath::filesystem_root() {
            self.add_whole_view(path, entry);
            return;
        }
        let (above, ground) = self.ground(path);
        let ground = match above == *path {
            // A private tree takes the place of what the host has there.
            true if ground == Ground::Private => return,
            _ => ground,
        };
        let placed = match (entry.standing, entry.access) {
            (Standing::Present { id, kind }, Access::Deny) => self.mask(path, id, kind, ground),
            (Standing::Present { id, kind }, access) => {
                let asked = entry.origin != Origin::Protected;
                self.show(path, id, kind, access, asked, (&above, ground))
            }
            (Standing::Link { id }, _) => ground.is_writable().then(|| {
                let path = path.clone();
                (MountOp::Protect { path, id }, Ground::Held)
            }),
            (Standing::Missing, access) => ground.is_writable().then(|| {
                let path = path.clone();
                (MountOp::HoldMissing { path, access }, Ground::Held)
            }),
        };
        if let Some((operation, becomes)) = placed {
            if ground.is_writable() {
                self.ancestors.extend(path.between(&above));
            }
            self.placed.push(operation);
            self.grounds.insert(path.clone(), becomes);
        }
    }

    /// A root at `/` is the view itself: it needs no mount.
    fn add_whole_view(&mut self, path: &AbsolutePath, entry: &Entry) {
        if let (Standing::Present { id, kind }, Access::Write) = (entry.standing, entry.access) {
            self.add_root(path, id, kind, Access::Write);
        }
    }

    fn add_root(
        &mut self,
        path: &AbsolutePath,
        id: FileId,
        kind: RootKind,
        access: Access,
    ) -> RootIndex {
        let real = path.clone();
        self.roots.push(PinnedRoot {
            real,
            id,
            kind,
            access,
        });
        RootIndex(self.roots.len() - 1)
    }

    fn mask(
        &self,
        path: &AbsolutePath,
        id: FileId,
        kind: RootKind,
        ground: Ground,
    ) -> Option<(MountOp, Ground)> {
        let is_visible = matches!(ground, Ground::View(_) | Ground::Root(_) | Ground::Held);
        let form = match kind {
            RootKind::Directory => MaskForm::Directory,
            RootKind::File | RootKind::Special => MaskForm::File,
        };
        let path = path.clone();
        is_visible.then_some((MountOp::Mask { path, id, form }, Ground::Hidden))
    }

    /// Shows something of the host, writable or not, where the ground differs.
    fn show(
        &mut self,
        path: &AbsolutePath,
        id: FileId,
        kind: RootKind,
        access: Access,
        asked: bool,
        (above, ground): (&AbsolutePath, Ground),
    ) -> Option<(MountOp, Ground)> {
        let target = match (ground, access) {
            (Ground::Kernel, _) => return None,
            (Ground::Hidden | Ground::Private, _) if !asked => return None,
            (Ground::Hidden | Ground::Private, _) => AttachTarget::Created,
            (Ground::View(known) | Ground::Root(known), _) if known == access => return None,
            (Ground::Held, Access::Read) => return None,
            (Ground::View(_), Access::Write) => AttachTarget::Pinned,
            (Ground::Root(_) | Ground::Held, Access::Write) => AttachTarget::Resolved,
            (Ground::View(_) | Ground::Root(_), _) => {
                let path = path.clone();
                return Some((MountOp::Protect { path, id }, Ground::Held));
            }
            (Ground::Held, Access::Deny) => return None,
        };
        if ground == Ground::Hidden {
            self.passages.insert(above.clone());
        }
        let root = self.add_root(path, id, kind, access);
        Some((MountOp::AttachRoot { root, target }, Ground::Root(access)))
    }

    fn finish(mut self) -> Layout {
        let root = AbsolutePath::filesystem_root();
        let is_empty_view = self.base() == Access::Deny;
        self.passages.remove(&root);
        let grants = self.grants();
        let mut mounts = self.first();
        let mut placed = std::mem::take(&mut self.placed);
        for operation in &mut placed {
            if let MountOp::Mask { path, form, .. } = operation
                && self.passages.contains(path)
            {
                *form = MaskForm::Passage;
            }
        }
        placed.extend(self.own_trees());
        let pinned = self
            .ancestors
            .iter()
            .filter(|path| !self.grounds.contains_key(*path));
        placed.extend(pinned.cloned().map(MountOp::PinAncestor));
        order::sort(&mut placed, |operation| operation.place(&self.roots));
        mounts.append(&mut placed);
        mounts.extend(self.passages.into_iter().map(MountOp::SealPassage));
        if is_empty_view {
            mounts.push(MountOp::LeaveHostView);
        } else if mounts.contains(&MountOp::View(ViewMode::Writable)) {
            // In a writable view only what is held makes the difference.
            mounts.push(MountOp::SecureStandardDescriptors);
        }
        Layout {
            roots: self.roots,
            mounts,
            grants,
        }
    }

    /// Lists what is done before anything is put in its place.
    ///
    /// Roots are cloned before the view turns read-only, since a clone takes
    /// the flags along; what a private tree will hide can still be named when
    /// the standard descriptors are secured.
    fn first(&self) -> Vec<MountOp> {
        let root = AbsolutePath::filesystem_root();
        let clones = (0..self.roots.len()).filter(|index| self.roots[*index].real != root);
        let mut first = vec![MountOp::MakePrivate];
        first.extend(clones.map(|index| MountOp::CloneRoot(RootIndex(index))));
        if self.base() == Access::Write {
            first.push(MountOp::View(ViewMode::Writable));
            return first;
        }
        first.push(MountOp::View(ViewMode::ReadOnly));
        first.push(MountOp::SecureStandardDescriptors);
        if self.base() == Access::Deny {
            first.push(self.empty_view());
        }
        first
    }

    fn empty_view(&self) -> MountOp {
        let dev = AbsolutePath::of_kernel("/dev");
        let dev = self.has_private_dev.then_some(dev);
        let proc = AbsolutePath::of_kernel("/proc");
        let directories = [Some(proc), dev, self.tmp.clone()];
        MountOp::EmptyView {
            directories: directories.into_iter().flatten().collect(),
            links: self.facts.links.clone(),
        }
    }

    /// Lists the trees that are made for this run.
    fn own_trees(&self) -> Vec<MountOp> {
        let dev = self.has_private_dev.then_some(MountOp::PrivateDev);
        let tmp = self.tmp.clone().map(MountOp::PrivateTmp);
        [Some(MountOp::FreshProc), tmp, dev]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Lists what Landlock allows.
    fn grants(&self) -> Vec<Grant> {
        let mut grants = vec![Grant::ReadEverything];
        let written = |index: &usize| self.roots[*index].access == Access::Write;
        let written = (0..self.roots.len()).filter(written);
        grants.extend(written.map(|index| Grant::Root(RootIndex(index))));
        grants.extend(self.tmp.clone().map(Grant::PrivateTmp));
        if self.has_private_dev {
            grants.push(Grant::Devices);
        }
        grants
    }
}
