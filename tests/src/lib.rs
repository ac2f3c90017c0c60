//! Shared helpers of the tests that run the real executable.
//!
//! Words used everywhere:
//! - *place*: a fresh directory below `/var/tmp` with a workspace (`ws`) and
//!   something that must not change (`out`). Not below `/tmp`, because a
//!   sandboxed command sees a private `/tmp`.
//! - *snapshot*: every name below a directory with its kind, mode and bytes.
//! - *identity*: who runs the executable; a sandbox has different duties for
//!   root and for an ordinary user, so most tests run as both.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a helper of tests fails the test that called it, and reports to its reader"
)]

pub mod bytes;
pub mod degrade;
pub mod exe;
pub mod fixtures;
pub mod identity;
pub mod limited;
pub mod list;
pub mod mounts;
pub mod place;
pub mod scenario;
pub mod skip;
pub mod snapshot;
mod sys;
#[cfg(target_arch = "x86_64")]
pub mod trace;
pub mod tree;
pub mod trial;

pub use identity::Identity;
pub use limited::{Ended, Outcome};
pub use place::Place;
pub use scenario::Scenario;
pub use snapshot::Snapshot;
pub use tree::Tree;
