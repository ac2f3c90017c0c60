//! A `/dev` that holds nothing dangerous: a few nodes of the host, bound one by
//! one, terminals and shared memory of its own.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat, symlinkat};
use rustix::mount::{MountFlags, OpenTreeFlags, mount, open_tree};

use crate::error::Errno;
use crate::landlock::Rights;
use crate::native::blank::{SOURCE, attach_at};
use crate::resolve::open_path;
use crate::sys::leave_open;

/// The nodes that programs expect.
const NODES: [&CStr; 6] = [
    c"/dev/null",
    c"/dev/zero",
    c"/dev/full",
    c"/dev/random",
    c"/dev/urandom",
    c"/dev/tty",
];

/// The links that programs expect.
const LINKS: [(&CStr, &CStr); 5] = [
    (c"/proc/self/fd", c"/dev/fd"),
    (c"/proc/self/fd/0", c"/dev/stdin"),
    (c"/proc/self/fd/1", c"/dev/stdout"),
    (c"/proc/self/fd/2", c"/dev/stderr"),
    (c"pts/ptmx", c"/dev/ptmx"),
];

/// Copies of nodes, each with its path.
pub(crate) type Nodes = Vec<(&'static CStr, OwnedFd)>;

/// Mounts the private `/dev` and returns what may be written in it.
pub(crate) fn mount_private_dev(nodes: Nodes) -> Result<Vec<(OwnedFd, Rights)>, Errno> {
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount(SOURCE, c"/dev", c"tmpfs", quiet, c"mode=755,size=1m")?;
    for (path, node) in nodes {
        mknodat(CWD, path, FileType::RegularFile, Mode::empty(), 0)?;
        attach_at(&node, path)?;
        leave_open(node);
    }
    for (text, path) in LINKS {
        symlinkat(text, CWD, path)?;
    }
    mkdirat(CWD, c"/dev/pts", Mode::from_raw_mode(0o755))?;
    mount(
        c"devpts",
        c"/dev/pts",
        c"devpts",
        quiet,
        c"newinstance,ptmxmode=0666,mode=620",
    )?;
    mkdirat(CWD, c"/dev/shm", Mode::from_raw_mode(0o755))?;
    let memory = quiet | MountFlags::NODEV;
    mount(SOURCE, c"/dev/shm", c"tmpfs", memory, c"mode=1777")?;
    places()
}

/// Returns what may be written in a private `/dev` that stands.
///
/// Nothing can be made in `/dev` itself, so one rule covers nodes and terminals.
pub(crate) fn places() -> Result<Vec<(OwnedFd, Rights)>, Errno> {
    Ok(vec![
        (open_path(c"/dev")?, Rights::Device),
        (open_path(c"/dev/shm")?, Rights::Full),
    ])
}

/// Takes copies of the host's nodes; a host may lack one.
pub(crate) fn clone_nodes() -> Result<Nodes, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mut nodes = Vec::with_capacity(NODES.len());
    for path in NODES {
        match open_tree(CWD, path, flags) {
            Ok(node) => nodes.push((path, node)),
            Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(nodes)
}
