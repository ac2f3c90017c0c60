//! A view in which only what the policy names can be seen: an empty tree takes
//! the place of the host's, which stays within reach of the set-up behind it.

use std::ffi::OsString;
use std::path::Path;

use rustix::fs::{CWD, Mode, mkdirat, symlinkat};
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use rustix::process::{fchdir, pivot_root};
use sandbox_policy::AbsolutePath;

use crate::error::Errno;
use crate::native::blank;
use crate::native::mounts::allow_existing;
use crate::sys::{self, READ_ONLY, Reach};

/// Makes the empty tree and enters it; the host's lies over it afterwards, where
/// no path leads, until [`leave_host_view`].
pub(crate) fn enter(
    directories: &[AbsolutePath],
    links: &[(AbsolutePath, OsString)],
) -> Result<(), Errno> {
    let tree = blank::directory(c"755", MountAttrFlags::empty())?;
    // Any directory will do: the tree does not stay there.
    blank::attach_at(&tree, c"/proc")?;
    fchdir(&tree)?;
    pivot_root(c".", c".")?;
    sys::leave_open(tree);
    for (path, text) in links {
        make_parents(path)?;
        allow_existing(symlinkat(text, CWD, path.as_path()))?;
    }
    for path in directories {
        make_parents(path)?;
        make_directory(path.as_path())?;
    }
    Ok(())
}

/// Makes the directories above a path.
pub(crate) fn make_parents(path: &AbsolutePath) -> Result<(), Errno> {
    for directory in path.between(&AbsolutePath::filesystem_root()) {
        make_directory(directory.as_path())?;
    }
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), Errno> {
    allow_existing(mkdirat(CWD, path, Mode::from_raw_mode(0o755)))
}

/// Lets go of the host's tree, and makes the new one read-only.
pub(crate) fn leave_host_view() -> Result<(), Errno> {
    rustix::process::chdir(c"/")?;
    // The lookup ends at what was mounted last: the host's tree.
    unmount(c".", UnmountFlags::DETACH)?;
    sys::mount_setattr(CWD, c"/", READ_ONLY, 0, Reach::Alone)
}
