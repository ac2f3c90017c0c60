//! The one place for calls that the safe wrappers do not offer.
#![allow(unsafe_code)]

use nix::sys::signal::{SigHandler, Signal, signal};

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
