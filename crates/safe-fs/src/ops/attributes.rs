//! What a new inode takes over from the one it will replace. What cannot be
//! taken over is reported, so that the caller can write in place instead.
//!
//! The order matters: a change of owner clears the set-user-ID bits and a
//! write clears file capabilities (`chown(2)`, `capabilities(7)`), so content
//! comes first, then owner, then attributes, then mode.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid};

use serde::{Deserialize, Serialize};

use crate::pinned::Pinned;
use crate::sys;

const ACCESS_ACL: &str = "system.posix_acl_access";
/// Signatures over the old content: worthless on the new one.
const SIGNATURES: [&str; 2] = ["security.ima", "security.evm"];
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;

/// Names something that a new inode could not take over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostAttribute {
    /// The owner (`fchown(2)`: `EPERM`); the set-user-ID bit is dropped with it.
    Owner,
    /// The group; the set-group-ID bit is dropped with it.
    Group,
    /// Permission bits that the kernel did not keep (`fchmod(2)`).
    Mode,
    /// An extended attribute or ACL, by its name (`xattr(7)`).
    Xattr(OsString),
    /// The old file's attributes could not be read at all.
    XattrsUnreadable,
}

/// What a new inode was given.
pub(super) struct Given {
    /// The permission bits that it should have now.
    pub(super) mode: u32,
    pub(super) lost: Vec<LostAttribute>,
}

impl Given {
    /// Returns what is missing of it, when these are the permission bits now.
    pub(super) fn lost_with(mut self, mode: u32) -> Vec<LostAttribute> {
        if self.lost.is_empty() && mode != self.mode {
            self.lost.push(LostAttribute::Mode);
        }
        self.lost
    }
}

/// What a file had beside its content, for when it has to be made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedAttributes {
    /// The permission bits with set-user-ID, set-group-ID and sticky.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Extended attributes and ACLs, by name.
    pub xattrs: Vec<(OsString, Vec<u8>)>,
}

/// Reads what a pinned file has beside its content; attributes that may not be read are left out.
pub(crate) fn save(from: &Pinned) -> io::Result<SavedAttributes> {
    let source = Source::of(from)?;
    let names = match source.names() {
        Err(error) if is_unsupported(&error) || is_refused(&error) => Vec::new(),
        result => result?,
    };
    let mut xattrs = Vec::new();
    for name in names {
        match source.value(&name) {
            Ok(Some(value)) => xattrs.push((name, value)),
            Ok(None) => {}
            Err(error) if is_refused(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(SavedAttributes {
        mode: from.mode(),
        uid: from.uid(),
        gid: from.gid(),
        xattrs,
    })
}

/// Gives the new inode what another one had.
pub(super) fn give(saved: &SavedAttributes, to: BorrowedFd<'_>) -> io::Result<Given> {
    let mut lost = Vec::new();
    let owner = (saved.mode, saved.uid, saved.gid);
    let mode = take_owner(owner, to, &mut lost)?;
    if !saved.xattrs.iter().any(|(name, _)| name == ACCESS_ACL) {
        drop_inherited_acl(to)?;
    }
    for (name, value) in &saved.xattrs {
        give_xattr(to, name, value, &mut lost)?;
    }
    chmod(to, mode)?;
    Ok(Given { mode, lost })
}

/// Gives the new inode the old one's owner, attributes and mode.
pub(super) fn take_over(from: &Pinned, to: BorrowedFd<'_>) -> io::Result<Given> {
    let mut lost = Vec::new();
    let owner = (from.mode(), from.uid(), from.gid());
    let mode = take_owner(owner, to, &mut lost)?;
    take_xattrs(from, to, &mut lost)?;
    chmod(to, mode)?;
    Ok(Given { mode, lost })
}

/// `fchmod(to, mode)`.
pub(super) fn chmod(to: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    sys::retry(|| nix::sys::stat::fchmod(to, Mode::from_bits_truncate(mode)))
}

fn take_owner(
    (mut mode, uid, gid): (u32, u32, u32),
    to: BorrowedFd<'_>,
    lost: &mut Vec<LostAttribute>,
) -> io::Result<u32> {
    let now = sys::stat_fd(to)?;
    if now.st_gid != gid && !chown(to, None, Some(gid))? {
        lost.push(LostAttribute::Group);
        mode &= !SET_GROUP_ID;
    }
    if now.st_uid != uid && !chown(to, Some(uid), None)? {
        lost.push(LostAttribute::Owner);
        mode &= !SET_USER_ID;
    }
    Ok(mode)
}

/// Changes owner or group; false when that is not allowed.
fn chown(to: BorrowedFd<'_>, uid: Option<u32>, gid: Option<u32>) -> io::Result<bool> {
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    match sys::retry(|| nix::unistd::fchown(to, uid, gid)) {
        Ok(()) => Ok(true),
        // EINVAL: an id that this user namespace does not map.
        Err(error)
            if [libc::EPERM, libc::EINVAL]
                .iter()
                .any(|no| sys::is(&error, *no)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn take_xattrs(from: &Pinned, to: BorrowedFd<'_>, lost: &mut Vec<LostAttribute>) -> io::Result<()> {
    let source = Source::of(from);
    let names = match source.as_ref().map(Source::names) {
        Ok(Ok(names)) => names,
        Ok(Err(error)) if is_unsupported(&error) => return Ok(()),
        Ok(Err(error)) if !is_refused(&error) => return Err(error),
        _ => {
            lost.push(LostAttribute::XattrsUnreadable);
            return Ok(());
        }
    };
    if !names.iter().any(|name| name == ACCESS_ACL) {
        drop_inherited_acl(to)?;
    }
    let Ok(source) = source else { return Ok(()) };
    for name in names {
        match source.value(&name) {
            Ok(Some(value)) => give_xattr(to, &name, &value, lost)?,
            Ok(None) => {}
            Err(error) if is_refused(&error) || is_unsupported(&error) => {
                lost.push(LostAttribute::Xattr(name));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn give_xattr(
    to: BorrowedFd<'_>,
    name: &OsStr,
    value: &[u8],
    lost: &mut Vec<LostAttribute>,
) -> io::Result<()> {
    if SIGNATURES.iter().any(|signature| name == *signature) {
        return Ok(());
    }
    let present = sized(|buffer| Ok(rustix::fs::fgetxattr(to, name, buffer)?));
    if present.is_ok_and(|present| present == value) {
        return Ok(());
    }
    let flags = rustix::fs::XattrFlags::empty();
    let set = rustix::io::retry_on_intr(|| rustix::fs::fsetxattr(to, name, value, flags));
    match set.map_err(io::Error::from) {
        Err(error) if is_refused(&error) || is_unsupported(&error) => {
            lost.push(LostAttribute::Xattr(name.to_os_string()));
            Ok(())
        }
        result => result,
    }
}

/// The directory's default ACL gave the new file what the old one has not.
fn drop_inherited_acl(to: BorrowedFd<'_>) -> io::Result<()> {
    match rustix::fs::fremovexattr(to, ACCESS_ACL).map_err(io::Error::from) {
        Err(error) if !sys::is(&error, libc::ENODATA) && !is_unsupported(&error) => Err(error),
        _ => Ok(()),
    }
}

/// How the attributes of an `O_PATH` descriptor are read: `fgetxattr` refuses
/// it (`open(2)`), the path in `/proc` does not.
enum Source {
    Path(String),
    Open(OwnedFd),
}

impl Source {
    fn of(from: &Pinned) -> io::Result<Self> {
        if sys::has_proc() {
            return Ok(Self::Path(sys::proc_path(from.as_fd())));
        }
        from.reopen(OFlag::O_RDONLY).map(Self::Open)
    }

    fn names(&self) -> io::Result<Vec<OsString>> {
        let list = sized(|buffer| {
            Ok(match self {
                Self::Path(path) => rustix::fs::listxattr(path.as_str(), buffer)?,
                Self::Open(fd) => rustix::fs::flistxattr(fd, buffer)?,
            })
        })?;
        let names = list
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty());
        Ok(names
            .map(|name| OsStr::from_bytes(name).to_os_string())
            .collect())
    }

    /// Reads one value; nothing when it vanished meanwhile.
    fn value(&self, name: &OsStr) -> io::Result<Option<Vec<u8>>> {
        let value = sized(|buffer| {
            Ok(match self {
                Self::Path(path) => rustix::fs::getxattr(path.as_str(), name, buffer)?,
                Self::Open(fd) => rustix::fs::fgetxattr(fd, name, buffer)?,
            })
        });
        match value {
            Err(error) if sys::is(&error, libc::ENODATA) => Ok(None),
            result => result.map(Some),
        }
    }
}

/// Calls with a buffer that grows while the kernel says `ERANGE`; 64 KiB is
/// the most an attribute or a list may be (`xattr(7)`).
fn sized(mut call: impl FnMut(&mut [u8]) -> io::Result<usize>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        match call(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(error) if sys::is(&error, libc::ERANGE) && buffer.len() < 1 << 16 => {
                buffer = vec![0; 1 << 16];
            }
            Err(error) if sys::is(&error, libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    sys::is(error, libc::EOPNOTSUPP) || sys::is(error, libc::ENOSYS)
}

fn is_refused(error: &io::Error) -> bool {
    [libc::EPERM, libc::EACCES, libc::EINVAL]
        .iter()
        .any(|errno| sys::is(error, *errno))
}
