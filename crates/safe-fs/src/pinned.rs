//! A file held by its inode: what was inspected is what is read, replaced or
//! removed later, whatever happens to its name.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, SFlag};

use crate::error::{Context, Error, ErrorKind, Operation};
use crate::id::{FileId, Stamp, Time};
use crate::location::Location;
use crate::ops::{SavedAttributes, save};
use crate::sys;

/// Holds a regular file or a symbolic link, with its metadata at that time.
#[derive(Debug)]
pub struct Pinned {
    fd: OwnedFd,
    stat: FileStat,
    stamp: OnceLock<Stamp>,
    at: Location,
}

/// Which changes of a pinned file count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Identity, size and modification time. The change time is left out
    /// since linking and renaming set it, ours too.
    Content,
    /// The change time as well, unless the file has several names: our own
    /// relinking of another name sets it.
    Everything,
}

impl Pinned {
    pub(crate) fn new(fd: OwnedFd, stat: FileStat, at: Location) -> Self {
        Self {
            fd,
            stat,
            stamp: OnceLock::new(),
            at,
        }
    }

    /// Returns the file's identity.
    pub fn id(&self) -> FileId {
        FileId::of(&self.stat)
    }

    /// Returns the permission bits with set-user-ID, set-group-ID and sticky.
    pub fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    /// Returns the owner.
    pub fn uid(&self) -> u32 {
        self.stat.st_uid
    }

    /// Returns the group.
    pub fn gid(&self) -> u32 {
        self.stat.st_gid
    }

    /// Returns how many names the file has.
    #[allow(
        clippy::useless_conversion,
        reason = "the width differs between architectures"
    )]
    pub fn nlink(&self) -> u64 {
        u64::from(self.stat.st_nlink)
    }

    /// Returns the size.
    pub fn size_bytes(&self) -> u64 {
        self.stat.st_size.unsigned_abs()
    }

    /// Returns the time of the last modification, since 1970.
    pub fn mtime_ns(&self) -> i128 {
        nanoseconds(self.stat.st_mtime, self.stat.st_mtime_nsec)
    }

    /// Returns the time of the last change of content or metadata, since 1970.
    pub fn ctime_ns(&self) -> i128 {
        nanoseconds(self.stat.st_ctime, self.stat.st_ctime_nsec)
    }

    /// Returns the time of the last access, as a journal keeps it.
    pub(crate) fn accessed(&self) -> Time {
        let nanoseconds = u32::try_from(self.stat.st_atime_nsec).unwrap_or(0);
        (self.stat.st_atime, nanoseconds)
    }

    /// Returns what a journal tells the inode by.
    pub(crate) fn stamp(&self) -> Result<Stamp, Error> {
        if let Some(known) = self.stamp.get() {
            return Ok(*known);
        }
        let stamp = sys::stamp_fd(self.fd.as_fd()).during(Operation::Inspect, self.path())?;
        Ok(*self.stamp.get_or_init(|| stamp))
    }

    /// Reads the whole file from its inode, whatever its name is now.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        self.read_all().during(Operation::Read, self.path())
    }

    fn read_all(&self) -> io::Result<Vec<u8>> {
        let file = self.reopen(OFlag::O_RDONLY)?;
        let size = usize::try_from(self.size_bytes()).unwrap_or(0);
        sys::read_to_end(file.as_fd(), size)
    }

    /// Reads owner, mode, extended attributes and ACLs, for when the file has to be made again.
    pub fn attributes(&self) -> Result<SavedAttributes, Error> {
        save(self).during(Operation::Read, self.path())
    }

    /// Tells whether the name at a place still leads to this file, with the same
    /// content as far as size and time of modification tell.
    pub fn is_at(&self, at: &Location) -> bool {
        self.expect_at(at, Compare::Content, Operation::Inspect)
            .is_ok()
    }

    /// Asks whether the effective user may write the file itself.
    ///
    /// `faccessat2(AT_EMPTY_PATH | AT_EACCESS)` (Linux 5.8); where it is not
    /// known, the file is opened for writing and closed again.
    pub fn check_writable(&self) -> Result<(), Error> {
        let unknown = |error: &io::Error| {
            [libc::ENOSYS, libc::EINVAL]
                .into_iter()
                .any(|errno| sys::is(error, errno))
        };
        match sys::may_write(self.fd.as_fd()) {
            Err(error) if unknown(&error) => self.reopen(OFlag::O_WRONLY).map(drop),
            result => result,
        }
        .during(Operation::CheckAccess, self.path())
    }

    /// Opens the pinned inode: through `/proc/self/fd`, or where there is no
    /// `/proc` by its name, proving that it is the same file.
    pub(crate) fn reopen(&self, flags: OFlag) -> io::Result<OwnedFd> {
        if !self.is_regular() {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let flags = flags | sys::NO_SIDE_EFFECTS;
        match sys::open_again(self.fd.as_fd(), flags) {
            Err(error) if sys::is(&error, libc::ENOENT) || sys::is(&error, libc::ENOTDIR) => {
                self.reopen_by_name(flags)
            }
            result => result,
        }
    }

    fn reopen_by_name(&self, flags: OFlag) -> io::Result<OwnedFd> {
        let fd = sys::open_at(
            self.at.dir.as_fd(),
            &self.at.name,
            flags | OFlag::O_NOFOLLOW,
        )?;
        if FileId::of(&sys::stat_fd(fd.as_fd())?) != self.id() {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        Ok(fd)
    }

    fn is_regular(&self) -> bool {
        SFlag::from_bits_truncate(self.stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
    }

    /// Returns where the file was found, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.at.path
    }

    /// Tells whether a file is the pinned one and was not changed since.
    pub(crate) fn matches(&self, now: &FileStat, compare: Compare) -> bool {
        let then = &self.stat;
        let strict = compare == Compare::Everything && self.nlink() == 1;
        FileId::of(now) == self.id()
            && now.st_size == then.st_size
            && (now.st_mtime, now.st_mtime_nsec) == (then.st_mtime, then.st_mtime_nsec)
            && (!strict || (now.st_ctime, now.st_ctime_nsec) == (then.st_ctime, then.st_ctime_nsec))
    }

    /// Refuses unless the name at `at` still leads to this file, unchanged.
    pub(crate) fn expect_at(
        &self,
        at: &Location,
        compare: Compare,
        op: Operation,
    ) -> Result<(), Error> {
        let (dir, name) = at.ready(op)?;
        let now = match sys::stat_at(dir, name) {
            Err(error) if sys::is(&error, libc::ENOENT) => {
                return Err(Error::new(op, &at.path, ErrorKind::Changed));
            }
            result => result.during(op, &at.path)?,
        };
        if self.matches(&now, compare) {
            return Ok(());
        }
        Err(Error::new(op, &at.path, ErrorKind::Changed))
    }
}

impl AsFd for Pinned {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}
