//! Mounts that only the calling thread, and what it starts, can see.

use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;

use crate::skip;

const NONE: Option<&str> = None;

/// A mount that goes when this is dropped.
#[must_use = "dropping it unmounts"]
pub struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // The namespace ends with the thread; this only uncovers the place.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

/// Says that the calling thread has mounts of its own.
pub struct Own(());

/// Gives the calling thread mounts of its own; nothing, loudly, when the
/// caller may not have them.
#[must_use]
pub fn own(test: &str) -> Option<Own> {
    if !geteuid().is_root() {
        skip::skip_allowed(test, "mounting needs root");
        return None;
    }
    if let Err(error) = unshare(CloneFlags::CLONE_NEWNS) {
        skip::skip(test, &format!("no mount namespace: {error}")).expect("skip");
        return None;
    }
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NONE, "/", NONE, flags, NONE).expect("private mounts");
    Some(Own(()))
}

/// Mounts an empty file system in memory.
pub fn tmpfs(at: &Path, options: &str) -> Mounted {
    let none = MsFlags::empty();
    mount(Some("none"), at, Some("tmpfs"), none, Some(options)).expect("mount a tmpfs");
    Mounted(at.to_owned())
}

/// Makes a directory read-only, as a mount of its own.
pub fn read_only(at: &Path) -> Mounted {
    mount(Some(at), at, NONE, MsFlags::MS_BIND, NONE).expect("bind");
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(NONE, at, NONE, flags, NONE).expect("remount read-only");
    Mounted(at.to_owned())
}
