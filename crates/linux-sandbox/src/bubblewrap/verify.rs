//! Compares what was mounted with what was planned.
//!
//! Bubblewrap resolves paths while others may change them, and it may be a
//! program of another make. So the stage inside believes nothing: every planned
//! mount must be there, with its inode and its flag, and nothing else may be
//! writable.

use std::path::{Path, PathBuf};

use sandbox_policy::facts::FileId;
use sandbox_policy::plan::{MaskForm, MountOp, ViewMode};
use sandbox_policy::{AbsolutePath, Access};

use crate::bubblewrap::handoff::HandOff;
use crate::bubblewrap::render::{Place, Way};
use crate::error::Errno;
use crate::mountinfo::{MountEntry, MountTable, Visible};

/// What is not as it was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deviation {
    /// The path.
    pub(crate) path: PathBuf,
    /// In which way: `ENOENT` not mounted, `EROFS` not writable, `EACCES`
    /// writable, `ESTALE` another inode, `EXDEV` another kind of mount.
    pub(crate) errno: Errno,
}

impl Deviation {
    fn at(path: &Path, errno: i32) -> Self {
        Self {
            path: path.into(),
            errno: Errno(errno),
        }
    }
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: FileId,
    /// Whether it is a device node that nothing can be done with.
    pub(crate) is_harmless_node: bool,
}

/// Looks a path up without following links, and says what is there.
pub(crate) type Look<'a> = &'a dyn Fn(&AbsolutePath) -> Result<Seen, Errno>;

/// What must be found at a place.
#[derive(Clone, Copy)]
enum Wanted {
    /// This inode, writable or not.
    Same { id: FileId, is_read_only: bool },
    /// A tree of the sandbox's own that covers this inode.
    Cover(Option<FileId>),
    /// A tree of this kind.
    Kind(&'static str, Flag),
}

/// Which flag is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    ReadOnly,
    Writable,
}

/// Makes sure that the mounts are those of the plan.
pub(crate) fn verify(
    handoff: &HandOff,
    table: &MountTable,
    look: Look<'_>,
) -> Result<(), Deviation> {
    let visible = table.visible();
    for (position, operation) in handoff.plan.mounts.iter().enumerate() {
        if handoff.ways.get(position) == Some(&Way::Nested) {
            continue;
        }
        let place = handoff.places.get(position).and_then(Option::as_ref);
        for (path, wanted) in wanted(handoff, operation, place) {
            check(&visible, &path, wanted, look)?;
        }
    }
    nothing_else_is_writable(handoff, table, &visible, look)
}

/// Lists what an operation must have led to.
fn wanted(
    handoff: &HandOff,
    operation: &MountOp,
    place: Option<&Place>,
) -> Vec<(AbsolutePath, Wanted)> {
    let plan = &handoff.plan;
    let at = |text| AbsolutePath::new(text).ok();
    let same = |access: Access| {
        place.map(|place| Wanted::Same {
            id: place.id,
            is_read_only: access != Access::Write || place.is_read_only,
        })
    };
    let path = operation.path(&plan.roots).cloned();
    let (path, wanted) = match operation {
        MountOp::AttachRoot { root, .. } => {
            let access = plan.roots.get(root.0).map(|root| root.access);
            (path, access.and_then(same))
        }
        MountOp::PinAncestor(_) => (path, same(Access::Write)),
        MountOp::Protect { .. } => (path, same(Access::Read)),
        MountOp::HoldMissing { .. } => (path, place.map(|place| Wanted::Cover(Some(place.id)))),
        MountOp::Mask { id, form, .. } => match form {
            MaskForm::Directory | MaskForm::File | MaskForm::Passage => {
                (path, Some(Wanted::Cover(Some(*id))))
            }
        },
        MountOp::PrivateTmp(_) => (path, Some(Wanted::Kind("tmpfs", Flag::Writable))),
        MountOp::PrivateDev => (at("/dev"), Some(Wanted::Kind("tmpfs", Flag::ReadOnly))),
        MountOp::FreshProc if handoff.has_fresh_proc => {
            let flag = match handoff.needs_nested() {
                true => Flag::Writable,
                false => Flag::ReadOnly,
            };
            (at("/proc"), Some(Wanted::Kind("proc", flag)))
        }
        MountOp::EmptyView { .. } => (at("/"), Some(Wanted::Cover(None))),
        MountOp::MakePrivate
        | MountOp::CloneRoot(_)
        | MountOp::View(ViewMode::ReadOnly | ViewMode::Writable)
        | MountOp::SecureStandardDescriptors
        | MountOp::FreshProc
        | MountOp::SealPassage(_)
        | MountOp::LeaveHostView => (None, None),
    };
    path.zip(wanted).into_iter().collect()
}

fn check(
    visible: &Visible<'_>,
    path: &AbsolutePath,
    wanted: Wanted,
    look: Look<'_>,
) -> Result<(), Deviation> {
    let at = path.as_path();
    let deviation = |errno| Err(Deviation::at(at, errno));
    let Some(entry) = visible.at(at) else {
        return deviation(libc::ENOENT);
    };
    let found = || {
        let seen = look(path);
        seen.map(|seen| seen.id)
            .map_err(|errno| Deviation::at(at, errno.0))
    };
    match wanted {
        Wanted::Same { id, is_read_only } => match (is_read_only, entry.is_read_only) {
            _ if found()? != id => deviation(libc::ESTALE),
            (true, false) => deviation(libc::EACCES),
            (false, true) => deviation(libc::EROFS),
            _ => Ok(()),
        },
        Wanted::Cover(hidden) => match entry {
            _ if entry.kind != "tmpfs" => deviation(libc::EXDEV),
            _ if !entry.is_read_only => deviation(libc::EACCES),
            _ if hidden.is_some() && hidden == found().ok() => deviation(libc::ESTALE),
            _ => Ok(()),
        },
        Wanted::Kind(kind, flag) => match (flag, entry.is_read_only) {
            _ if entry.kind != kind => deviation(libc::EXDEV),
            _ if entry.root != Path::new("/") => deviation(libc::EXDEV),
            (Flag::ReadOnly, false) => deviation(libc::EACCES),
            (Flag::Writable, true) => deviation(libc::EROFS),
            _ => Ok(()),
        },
    }
}

/// Looks for what can be written and should not be.
///
/// The nodes in a private `/dev` are writable mounts, and harmless. What the
/// stage still has to cover is not finished yet.
fn nothing_else_is_writable(
    handoff: &HandOff,
    table: &MountTable,
    visible: &Visible<'_>,
    look: Look<'_>,
) -> Result<(), Deviation> {
    let plan = &handoff.plan;
    let has_dev = plan.mounts.contains(&MountOp::PrivateDev);
    let closes_proc = handoff.has_fresh_proc && handoff.needs_nested();
    let later: Vec<&AbsolutePath> = plan
        .mounts
        .iter()
        .zip(&handoff.ways)
        .filter(|(_, way)| **way == Way::Nested)
        .filter_map(|(operation, _)| operation.path(&plan.roots))
        .collect();
    let is_harmless = |entry: &MountEntry, point: &AbsolutePath| {
        let is_node = || look(point).is_ok_and(|seen| seen.is_harmless_node);
        match entry.point.strip_prefix("/dev") {
            Ok(rest) => rest == Path::new("pts") && entry.kind == "devpts" || is_node(),
            Err(_) => false,
        }
    };
    let may_be_written = |entry: &MountEntry| {
        let Ok(point) = AbsolutePath::new(&entry.point) else {
            return false;
        };
        plan.access(&point) == Access::Write
            || has_dev && is_harmless(entry, &point)
            || closes_proc && entry.point == Path::new("/proc")
            || later.iter().any(|path| point.is_within(path))
    };
    // A second mount at `/` is out of sight, and still within reach of `/..`.
    let within_reach = |entry: &&MountEntry| visible.shows(entry) || entry.point == Path::new("/");
    let writable = table
        .entries()
        .iter()
        .filter(|entry| !entry.is_read_only)
        .filter(within_reach);
    for entry in writable {
        if !may_be_written(entry) {
            return Err(Deviation::at(&entry.point, libc::EACCES));
        }
    }
    match visible.at(Path::new("/")) {
        Some(_) => Ok(()),
        None => Err(Deviation::at(Path::new("/"), libc::ENOENT)),
    }
}
