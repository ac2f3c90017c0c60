//! Carries out the mount operations of a plan, in its order.
//!
//! Every place is held by descriptor. A path that leads to a root or to
//! something inside one is looked up without following any link, and what is
//! found must be the inode that the plan was made for.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, mknodat, openat, openat2,
};
use rustix::mount::{MountAttrFlags, MountFlags, OpenTreeFlags, mount, open_tree};
use sandbox_policy::facts::{FileId, RootKind};
use sandbox_policy::plan::{
    AttachTarget, Grant, MaskForm, MountOp, PinnedRoot, RootIndex, ViewMode,
};
use sandbox_policy::{AbsolutePath, Access, Plan};

use crate::error::{Errno, Step};
use crate::landlock::Rights;
use crate::native::blank::{self, Blank, Cover};
use crate::native::devices::{self, Nodes, clone_nodes, mount_private_dev};
use crate::native::{empty_view, standard};
use crate::placeholders::Placeholders;
use crate::report::ProcView;
use crate::resolve::id_of;
use crate::status::{At, Failure};
use crate::sys::{self, READ_ONLY, Reach};

/// `MOUNT_ATTR_NOSUID`, `MOUNT_ATTR_NODEV`.
const NO_SUID: u64 = 2;
const NO_DEV: u64 = 4;
/// `MS_PRIVATE`, as `mount_setattr` takes it.
const PRIVATE: u64 = 1 << 18;

/// A root whose mounts were copied.
struct ClonedRoot {
    pin: OwnedFd,
    tree: OwnedFd,
}

/// What stands after all operations.
pub(crate) struct Mounted {
    /// Places and what Landlock shall allow there.
    pub(crate) places: Vec<(OwnedFd, Rights)>,
    /// Which `/proc` is seen.
    pub(crate) proc: ProcView,
}

/// Tells which inode stands in for a missing name, if one does.
pub(crate) type HeldNames<'a> = &'a dyn Fn(&AbsolutePath) -> Option<FileId>;

struct Mounter<'a> {
    plan: &'a Plan,
    held: HeldNames<'a>,
    /// In the order of the plan's roots.
    clones: Vec<Option<ClonedRoot>>,
    devices: Vec<(OwnedFd, Rights)>,
    /// Copies of the host's nodes, where its `/dev` is out of sight by now.
    nodes: Option<Nodes>,
    blank: Blank,
    proc: ProcView,
}

/// Carries out all mount operations.
pub(crate) fn carry_out(plan: &Plan, placeholders: &Placeholders) -> Result<Mounted, Failure> {
    let held = |path: &AbsolutePath| placeholders.id_at(path);
    let mut mounter = Mounter::new(plan, &held);
    for (position, operation) in plan.mounts.iter().enumerate() {
        mounter.carry_out_at(position, operation)?;
    }
    mounter.finish()
}

/// Carries out some operations of a plan whose others stand already, in a mount
/// namespace of this process's own.
pub(crate) fn carry_out_rest<'a>(
    plan: &'a Plan,
    held: HeldNames<'a>,
    rest: impl Iterator<Item = (usize, &'a MountOp)>,
) -> Result<(), Failure> {
    let mut mounter = Mounter::new(plan, held);
    mounter.carry_out(&MountOp::MakePrivate)?;
    for (position, operation) in rest {
        mounter.carry_out_at(position, operation)?;
    }
    Ok(())
}

/// Returns the places of a plan whose operations all stand.
pub(crate) fn places(plan: &Plan) -> Result<Vec<(OwnedFd, Rights)>, Failure> {
    let mut mounter = Mounter::new(plan, &|_| None);
    if plan.mounts.contains(&MountOp::PrivateDev) {
        mounter.devices = devices::places().at(Step::Landlock)?;
    }
    mounter.finish().map(|mounted| mounted.places)
}

impl<'a> Mounter<'a> {
    fn new(plan: &'a Plan, held: HeldNames<'a>) -> Self {
        Self {
            plan,
            held,
            clones: plan.roots.iter().map(|_| None).collect(),
            devices: Vec::new(),
            nodes: None,
            blank: Blank::default(),
            proc: ProcView::Host,
        }
    }

    fn carry_out_at(&mut self, position: usize, operation: &MountOp) -> Result<(), Failure> {
        self.carry_out(operation).map_err(|failure| Failure {
            operation: u16::try_from(position).unwrap_or(u16::MAX),
            ..failure
        })
    }

    fn carry_out(&mut self, operation: &MountOp) -> Result<(), Failure> {
        match operation {
            MountOp::MakePrivate => set_view(0, PRIVATE).at(Step::MakePrivate),
            MountOp::CloneRoot(root) => self.clone_root(*root),
            MountOp::View(ViewMode::ReadOnly) => {
                set_view(READ_ONLY | NO_SUID, 0).at(Step::ReadOnlyView)
            }
            MountOp::View(ViewMode::Writable) => set_view(NO_SUID, 0).at(Step::ReadOnlyView),
            MountOp::SecureStandardDescriptors => standard::secure(self.plan.network),
            MountOp::PrivateTmp(path) => mount_private_tmp(path).at(Step::PrivateTmp),
            MountOp::EmptyView { directories, links } => {
                self.nodes = Some(clone_nodes().at(Step::PrivateDev)?);
                empty_view::enter(directories, links).at(Step::EmptyView)
            }
            MountOp::PrivateDev => {
                let nodes = match self.nodes.take() {
                    Some(nodes) => nodes,
                    None => clone_nodes().at(Step::PrivateDev)?,
                };
                self.devices = mount_private_dev(nodes).at(Step::PrivateDev)?;
                Ok(())
            }
            MountOp::FreshProc => self.mount_proc().at(Step::FreshProc),
            MountOp::AttachRoot { root, target } => self.attach(*root, *target),
            MountOp::PinAncestor(path) => pin_in_place(path, None, 0).at(Step::PinAncestor),
            MountOp::Protect { path, id } => {
                pin_in_place(path, Some(*id), READ_ONLY).at(Step::Protect)
            }
            MountOp::HoldMissing { path, access } => {
                self.hold_missing(path, *access).at(Step::HoldMissing)
            }
            MountOp::Mask { path, id, form } => self.mask(path, *id, *form).at(Step::Mask),
            MountOp::SealPassage(path) => make_read_only(path.as_path()).at(Step::Mask),
            MountOp::LeaveHostView => empty_view::leave_host_view().at(Step::EmptyView),
        }
    }

    fn root(&self, index: RootIndex) -> Result<&PinnedRoot, Errno> {
        self.plan.roots.get(index.0).ok_or(Errno(libc::EINVAL))
    }

    fn clone_root(&mut self, index: RootIndex) -> Result<(), Failure> {
        let root = self.root(index).at(Step::PinRoot)?;
        let pin = open_same(&root.real, Some(root.id)).at(Step::PinRoot)?;
        let tree = clone_tree(&pin).at(Step::CloneRoot)?;
        let set = match root.access {
            Access::Write => NO_SUID | NO_DEV,
            _ => NO_SUID | NO_DEV | READ_ONLY,
        };
        sys::mount_setattr(tree.as_fd(), c"", set, 0, Reach::Below).at(Step::CloneRoot)?;
        if let Some(slot) = self.clones.get_mut(index.0) {
            *slot = Some(ClonedRoot { pin, tree });
        }
        Ok(())
    }

    fn attach(&self, index: RootIndex, target: AttachTarget) -> Result<(), Failure> {
        let root = self.root(index).at(Step::AttachRoot)?;
        let cloned = self.clones.get(index.0).and_then(Option::as_ref);
        let cloned = cloned.ok_or(Errno(libc::EINVAL)).at(Step::AttachRoot)?;
        match target {
            AttachTarget::Pinned => blank::attach(&cloned.tree, &cloned.pin),
            AttachTarget::Resolved => open_same(&root.real, Some(root.id))
                .and_then(|place| blank::attach(&cloned.tree, &place)),
            AttachTarget::Created => {
                create(root).and_then(|place| blank::attach(&cloned.tree, &place))
            }
        }
        .at(Step::AttachRoot)
    }

    fn mask(&mut self, path: &AbsolutePath, id: FileId, form: MaskForm) -> Result<(), Errno> {
        let place = open_same(path, Some(id))?;
        match form {
            MaskForm::Directory => self.blank.put(Cover::Closed, &place)?,
            MaskForm::File => self.blank.put(Cover::File, &place)?,
            MaskForm::Passage => {
                let tree = blank::directory(c"111", MountAttrFlags::empty())?;
                blank::attach(&tree, &place)?;
                sys::leave_open(tree);
            }
        }
        sys::leave_open(place);
        Ok(())
    }

    /// Covers what stands in for a missing name, so that nobody inside reaches
    /// the host's directory.
    fn hold_missing(&mut self, path: &AbsolutePath, access: Access) -> Result<(), Errno> {
        // A name that the caller may not make has no placeholder.
        let Some(id) = (self.held)(path) else {
            return Ok(());
        };
        let place = open_same(path, Some(id))?;
        let cover = match access {
            Access::Deny => Cover::Closed,
            _ => Cover::Open,
        };
        self.blank.put(cover, &place)?;
        sys::leave_open(place);
        Ok(())
    }

    /// A refusal keeps the old `/proc`, which is read-only by now.
    fn mount_proc(&mut self) -> Result<(), Errno> {
        let flags =
            MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        match mount(c"proc", c"/proc", c"proc", flags, None) {
            Ok(()) => self.proc = ProcView::Fresh,
            Err(rustix::io::Errno::PERM) => self.proc = ProcView::Host,
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    /// Turns the grants of the plan into places.
    fn finish(self) -> Result<Mounted, Failure> {
        let mut places = self.devices;
        let mut clones = self.clones;
        for grant in &self.plan.grants {
            match grant {
                Grant::ReadEverything => {
                    let view = open_directory(&AbsolutePath::filesystem_root());
                    places.push((view.at(Step::Landlock)?, Rights::Read));
                }
                Grant::PrivateTmp(path) => {
                    places.push((open_directory(path).at(Step::Landlock)?, Rights::Full));
                }
                Grant::Root(index) => {
                    let root = self.plan.roots.get(index.0);
                    let root = root.ok_or(Errno(libc::EINVAL)).at(Step::Landlock)?;
                    let rights = match root.kind {
                        RootKind::Directory => Rights::Full,
                        _ => Rights::File,
                    };
                    let place = match clones.get_mut(index.0).and_then(Option::take) {
                        Some(cloned) => {
                            sys::leave_open(cloned.pin);
                            cloned.tree
                        }
                        None => open_same(&root.real, Some(root.id)).at(Step::Landlock)?,
                    };
                    places.push((place, rights));
                }
                Grant::Devices => {}
            }
        }
        Ok(Mounted {
            places,
            proc: self.proc,
        })
    }
}

/// Changes every mount at once.
fn set_view(set: u64, propagation: u64) -> Result<(), Errno> {
    sys::mount_setattr(CWD, c"/", set, propagation, Reach::Below)
}

/// Makes a mount read-only, without those in it.
pub(crate) fn make_read_only(path: &Path) -> Result<(), Errno> {
    let place = open_unlinked(path)?;
    sys::mount_setattr(place.as_fd(), c"", READ_ONLY, 0, Reach::Alone)
}

fn open_directory(path: &AbsolutePath) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path.as_path(), flags, Mode::empty())?)
}

/// Opens a real path, refusing every link on the way, and makes sure that it is
/// still the same thing; a link at the end is opened as a link.
pub(crate) fn open_same(path: &AbsolutePath, id: Option<FileId>) -> Result<OwnedFd, Errno> {
    let fd = open_unlinked(path.as_path())?;
    match id {
        Some(id) if id_of(&fstat(&fd)?) != id => Err(Errno(libc::ESTALE)),
        _ => Ok(fd),
    }
}

fn open_unlinked(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

/// Takes a detached copy of everything mounted at and below a place.
fn clone_tree(place: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(place, c"", flags)?)
}

/// Mounts a path on itself.
fn pin_in_place(path: &AbsolutePath, id: Option<FileId>, set: u64) -> Result<(), Errno> {
    let place = open_same(path, id)?;
    let tree = clone_tree(&place)?;
    if set != 0 {
        sys::mount_setattr(tree.as_fd(), c"", set, 0, Reach::Below)?;
    }
    blank::attach(&tree, &place)
}

fn mount_private_tmp(path: &AbsolutePath) -> Result<(), Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount(
        blank::SOURCE,
        path.as_path(),
        c"tmpfs",
        flags,
        c"mode=1777",
    )?)
}

/// Makes the place of a root in a private tree, which nobody else uses yet.
fn create(root: &PinnedRoot) -> Result<OwnedFd, Errno> {
    let mode = Mode::from_raw_mode(0o755);
    empty_view::make_parents(&root.real)?;
    let path = root.real.as_path();
    allow_existing(match root.kind {
        RootKind::Directory => mkdirat(CWD, path, mode),
        _ => mknodat(CWD, path, FileType::RegularFile, mode, 0),
    })?;
    open_same(&root.real, None)
}

/// Takes what is there already for made.
pub(crate) fn allow_existing(result: rustix::io::Result<()>) -> Result<(), Errno> {
    match result {
        Err(rustix::io::Errno::EXIST | rustix::io::Errno::ROFS) => Ok(()),
        other => Ok(other?),
    }
}
