//! System calls that no safe library offers: the only unsafe code of the crate.
//!
//! Each function is one call, takes owned or borrowed values whose lifetime
//! spans the call, and turns the result into an error number. Policy belongs
//! elsewhere.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::sys::signal::{SigSet, Signal};

use crate::error::Errno;

/// Which side of a fork is running.
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old process, with the id of the new one.
    Parent(i32),
}

/// A received signal.
pub(crate) struct Received {
    pub(crate) signal: i32,
    pub(crate) origin: Origin,
}

/// Who sent a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The kernel, for example on behalf of a terminal.
    Kernel,
    /// A process, with a queued value.
    Queue,
    /// A process, plainly.
    Process,
}

/// The two halves of a capability state, one bit each.
pub(crate) struct Capabilities {
    pub(crate) effective: u64,
}

/// A NULL-terminated array of strings for `execve`.
pub(crate) struct StringArray {
    owned: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl StringArray {
    /// Takes the strings; their buffers do not move when the vector does.
    pub(crate) fn new(owned: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Self { owned, pointers }
    }

    /// Borrows the strings.
    pub(crate) fn strings(&self) -> &[CString] {
        &self.owned
    }
}

fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result < 0 {
        Err(last_errno())
    } else {
        Ok(result)
    }
}

fn last_errno() -> Errno {
    nix::errno::Errno::last().into()
}

/// `clone(flags | SIGCHLD)`: forks into new namespaces.
///
/// Memory is copied, not shared. The caller has checked that it has one thread,
/// so that no lock is held by a thread that does not exist in the child.
pub(crate) fn fork_into(namespaces: i32) -> Result<Fork, Errno> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without CLONE_VM the child runs on a copy of this stack, and a
    // null stack pointer keeps the stack pointer as it is; no other pointer is
    // passed, since no CLONE_*TID or CLONE_SETTLS flag is set.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok(if pid == 0 {
        Fork::Child
    } else {
        Fork::Parent(pid as i32)
    })
}

/// Ends the process at once, without running exit handlers that belong to the
/// process it was forked from.
pub(crate) fn exit_now(code: u8) -> ! {
    // SAFETY: `_exit` takes a plain number and does not return.
    unsafe { libc::_exit(i32::from(code)) }
}

/// `MOUNT_ATTR_RDONLY`, for [`mount_setattr`].
pub(crate) const READ_ONLY: u64 = 1;

/// Which mounts a call is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// One mount.
    Alone,
    /// A mount and all below it.
    Below,
}

/// `mount_setattr(dir, path, AT_EMPTY_PATH …)`.
pub(crate) fn mount_setattr(
    dir: BorrowedFd<'_>,
    path: &CStr,
    set: u64,
    propagation: u64,
    reach: Reach,
) -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation,
        userns_fd: 0,
    };
    let flags = match reach {
        Reach::Alone => libc::AT_EMPTY_PATH,
        Reach::Below => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: the path is NUL-terminated, and `attributes` has the size that is
    // passed; both live across the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            dir.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// `keyctl(KEYCTL_JOIN_SESSION_KEYRING, NULL)`.
pub(crate) fn join_session_keyring() -> Result<(), Errno> {
    let none = ptr::null::<libc::c_char>();
    // SAFETY: a null name asks for an anonymous keyring; nothing is written.
    check(unsafe { libc::syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, none) })
        .map(drop)
}

/// `close_range(first, last, flags)`.
///
/// Closing by number pulls descriptors from under their owners, so it is called
/// only by processes that will use no other descriptor afterwards.
pub(crate) fn close_range(first: u32, last: u32, flags: u32) -> Result<(), Errno> {
    // SAFETY: numbers only; see above for the owners.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}

/// Closes every descriptor but some, from 0 on; see [`close_range`] for whose
/// they are.
pub(crate) fn close_all_but(kept: &mut [u32]) {
    close_all_from_but(0, kept);
}

/// Closes every descriptor from a number on but some.
pub(crate) fn close_all_from_but(first: u32, kept: &mut [u32]) {
    kept.sort_unstable();
    let mut next = first;
    for fd in kept.iter().copied().filter(|fd| *fd >= first) {
        if fd > next {
            let _ = close_range(next, fd - 1, 0);
        }
        next = fd + 1;
    }
    let _ = close_range(next, u32::MAX, 0);
}

/// `dup2(fd, number)`: the copy stays open across `execve`.
///
/// The number belongs to nobody in the calling process, as `close_range` says
/// of all others.
pub(crate) fn duplicate_to(fd: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
    // SAFETY: numbers only; see above for the owner of the number.
    check(unsafe { libc::dup2(fd.as_raw_fd(), number) }.into()).map(drop)
}

/// `fcntl(number, F_DUPFD_CLOEXEC, lowest)`: a copy of a descriptor that is known
/// by its number only, since another program handed it over.
pub(crate) fn duplicate_number(number: i32, lowest: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: numbers only; one that is not open is an error.
    let fd = check(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, lowest) }.into())?;
    // SAFETY: the call has just made this descriptor, which nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Gives a descriptor up without closing it.
///
/// Process 1 opens many; it closes all of them with one call after the fork,
/// and the command's copies close on execution.
pub(crate) fn leave_open(fd: OwnedFd) {
    std::mem::forget(fd);
}

/// `prctl` with numbers only.
fn prctl(option: i32, argument: libc::c_ulong) -> Result<(), Errno> {
    let none: libc::c_ulong = 0;
    // SAFETY: every option used in this file takes numbers, not pointers.
    check(unsafe { libc::prctl(option, argument, none, none, none) }.into()).map(drop)
}

/// Asks the kernel to kill this process when its parent dies.
pub(crate) fn die_with_parent() -> Result<(), Errno> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)
}

/// Hides this process's memory and descriptors from others of the same user.
pub(crate) fn forbid_inspection() -> Result<(), Errno> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

/// Removes one capability from the bounding set.
pub(crate) fn drop_bounding(capability: u32) -> Result<(), Errno> {
    prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability))
}

/// Makes a permitted and inheritable capability survive `execve`.
pub(crate) fn raise_ambient(capability: u32) -> Result<(), Errno> {
    // SAFETY: numbers only; the kernel wants the unused ones to be zero.
    let result = unsafe {
        let number = libc::c_ulong::from(capability);
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_RAISE,
            number,
            0,
            0,
        )
    };
    check(result.into()).map(drop)
}

/// Sets and locks bits of the securebits.
pub(crate) fn set_securebits(bits: i32) -> Result<(), Errno> {
    prctl(libc::PR_SET_SECUREBITS, bits as libc::c_ulong)
}

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Version 3 of the capability calls: two words of 32 bits.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// `capget` of this process.
pub(crate) fn capabilities() -> Result<Capabilities, Errno> {
    let mut header = CapHeader {
        version: CAPABILITY_VERSION,
        pid: 0,
    };
    let mut data = [CapData::default(); 2];
    // SAFETY: version 3 reads one header and writes two data words; both live
    // across the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    let effective = u64::from(data[1].effective) << 32 | u64::from(data[0].effective);
    Ok(Capabilities { effective })
}

/// `capset` of this process: permitted, effective and inheritable become `kept`.
pub(crate) fn keep_capabilities(kept: u64) -> Result<(), Errno> {
    let mut header = CapHeader {
        version: CAPABILITY_VERSION,
        pid: 0,
    };
    let word = |bits: u64| CapData {
        effective: bits as u32,
        permitted: bits as u32,
        inheritable: bits as u32,
    };
    let data = [word(kept), word(kept >> 32)];
    // SAFETY: version 3 reads one header and two data words; both live across
    // the call.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) }).map(drop)
}

/// `landlock_create_ruleset(NULL, 0, VERSION)`: the ABI of the running kernel.
pub(crate) fn landlock_abi() -> Result<u32, Errno> {
    let none = ptr::null::<libc::c_void>();
    // SAFETY: with the version flag the kernel reads nothing.
    let abi = check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, 1) })?;
    Ok(u32::try_from(abi).unwrap_or(0))
}

/// Raises the loopback interface of this network namespace.
pub(crate) fn loopback_up() -> Result<(), Errno> {
    // SAFETY: numbers only.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(socket.into())?;
    // SAFETY: all-zero bytes are a valid `ifreq`, which is plain data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request reads one `ifreq`, which lives across the call.
    let result = unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) };
    let raised = check(result.into()).map(drop);
    // SAFETY: the descriptor was opened above and is known to nobody else.
    unsafe { libc::close(socket) };
    raised
}

/// `execve(path, …)`; returns only on failure.
pub(crate) fn execute(path: &CStr, args: &StringArray, vars: &StringArray) -> Errno {
    // SAFETY: the path and both arrays are NUL-terminated, both arrays end with
    // a null pointer, and all live across the call.
    unsafe {
        libc::execve(
            path.as_ptr(),
            args.pointers.as_ptr(),
            vars.pointers.as_ptr(),
        )
    };
    last_errno()
}

/// `execveat(file, "", …, AT_EMPTY_PATH)`; returns only on failure.
pub(crate) fn execute_file(file: BorrowedFd<'_>, args: &StringArray, vars: &StringArray) -> Errno {
    // SAFETY: as for `execute`; the descriptor is borrowed for the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            file.as_raw_fd(),
            c"".as_ptr(),
            args.pointers.as_ptr(),
            vars.pointers.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    last_errno()
}

/// Gives a signal its default action.
pub(crate) fn reset_signal(signal: i32) -> Result<(), Errno> {
    set_disposition(signal, libc::SIG_DFL)
}

/// Ignores a signal.
pub(crate) fn ignore_signal(signal: i32) -> Result<(), Errno> {
    set_disposition(signal, libc::SIG_IGN)
}

fn set_disposition(signal: i32, action: libc::sighandler_t) -> Result<(), Errno> {
    // SAFETY: neither action runs code of this process.
    let previous = unsafe { libc::signal(signal, action) };
    if previous == libc::SIG_ERR {
        Err(last_errno())
    } else {
        Ok(())
    }
}

/// `sigwaitinfo(signals)`: waits for one of some blocked signals.
pub(crate) fn wait_signal(signals: &SigSet) -> Result<Received, Errno> {
    loop {
        // SAFETY: all-zero bytes are a valid `siginfo_t`, which is plain data.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is read and `info` written during the call only.
        let signal = unsafe { libc::sigwaitinfo(signals.as_ref(), &raw mut info) };
        if signal > 0 {
            let origin = match info.si_code {
                libc::SI_QUEUE => Origin::Queue,
                code if code > 0 => Origin::Kernel,
                _ => Origin::Process,
            };
            return Ok(Received { signal, origin });
        }
        let errno = last_errno();
        if errno.0 != libc::EINTR {
            return Err(errno);
        }
    }
}

/// `sigqueue(pid, signal)`: sends a signal that says it was passed on.
pub(crate) fn queue_signal(pid: i32, signal: i32) -> Result<(), Errno> {
    let value = libc::sigval {
        sival_ptr: ptr::null_mut(),
    };
    // SAFETY: numbers only; the value carries a null pointer that nobody follows.
    check(unsafe { libc::sigqueue(pid, signal, value) }.into()).map(drop)
}

/// `pidfd_send_signal` with the sender's mark of [`queue_signal`].
pub(crate) fn queue_signal_to(process: BorrowedFd<'_>, signal: i32) -> Result<(), Errno> {
    // SAFETY: all-zero bytes are a valid `siginfo_t`, which is plain data.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    info.si_signo = signal;
    info.si_code = libc::SI_QUEUE;
    // SAFETY: the kernel reads one `siginfo_t`, which lives across the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            signal,
            &raw const info,
            0,
        )
    })
    .map(drop)
}

/// Signals that the supervisor passes on.
pub(crate) const FORWARDED: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTERM,
    Signal::SIGCONT,
    Signal::SIGWINCH,
];
