//! Writing a file in place: for mount points, directories without write
//! permission, and attributes that a new inode could not take over. The old
//! bytes are kept for the undo; a kill in the middle leaves a mixture, so the
//! caller keeps them elsewhere too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::fcntl::OFlag;
use nix::sys::stat::FileStat;
use nix::sys::time::TimeSpec;

use super::attributes::chmod;
use crate::error::{Context, Error, ErrorKind, Operation};
use crate::id::Time;
use crate::location::Location;
use crate::pinned::{Compare, Pinned};
use crate::step::{Change, Rewriting, Step};
use crate::sys;

const SET_ID_BITS: u32 = 0o6000;

/// Writes new content into the file at a place, provided that it is
/// `expected`, unchanged, and has no other name.
///
/// The file is opened through its descriptor without truncating it. What does
/// not fit is found out before old bytes are touched: the growth is written
/// first. Several names are [`ErrorKind::HardLinked`].
pub fn rewrite(at: &Location, expected: &Pinned, bytes: &[u8]) -> Result<Step, Error> {
    const OP: Operation = Operation::Rewrite;
    let path = at.path();
    expected.expect_at(at, Compare::Everything, OP)?;
    let fd = expected.reopen(OFlag::O_WRONLY).during(OP, path)?;
    let old = expected.read()?;
    let now = sys::stat_fd(fd.as_fd()).during(OP, path)?;
    if now.st_nlink > 1 {
        #[allow(
            clippy::useless_conversion,
            reason = "the width differs between architectures"
        )]
        let links = u64::from(now.st_nlink);
        return Err(Error::new(OP, path, ErrorKind::HardLinked { links }));
    }
    // Opening for writing copies a file up on overlayfs, which sets its change time.
    if !expected.matches(&now, Compare::Content) || old.len() as u64 != expected.size_bytes() {
        return Err(Error::new(OP, path, ErrorKind::Changed));
    }
    let written = overwrite(fd.as_fd(), &old, bytes, &now);
    let after = match written.and_then(|()| sys::stamp_fd(fd.as_fd())) {
        Ok(after) => after,
        Err(error) => {
            restore(fd.as_fd(), &old, &now).during(Operation::Undo, path)?;
            return Err(error).during(OP, path);
        }
    };
    let rewriting = Rewriting {
        fd,
        old,
        before: now,
        after,
    };
    Ok(Step::new(at, Change::Rewritten(Box::new(rewriting))))
}

/// Grows, then overwrites, then cuts off; puts back the bits that writing clears.
fn overwrite(fd: BorrowedFd<'_>, old: &[u8], new: &[u8], before: &FileStat) -> io::Result<()> {
    let (head, tail) = new.split_at(old.len().min(new.len()));
    sys::write_all_at(fd, tail, old.len() as u64)?;
    sys::write_all_at(fd, head, 0)?;
    sys::truncate(fd, new.len() as u64)?;
    keep_set_id(fd, before)
}

/// A write clears set-user-ID and set-group-ID (`write(2)`); the owner puts
/// them back.
fn keep_set_id(fd: BorrowedFd<'_>, before: &FileStat) -> io::Result<()> {
    if before.st_mode & SET_ID_BITS == 0 {
        return Ok(());
    }
    match chmod(fd, before.st_mode & 0o7777) {
        Err(error) if sys::is(&error, libc::EPERM) => Ok(()),
        result => result,
    }
}

/// Puts the old bytes back into a file that a killed process was writing new
/// ones into; refuses when anything else is in it, or when it has other names.
pub(crate) fn restore_if_mixed(
    file: &Pinned,
    (old, new): (&[u8], &[u8]),
    (accessed, modified): (Time, Time),
) -> Result<bool, Error> {
    const OP: Operation = Operation::Recover;
    let found = file.read()?;
    if found == old {
        return Ok(true);
    }
    if file.nlink() > 1 || !is_mixed(&found, old, new) {
        return Ok(false);
    }
    let fd = file.reopen(OFlag::O_WRONLY).during(OP, file.path())?;
    let mut before = sys::stat_fd(fd.as_fd()).during(OP, file.path())?;
    (before.st_atime, before.st_atime_nsec) = (accessed.0, accessed.1.into());
    (before.st_mtime, before.st_mtime_nsec) = (modified.0, modified.1.into());
    restore(fd.as_fd(), old, &before).during(OP, file.path())?;
    Ok(true)
}

/// Tells whether each byte is the old or the new one of its place.
fn is_mixed(found: &[u8], old: &[u8], new: &[u8]) -> bool {
    let lengths = old.len().min(new.len())..=old.len().max(new.len());
    lengths.contains(&found.len())
        && found
            .iter()
            .enumerate()
            .all(|(at, byte)| old.get(at) == Some(byte) || new.get(at) == Some(byte))
}

/// Puts the old bytes and, where that is allowed, the old times back.
pub(crate) fn restore(fd: BorrowedFd<'_>, old: &[u8], before: &FileStat) -> io::Result<()> {
    sys::write_all_at(fd, old, 0)?;
    sys::truncate(fd, old.len() as u64)?;
    keep_set_id(fd, before)?;
    let accessed = TimeSpec::new(before.st_atime, before.st_atime_nsec);
    let modified = TimeSpec::new(before.st_mtime, before.st_mtime_nsec);
    // A writer who is not the owner may not set times; the bytes are what counts.
    let _ = sys::retry(|| nix::sys::stat::futimens(fd, &accessed, &modified));
    Ok(())
}
