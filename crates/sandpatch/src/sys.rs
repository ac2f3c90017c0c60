//! The one place for calls that the safe wrappers do not offer.
#![allow(unsafe_code)]

use nix::sys::signal::{SigHandler, Signal, signal};

/// Closes every descriptor above 2, which its caller left open.
///
/// It is called before this process opens anything that it still uses.
pub fn close_all_above_standard() -> std::io::Result<()> {
    use nix::libc::{SYS_close_range, syscall};
    // SAFETY: numbers only. Descriptors above 2 have no owner in this process:
    // it has opened nothing yet, and what it inherited it does not use.
    match unsafe { syscall(SYS_close_range, 3, u32::MAX, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Makes writes beyond the file-size limit fail with EFBIG in place of ending the process.
///
/// A patch must be taken back when a write fails; a signal would leave it half done (setrlimit(2)).
pub fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN runs no code of ours, so nothing can be interrupted in an
    // inconsistent state; no other thread exists that could rely on a handler.
    let previous = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    // Only an invalid signal number fails, and this one is valid.
    debug_assert!(previous.is_ok());
}
