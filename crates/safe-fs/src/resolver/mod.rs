//! From a path to a pinned parent directory, in two ways that must agree:
//! one `openat2` call, or a walk over the components for kernels and filters
//! without it. The way is a value, so every test runs on both.

mod openat2;
mod walk;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::dir::Dir;
use crate::error::{Error, LinkHop, Operation};
use crate::parts::Parts;
use crate::sys;

/// Chooses how paths are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolver {
    /// The kernel resolves whole paths (`openat2(2)`, Linux 5.6).
    Openat2,
    /// Each component is pinned in turn (`openat(2)` with `O_PATH | O_NOFOLLOW`).
    Walk,
}

impl Resolver {
    /// Asks the kernel once whether it has `openat2`.
    ///
    /// `ENOSYS` means an old kernel; `EPERM` means a system-call filter that
    /// answers so for calls it does not know.
    pub fn detect() -> Self {
        let beneath = nix::fcntl::ResolveFlag::RESOLVE_BENEATH;
        if sys::openat2(nix::fcntl::AT_FDCWD, Path::new("."), beneath).is_ok() {
            Self::Openat2
        } else {
            Self::Walk
        }
    }

    /// Resolves the parents of a path; links are followed, magic links refused.
    pub(crate) fn parent(self, start: &Start<'_>, parts: &Parts) -> Result<Found, Error> {
        match self {
            Self::Openat2 => openat2::parent(start, parts),
            Self::Walk => walk::parent(start, parts),
        }
    }
}

/// Where a relative path starts.
pub(crate) struct Start<'a> {
    pub(crate) dir: &'a Dir,
    /// The same as a string, for messages.
    pub(crate) path: &'a Path,
    /// What the errors call the work.
    pub(crate) op: Operation,
    pub(crate) place: StartPlace,
}

/// Whether a start proves anything about what lies beneath it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartPlace {
    /// It is a pinned root: what is resolved beneath it is inside.
    Root,
    /// Any directory.
    Anywhere,
}

/// A resolved parent directory.
pub(crate) struct Found {
    pub(crate) dir: Dir,
    pub(crate) missing: Vec<OsString>,
    pub(crate) proof: Proof,
    pub(crate) hops: Vec<Hop>,
}

/// What is known already about where a directory lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Beneath the root it started from, by exactly the names in the path.
    ByNames,
    /// Nothing.
    Needed,
}

/// A link that was followed, and the directory that holds it.
pub(crate) struct Hop {
    pub(crate) dir: Dir,
    pub(crate) link: LinkHop,
}

/// Walks for the sake of the links on the way.
pub(crate) fn hops(start: &Start<'_>, parts: &Parts) -> Vec<Hop> {
    walk::parent(start, parts)
        .map(|found| found.hops)
        .unwrap_or_default()
}

/// Opens `/`, where absolute paths and links start.
fn filesystem_root() -> io::Result<Dir> {
    Dir::from_fd(sys::open(Path::new("/"), sys::PIN_DIRECTORY)?)
}
