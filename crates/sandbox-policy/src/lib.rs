//! Decides what a sandbox must look like, without touching the system.
//!
//! A [`Policy`] says what is wanted, [`HostFacts`] say what the host is like,
//! and [`plan()`] turns both into a [`Plan`]: an ordered list of mounts, Landlock
//! grants and requirements that a backend carries out. Nothing here opens a
//! file, reads the environment or makes a system call, so every decision can be
//! tested as a value and printed before it is acted on.
//!
//! # Vocabulary
//!
//! - A *root* is a directory or file that the sandboxed program may change.
//! - A *logical* path is spelled as the caller spells it; a *real* path has no
//!   symbolic link in it. Policy is written in logical paths, mounts are made
//!   on real ones.
//! - A *protected name* is an entry of a root that stays read-only (`.git`).
//! - A *carve-out* is a read-only mount inside a writable one.
//! - A *private* tree is made for one run and thrown away with it.

pub mod environment;
pub mod facts;
pub mod gitdir;
pub mod globs;
pub mod path;
pub mod plan;
pub mod policy;
pub mod rule;
pub mod secrets;

pub use facts::HostFacts;
pub use path::AbsolutePath;
pub use plan::{Plan, PlanError, plan};
pub use policy::{Network, Policy, Purpose, Tmp};
pub use rule::{Access, Origin, Rule};
