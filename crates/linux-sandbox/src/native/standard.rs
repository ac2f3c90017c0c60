//! The three descriptors that a command inherits.
//!
//! A descriptor carries the mount it was opened on, and that is the host's:
//! through `/proc/self/fd/0` a file that was handed over for reading could be
//! given another mode, and one below a root be opened for writing past every
//! carve-out; a directory would lead to the whole tree. So what was opened for
//! reading is opened again in the read-only view. What was opened for writing
//! is the command's, as its caller decided.
//!
//! A socket carries its network. A connected pair of unix streams reaches its
//! other end and nobody else; any other socket could be pointed elsewhere.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::fs::{
    CWD, FileType, Mode, OFlags, SeekFrom, Stat, fcntl_getfl, fcntl_setfl, fstat, openat, seek,
};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, getpeername, sockopt};
use sandbox_policy::Network;

use crate::command::INHERITED_FD;
use crate::error::{Errno, Step};
use crate::facts::shown_path;
use crate::resolve::id_of;
use crate::status::{At, Failure};
use crate::sys;

/// Makes the descriptors 0, 1 and 2 safe to hand on; it must run in the
/// read-only view, before anything is mounted over it.
pub(crate) fn secure(network: Network) -> Result<(), Failure> {
    let all = [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ];
    for (number, fd) in all.into_iter().enumerate() {
        let stat = fstat(fd).at(Step::StandardDescriptor)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket => check_socket(fd, network).at(Step::StandardSocket)?,
            FileType::Directory => reopen(number, fd, &stat).at(Step::StandardDescriptor)?,
            // Without a name there is nothing on disk that could be reached.
            FileType::RegularFile if stat.st_nlink > 0 => {
                reopen(number, fd, &stat).at(Step::StandardDescriptor)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Makes a descriptor arrive in the program as [`INHERITED_FD`], open across
/// `execve`; whatever had the number is closed.
pub(crate) fn inherit(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    if fd.as_raw_fd() == INHERITED_FD {
        return Ok(fcntl_setfd(fd, FdFlags::empty())?);
    }
    sys::duplicate_to(fd, INHERITED_FD)
}

/// Moves a descriptor that is still needed out of the way of [`inherit`].
pub(crate) fn above_inherited(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    match fd.as_raw_fd() {
        INHERITED_FD => Ok(fcntl_dupfd_cloexec(fd, INHERITED_FD + 1)?),
        _ => Ok(fd),
    }
}

fn check_socket(fd: BorrowedFd<'_>, network: Network) -> Result<(), Errno> {
    let domain = sockopt::socket_domain(fd)?;
    if domain != AddressFamily::UNIX {
        return match network {
            Network::Host => Ok(()),
            Network::None => Err(Errno(libc::EAFNOSUPPORT)),
        };
    }
    match sockopt::socket_type(fd)? {
        SocketType::STREAM | SocketType::SEQPACKET => Ok(getpeername(fd).map(drop)?),
        _ => Err(Errno(libc::EPROTOTYPE)),
    }
}

fn reopen(number: usize, fd: BorrowedFd<'_>, stat: &Stat) -> Result<(), Errno> {
    let flags = fcntl_getfl(fd)?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let for_writing = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    if for_writing && !is_directory {
        return Ok(());
    }
    let path = shown_path(fd)?;
    let new = match open_again(&path, flags, stat) {
        Ok(new) => new,
        // The caller's rights were greater once (sudo, a closed directory);
        // only the owner could do anything but read.
        Err(Errno(libc::EACCES)) if !is_directory && !is_mine(stat) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    if !is_directory && !flags.contains(OFlags::PATH) {
        seek(&new, SeekFrom::Start(seek(fd, SeekFrom::Current(0))?))?;
    }
    match number {
        0 => dup2_stdin(&new)?,
        1 => dup2_stdout(&new)?,
        _ => dup2_stderr(&new)?,
    }
    Ok(())
}

/// Opens what the path leads to, if that is still the same thing.
fn open_again(path: &Path, flags: OFlags, stat: &Stat) -> Result<OwnedFd, Errno> {
    // What took the place meanwhile may be a FIFO: do not wait for it.
    let mut again = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    again |= flags & (OFlags::PATH | OFlags::DIRECTORY);
    let new = openat(CWD, path, again, Mode::empty())?;
    if id_of(&fstat(&new)?) != id_of(stat) {
        return Err(Errno(libc::ESTALE));
    }
    if !flags.contains(OFlags::PATH) {
        fcntl_setfl(&new, flags & (OFlags::APPEND | OFlags::NONBLOCK))?;
    }
    Ok(new)
}

fn is_mine(stat: &Stat) -> bool {
    let me = nix::unistd::geteuid();
    me.is_root() || me.as_raw() == stat.st_uid
}

/// Returns how far the standard input has been read, when it is a file.
pub(crate) fn input_offset() -> Option<u64> {
    let stdin = rustix::stdio::stdin();
    let stat = fstat(stdin).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    seek(stdin.as_fd(), SeekFrom::Current(0)).ok()
}

/// Moves the caller's standard input to where the command left it, as if both
/// had shared it.
pub(crate) fn set_input_offset(offset: u64) {
    // Input that cannot be moved was never opened again.
    let _ = seek(rustix::stdio::stdin(), SeekFrom::Start(offset));
}
