//! The one call of the tests that needs unsafe code.
#![allow(unsafe_code, reason = "a hook between fork and exec is unsafe to set")]

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the process that `command` starts a tracee of the thread that starts
/// it (`PTRACE_TRACEME`); it stops with `SIGTRAP` when its program is loaded.
#[cfg(target_arch = "x86_64")]
pub(crate) fn be_traced(command: &mut Command) {
    let hook = || nix::sys::ptrace::traceme().map_err(Into::into);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed;
    // the hook makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(hook);
    }
}
