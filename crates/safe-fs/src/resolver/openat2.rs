//! Resolution by one kernel call, with the component walk for what a single
//! answer cannot tell: which parents are missing, which link leads astray.

use std::io;
use std::os::fd::AsFd;

use nix::fcntl::ResolveFlag;

use super::{Found, Proof, Start, StartPlace, walk};
use crate::dir::Dir;
use crate::error::{Context, Error};
use crate::parts::{Parts, lexical};
use crate::sys;

/// How often a call that raced with a rename is tried again (`EAGAIN`).
const ATTEMPTS: usize = 16;

/// Tries beneath the root without links and mounts, where the names in the
/// path are the names of the directories; then with them; then walks.
pub(super) fn parent(start: &Start<'_>, parts: &Parts) -> Result<Found, Error> {
    let missing = Vec::new();
    if parts.parents.is_empty() && !parts.absolute {
        return Ok(found(start.dir.clone(), proof_at(start.place)));
    }
    if start.place == StartPlace::Root && !parts.absolute && !parts.goes_up() {
        let strict = ResolveFlag::RESOLVE_BENEATH
            | ResolveFlag::RESOLVE_NO_SYMLINKS
            | ResolveFlag::RESOLVE_NO_XDEV;
        if let Ok(dir) = open(start, parts, strict) {
            return Ok(Found {
                dir,
                missing,
                proof: Proof::ByNames,
                hops: Vec::new(),
            });
        }
    }
    match open(start, parts, ResolveFlag::RESOLVE_NO_MAGICLINKS) {
        Ok(dir) => Ok(found(dir, Proof::Needed)),
        Err(error) if needs_walk(&error, parts) => walk::parent(start, parts),
        Err(error) => {
            let path = lexical(start.path, &parts.parent_path().join(&parts.last));
            Err(error).during(start.op, &path)
        }
    }
}

fn found(dir: Dir, proof: Proof) -> Found {
    Found {
        dir,
        missing: Vec::new(),
        proof,
        hops: Vec::new(),
    }
}

fn proof_at(place: StartPlace) -> Proof {
    match place {
        StartPlace::Root => Proof::ByNames,
        StartPlace::Anywhere => Proof::Needed,
    }
}

fn open(start: &Start<'_>, parts: &Parts, resolve: ResolveFlag) -> io::Result<Dir> {
    let path = parts.parent_path();
    let mut tries = 1;
    loop {
        match sys::openat2(start.dir.as_fd(), &path, resolve) {
            Ok(fd) => return Dir::from_fd(fd),
            Err(error) if sys::is(&error, libc::EAGAIN) && tries < ATTEMPTS => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Something is missing, is no directory or is a link too many: the walk
/// finds out what. A directory that may not be searched can still be left by `..`.
fn needs_walk(error: &io::Error, parts: &Parts) -> bool {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::EXDEV | libc::EAGAIN) => true,
        Some(libc::EACCES) => parts.goes_up(),
        _ => false,
    }
}
