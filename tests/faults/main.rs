//! What a patch does when the system fails it: the tree stays as it was and
//! the reason is said, or the patch is applied in spite of it. Never a mixture,
//! and nothing is left behind.
//!
//! `injected` makes each single system call of the staging and the commit fail
//! with each of several errors; `limits` uses what really happens to people:
//! a full disk, a file size limit, too few descriptors, directories that may
//! not be written, a file system that is read-only.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test helpers fail the test that called them, and report totals"
)]

// Tracing knows the registers of x86-64 only.
#[cfg(target_arch = "x86_64")]
mod injected;
mod limits;
