//! What denied and missing paths are covered with: empty trees of this run's
//! own, which nobody can write, and of which nobody outside sees anything.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};

use crate::error::Errno;
use crate::sys::{self, READ_ONLY, Reach};

/// The name by which a tree of our own is known in the list of mounts.
pub(crate) const SOURCE: &CStr = c"sandpatch";

/// What a cover looks like.
#[derive(Clone, Copy)]
pub(crate) enum Cover {
    /// A directory that nobody may list or enter.
    Closed,
    /// A directory that anybody may list.
    Open,
    /// A file that nobody may open.
    File,
}

/// The covers that were used, so that the next one of the same kind is a copy.
#[derive(Default)]
pub(crate) struct Blank {
    closed: Option<OwnedFd>,
    open: Option<OwnedFd>,
    file: Option<OwnedFd>,
}

impl Blank {
    /// Puts a cover over a place.
    pub(crate) fn put(&mut self, cover: Cover, place: &OwnedFd) -> Result<(), Errno> {
        let known = match cover {
            Cover::Closed => &mut self.closed,
            Cover::Open => &mut self.open,
            Cover::File => &mut self.file,
        };
        let tree = match known {
            // Only what is attached may be copied before Linux 6.15; the first
            // cover has been by now.
            Some(first) => copy(first)?,
            None => match cover {
                Cover::Closed => directory(c"000", MountAttrFlags::MOUNT_ATTR_RDONLY)?,
                Cover::Open => directory(c"755", MountAttrFlags::MOUNT_ATTR_RDONLY)?,
                Cover::File => file()?,
            },
        };
        attach(&tree, place)?;
        match known {
            Some(_) => sys::leave_open(tree),
            None => *known = Some(tree),
        }
        Ok(())
    }
}

/// Makes a tree of one directory that is not attached anywhere.
pub(crate) fn directory(mode: &CStr, flags: MountAttrFlags) -> Result<OwnedFd, Errno> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), c"source", SOURCE)?;
    fsconfig_set_string(context.as_fd(), c"mode", mode)?;
    fsconfig_create(context.as_fd())?;
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let tree = fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        quiet | flags,
    )?;
    sys::leave_open(context);
    Ok(tree)
}

/// Makes a tree of one file. Its directory must be attached while the copy is
/// taken, so it lies over `/proc` for two calls.
fn file() -> Result<OwnedFd, Errno> {
    let parent = directory(c"755", MountAttrFlags::empty())?;
    mknodat(&parent, c"file", FileType::RegularFile, Mode::empty(), 0)?;
    attach_at(&parent, c"/proc")?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(&parent, c"file", flags);
    unmount(c"/proc", UnmountFlags::DETACH)?;
    sys::leave_open(parent);
    let tree = tree?;
    sys::mount_setattr(tree.as_fd(), c"", READ_ONLY, 0, Reach::Below)?;
    Ok(tree)
}

fn copy(tree: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(tree, c"", flags)?)
}

/// Puts a tree over what a path leads to.
pub(crate) fn attach_at(tree: &OwnedFd, path: &CStr) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(tree, c"", CWD, path, flags)?)
}

/// Puts a tree over a place.
pub(crate) fn attach(tree: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, c"", place, c"", flags)?)
}
