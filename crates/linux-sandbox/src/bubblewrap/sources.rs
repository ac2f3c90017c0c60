//! Opens what bubblewrap is to mount, before anything of the sandbox runs.
//!
//! Bubblewrap turns a descriptor into a path again, so this proves nothing
//! about what will be mounted: the stage inside looks at every mount. What is
//! found here is what it compares with.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{FileType, StatVfsMountFlags, fstat, fstatvfs};
use sandbox_policy::facts::FileId;
use sandbox_policy::plan::{MaskForm, MountOp};
use sandbox_policy::{AbsolutePath, Plan};

use crate::bubblewrap::features::Features;
use crate::bubblewrap::render::{Place, PlaceKind, Table, Way, way};
use crate::carrier;
use crate::error::{Context, Errno, Error, Step};
use crate::native::mounts::open_same;
use crate::native::standard::above_inherited;
use crate::placeholders::Placeholders;
use crate::resolve::id_of;

/// The most places that are handed over open: descriptors are limited, and a
/// place beyond is named by its path instead.
const MOST_OPEN: usize = 256;

/// Everything that was opened, and the numbers it can be named by.
#[derive(Default)]
pub(crate) struct Sources {
    pub(crate) table: Table,
    pub(crate) open: Vec<OwnedFd>,
}

/// Opens the sources of a plan.
pub(crate) fn open(
    plan: &Plan,
    features: &Features,
    placeholders: &Placeholders,
) -> Result<Sources, Error> {
    let mut sources = Sources::default();
    for operation in &plan.mounts {
        let place = sources.look_at(plan, operation, placeholders)?;
        let mut way = way(operation, place.as_ref(), features);
        let mut empty = None;
        let is_file = matches!(
            operation,
            MountOp::Mask {
                form: MaskForm::File,
                ..
            }
        );
        if is_file && way == Way::Bubblewrap {
            match sources.open.len() < MOST_OPEN {
                true => empty = Some(sources.keep(carrier::carry(b"").during(Step::HandOff)?)?),
                false => way = Way::Nested,
            }
        }
        sources.table.places.push(place);
        sources.table.ways.push(way);
        sources.table.empty_files.push(empty);
    }
    Ok(sources)
}

impl Sources {
    fn look_at(
        &mut self,
        plan: &Plan,
        operation: &MountOp,
        placeholders: &Placeholders,
    ) -> Result<Option<Place>, Error> {
        let (path, id, step): (&AbsolutePath, Option<FileId>, Step) = match operation {
            MountOp::AttachRoot { root, .. } => match plan.roots.get(root.0) {
                Some(root) => (&root.real, Some(root.id), Step::PinRoot),
                None => return Ok(None),
            },
            MountOp::PinAncestor(path) => (path, None, Step::PinAncestor),
            MountOp::Protect { path, id } => (path, Some(*id), Step::Protect),
            // A name that the caller may not make has no placeholder.
            MountOp::HoldMissing { path, .. } => match placeholders.id_at(path) {
                Some(id) => (path, Some(id), Step::HoldMissing),
                None => return Ok(None),
            },
            MountOp::Mask { path, id, .. } => (path, Some(*id), Step::Mask),
            _ => return Ok(None),
        };
        let fd = open_same(path, id).during_on(step, path.as_path())?;
        let is_bound = matches!(
            operation,
            MountOp::AttachRoot { .. } | MountOp::PinAncestor(_) | MountOp::Protect { .. }
        );
        let mut place = place_of(&fd).during_on(step, path.as_path())?;
        if is_bound && place.kind != PlaceKind::Link && self.open.len() < MOST_OPEN {
            place.fd = Some(self.keep(fd)?);
        }
        Ok(Some(place))
    }

    /// Keeps a descriptor, under a number that the patch stage does not need.
    fn keep(&mut self, fd: OwnedFd) -> Result<i32, Error> {
        let fd = above_inherited(fd).during(Step::HandOff)?;
        let number = fd.as_raw_fd();
        self.open.push(fd);
        Ok(number)
    }
}

fn place_of(fd: &OwnedFd) -> Result<Place, Errno> {
    let stat = fstat(fd)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => PlaceKind::Directory,
        FileType::Symlink => PlaceKind::Link,
        _ => PlaceKind::File,
    };
    let is_read_only = fstatvfs(fd)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    Ok(Place {
        id: id_of(&stat),
        kind,
        is_read_only,
        fd: None,
    })
}
