//! Attempts to reach outside the workspace, against the real executable.
//!
//! Every refusal is tried through each door that takes a patch, as root and as
//! an ordinary user, and has a positive control: the same operation on an
//! allowed target must succeed in the same place. Otherwise a tool that refuses
//! everything would pass.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail the test that called them"
)]

mod commands;
mod descriptors;
mod door;
mod hardlinks;
mod paths;
mod protected;
mod special;
mod symlinks;
