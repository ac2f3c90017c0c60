//! The kernel calls this crate makes, each retried when a signal interrupts
//! it (`EINTR`, `signal(7)`), each relative to a descriptor and without
//! following a final link. There is no unsafe code here or anywhere else in
//! the crate: `nix` and `rustix` hold it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::{FileStat, Mode};
use nix::unistd::{AccessFlags, UnlinkatFlags};
use rustix::fs::RenameFlags;

use crate::id::{FileId, Stamp};

/// Pins a directory: no right to read it is needed (`open(2)`, `O_PATH`).
pub(crate) const PIN_DIRECTORY: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW);
/// Pins whatever is there, also a link, without opening it.
pub(crate) const PIN_ANYTHING: OFlag = OFlag::O_PATH.union(OFlag::O_NOFOLLOW);
/// Opens without waiting for a writer and without taking a terminal.
pub(crate) const NO_SIDE_EFFECTS: OFlag = OFlag::O_NONBLOCK.union(OFlag::O_NOCTTY);

/// Calls again while a signal interrupts (`EINTR`).
pub(crate) fn retry<T>(mut call: impl FnMut() -> nix::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}

fn retry_rustix<T>(call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    rustix::io::retry_on_intr(call).map_err(io::Error::from)
}

/// `open(path, flags | O_CLOEXEC)`: the only call that takes a whole path.
pub(crate) fn open(path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
    retry(|| nix::fcntl::open(path, flags | OFlag::O_CLOEXEC, Mode::empty()))
}

/// `openat(dir, name, flags | O_CLOEXEC)`.
pub(crate) fn open_at(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlag) -> io::Result<OwnedFd> {
    retry(|| nix::fcntl::openat(dir, name, flags | OFlag::O_CLOEXEC, Mode::empty()))
}

/// `openat` that makes a file; the kernel applies the umask to `mode`.
pub(crate) fn make_at(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlag,
    mode: u32,
) -> io::Result<OwnedFd> {
    let mode = Mode::from_bits_truncate(mode);
    retry(|| nix::fcntl::openat(dir, name, flags | OFlag::O_CLOEXEC, mode))
}

/// `openat2(dir, path, {O_PATH | O_DIRECTORY, resolve})` (Linux 5.6).
pub(crate) fn openat2(
    dir: BorrowedFd<'_>,
    path: &Path,
    resolve: ResolveFlag,
) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    retry(|| nix::fcntl::openat2(dir, path, how))
}

/// `fstat(fd)`; works on `O_PATH` descriptors since Linux 3.6.
pub(crate) fn stat_fd(fd: BorrowedFd<'_>) -> io::Result<FileStat> {
    retry(|| nix::sys::stat::fstat(fd))
}

/// `fstatat(dir, name, AT_SYMLINK_NOFOLLOW)`.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<FileStat> {
    let flags = AtFlags::AT_SYMLINK_NOFOLLOW | AtFlags::AT_NO_AUTOMOUNT;
    retry(|| nix::sys::stat::fstatat(dir, name, flags))
}

/// `fstatat(dir, name, 0)`: what a name leads to.
pub(crate) fn stat_target_at(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<FileStat> {
    retry(|| nix::sys::stat::fstatat(dir, name, AtFlags::AT_NO_AUTOMOUNT))
}

/// `readlinkat(fd, "")`: the link that an `O_PATH` descriptor pins (Linux 2.6.39).
pub(crate) fn read_link(fd: BorrowedFd<'_>) -> io::Result<OsString> {
    retry(|| nix::fcntl::readlinkat(fd, ""))
}

/// `readlink("/proc/self/fd/N")`: where the kernel says a descriptor is now.
///
/// The answer is a string and no proof of anything: use it only to find a
/// reason to refuse, or to tell a reader.
pub(crate) fn current_path(fd: BorrowedFd<'_>) -> io::Result<OsString> {
    let path = proc_path(fd);
    retry(|| nix::fcntl::readlinkat(AT_FDCWD, path.as_str()))
}

/// The magic link by which the kernel opens a descriptor's file again (`proc(5)`).
pub(crate) fn proc_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Whether `/proc` is there: nobody mounts it under a running process.
static PROC: OnceLock<bool> = OnceLock::new();

/// Tells whether `/proc` is there, without which no unnamed inode gets a name.
pub(crate) fn has_proc() -> bool {
    let ask = || {
        let path = "/proc/self/fd";
        nix::unistd::faccessat(AT_FDCWD, path, AccessFlags::F_OK, AtFlags::empty())
    };
    *PROC.get_or_init(|| retry(ask).is_ok())
}

/// Opens a descriptor's file again through its magic link (`proc(5)`).
pub(crate) fn open_again(fd: BorrowedFd<'_>, flags: OFlag) -> io::Result<OwnedFd> {
    let opened = open(Path::new(&proc_path(fd)), flags)?;
    PROC.get_or_init(|| true);
    Ok(opened)
}

/// `faccessat2(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS)` (Linux 5.8).
pub(crate) fn may_write(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = AtFlags::AT_EMPTY_PATH | AtFlags::AT_EACCESS;
    retry(|| nix::unistd::faccessat(fd, "", AccessFlags::W_OK, flags))
}

/// `linkat(from_dir, from, to_dir, to, 0)`: a link is linked, not its target.
pub(crate) fn link_at(
    from: (BorrowedFd<'_>, &OsStr),
    to: (BorrowedFd<'_>, &OsStr),
) -> io::Result<()> {
    retry(|| nix::unistd::linkat(from.0, from.1, to.0, to.1, AtFlags::empty()))
}

/// Gives an unnamed inode its first name; never replaces one.
///
/// `linkat(fd, "", AT_EMPTY_PATH)` needs `CAP_DAC_READ_SEARCH`, or since Linux
/// 6.10 the opener's credentials; `/proc/self/fd/N` with `AT_SYMLINK_FOLLOW`
/// works for everybody who has `/proc` (`open(2)`, `O_TMPFILE`).
pub(crate) fn link_unnamed(fd: BorrowedFd<'_>, to: (BorrowedFd<'_>, &OsStr)) -> io::Result<()> {
    match retry(|| nix::unistd::linkat(fd, "", to.0, to.1, AtFlags::AT_EMPTY_PATH)) {
        Err(error) if is(&error, libc::ENOENT) || is(&error, libc::EPERM) => {}
        result => return result,
    }
    let path = proc_path(fd);
    let follow = AtFlags::AT_SYMLINK_FOLLOW;
    retry(|| nix::unistd::linkat(AT_FDCWD, path.as_str(), to.0, to.1, follow))
}

/// `unlinkat(dir, name, 0)`.
pub(crate) fn unlink_at(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    retry(|| nix::unistd::unlinkat(dir, name, UnlinkatFlags::NoRemoveDir))
}

/// `unlinkat(dir, name, AT_REMOVEDIR)`: only an empty directory goes.
pub(crate) fn rmdir_at(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    retry(|| nix::unistd::unlinkat(dir, name, UnlinkatFlags::RemoveDir))
}

/// `symlinkat(target, dir, name)`.
pub(crate) fn symlink_at(target: &OsStr, at: (BorrowedFd<'_>, &OsStr)) -> io::Result<()> {
    retry(|| nix::unistd::symlinkat(target, at.0, at.1))
}

/// `mkdirat(dir, name, 0777)`; the kernel applies the umask.
pub(crate) fn mkdir_at(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    retry(|| nix::sys::stat::mkdirat(dir, name, Mode::from_bits_truncate(0o777)))
}

/// `renameat2(RENAME_EXCHANGE)` (Linux 3.15): both names are there at every instant.
pub(crate) fn exchange(
    one: (BorrowedFd<'_>, &OsStr),
    other: (BorrowedFd<'_>, &OsStr),
) -> io::Result<()> {
    let flags = RenameFlags::EXCHANGE;
    retry_rustix(|| rustix::fs::renameat_with(one.0, one.1, other.0, other.1, flags))
}

/// `renameat2(RENAME_NOREPLACE)` (Linux 3.15).
pub(crate) fn rename_new(
    from: (BorrowedFd<'_>, &OsStr),
    to: (BorrowedFd<'_>, &OsStr),
) -> io::Result<()> {
    let flags = RenameFlags::NOREPLACE;
    retry_rustix(|| rustix::fs::renameat_with(from.0, from.1, to.0, to.1, flags))
}

/// `renameat`: replaces what is there.
pub(crate) fn rename_over(
    from: (BorrowedFd<'_>, &OsStr),
    to: (BorrowedFd<'_>, &OsStr),
) -> io::Result<()> {
    retry(|| nix::fcntl::renameat(from.0, from.1, to.0, to.1))
}

/// Writes everything at `offset`, also when the kernel takes it in pieces.
pub(crate) fn write_all_at(fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        let position = i64::try_from(offset + done as u64).map_err(io::Error::other)?;
        match retry(|| nix::sys::uio::pwrite(fd, rest, position))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => done += count,
        }
    }
    Ok(())
}

/// Reads to the end, into a buffer for as many bytes as are expected and one
/// more, which tells that there are none.
pub(crate) fn read_to_end(fd: BorrowedFd<'_>, expected_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(expected_bytes.saturating_add(1))?;
    loop {
        if bytes.len() == bytes.capacity() {
            bytes.try_reserve(bytes.len())?;
        }
        let room = rustix::buffer::spare_capacity(&mut bytes);
        match rustix::io::read(fd, room) {
            Ok(0) => return Ok(bytes),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// `ftruncate(fd, length)`.
pub(crate) fn truncate(fd: BorrowedFd<'_>, length_bytes: u64) -> io::Result<()> {
    let length = i64::try_from(length_bytes).map_err(io::Error::other)?;
    retry(|| nix::unistd::ftruncate(fd, length))
}

/// `fsync(fd)`.
pub(crate) fn sync(fd: BorrowedFd<'_>) -> io::Result<()> {
    retry_rustix(|| rustix::fs::fsync(fd))
}

/// `fsync` of a directory that is pinned only.
pub(crate) fn sync_directory(dir: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    sync(open_at(dir, OsStr::new("."), flags)?.as_fd())
}

/// `flock(fd, LOCK_EX | LOCK_NB)`: false while another holds it.
///
/// The kernel unlocks when the descriptor is closed: there is no call to
/// unlock, whose failure nobody could answer after a patch is done.
pub(crate) fn try_lock(fd: BorrowedFd<'_>) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, flock};
    match retry_rustix(|| flock(fd, FlockOperation::NonBlockingLockExclusive)) {
        Err(error) if is(&error, libc::EAGAIN) => Ok(false),
        result => result.map(|()| true),
    }
}

/// The file system knows no locks, or there is nobody to keep them (`flock(2)`).
pub(crate) fn lacks_locks(error: &io::Error) -> bool {
    [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS]
        .iter()
        .any(|errno| is(error, *errno))
}

/// The file system has no unnamed files, or the kernel no `O_TMPFILE`
/// (`open(2)`), or there is no `/proc` to name one by.
pub(crate) fn lacks_unnamed(error: &io::Error) -> bool {
    [
        libc::EOPNOTSUPP,
        libc::EISDIR,
        libc::EINVAL,
        libc::ENOENT,
        libc::ENOSYS,
    ]
    .iter()
    .any(|errno| is(error, *errno))
}

/// Fills a word from the kernel's random source (`getrandom(2)`).
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    let flags = rustix::rand::GetRandomFlags::empty();
    let count = retry_rustix(|| rustix::rand::getrandom(&mut bytes, flags))?;
    if count < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// Tells whether an error is this one of the kernel's.
pub(crate) fn is(error: &io::Error, errno: i32) -> bool {
    error.raw_os_error() == Some(errno)
}

/// Tells whether the file system does not know a `renameat2` flag
/// (`EINVAL`), or the kernel the call (`ENOSYS`).
pub(crate) fn lacks_rename_flag(error: &io::Error) -> bool {
    is(error, libc::EINVAL) || is(error, libc::ENOSYS)
}

/// Borrows a directory and a name as the pair the calls take.
pub(crate) fn pair<'a>(dir: &'a impl AsFd, name: &'a OsStr) -> (BorrowedFd<'a>, &'a OsStr) {
    (dir.as_fd(), name)
}

/// `statx(fd, "", AT_EMPTY_PATH)` (Linux 4.11).
pub(crate) fn stamp_fd(fd: BorrowedFd<'_>) -> io::Result<Stamp> {
    stamp_and_mode(fd).map(|(stamp, _)| stamp)
}

/// `statx(fd, "", AT_EMPTY_PATH)`, with the permission bits.
pub(crate) fn stamp_and_mode(fd: BorrowedFd<'_>) -> io::Result<(Stamp, u32)> {
    let stat = statx(fd, OsStr::new(""), rustix::fs::AtFlags::EMPTY_PATH)?;
    Ok((stamp_of(&stat), u32::from(stat.stx_mode) & 0o7777))
}

/// `statx(dir, name, AT_SYMLINK_NOFOLLOW)`; nothing when nothing is there.
pub(crate) fn stamp_at(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<Stamp>> {
    use rustix::fs::AtFlags;
    match statx(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT) {
        Ok(stat) => Ok(Some(stamp_of(&stat))),
        Err(error) if is(&error, libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn statx(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: rustix::fs::AtFlags,
) -> io::Result<rustix::fs::Statx> {
    use rustix::fs::StatxFlags;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    retry_rustix(|| rustix::fs::statx(dir, name, flags, wanted))
}

fn stamp_of(stat: &rustix::fs::Statx) -> Stamp {
    use rustix::fs::StatxFlags;
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    let time = |time: rustix::fs::StatxTimestamp| (time.tv_sec, time.tv_nsec);
    Stamp {
        id: FileId {
            dev: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
            ino: stat.stx_ino,
        },
        birth: known.then(|| time(stat.stx_btime)),
        size: stat.stx_size,
        modified: time(stat.stx_mtime),
    }
}

/// `statx(fd, "", AT_EMPTY_PATH)`: whether names in a directory can only be
/// added (`FS_APPEND_FL`, ioctl_iflags(2)).
pub(crate) fn is_append_only(fd: BorrowedFd<'_>) -> io::Result<bool> {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};
    let stat =
        retry_rustix(|| rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::empty()))?;
    Ok(stat.stx_attributes.contains(StatxAttributes::APPEND))
}

/// Lists the names in a directory, without `.` and `..` (`getdents64(2)`).
pub(crate) fn list(dir: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in open_listing(dir)?.iter() {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_os_string();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Opens a pinned directory for reading its entries.
pub(crate) fn open_listing(dir: BorrowedFd<'_>) -> io::Result<nix::dir::Dir> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let fd = open_at(dir, OsStr::new("."), flags)?;
    nix::dir::Dir::from_fd(fd).map_err(io::Error::from)
}
