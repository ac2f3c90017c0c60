//! Parses, plans and applies `*** Begin Patch` patches.

//!
//! A patch passes through stages, each a value of its own:
//!
//! 1. [`syntax`]: text becomes a [`Patch`](syntax::ast::Patch);
//! 2. [`apply`](mod@apply) observes the files it names (a
//!    [`Snapshot`](plan::snapshot::Snapshot)), through `safe-fs`;
//! 3. [`plan`](mod@plan) tries every operation on an overlay, with [`edit`](mod@edit),
//!    [`locate`] and [`text`] for the bytes, and comes out with ordered effects;
//! 4. [`apply`](mod@apply) stages, commits, or takes everything back.
//!
//! [`undo`](mod@undo) records what was replaced, and plans the way back.
//! [`diff`] writes what a plan would change as a unified diff.
//!
//! All but [`apply`](mod@apply) are pure. A *hunk* is an operation on one file (the word
//! of the reference's messages), a *chunk* is one place in it.

pub mod apply;
pub mod diff;
pub mod edit;
pub mod failure;
mod kinds;
pub mod locate;
pub mod options;
pub mod plan;
pub mod report;
pub mod syntax;
pub mod text;
pub mod undo;

pub use apply::{ApplyError, Preview, UndoError, Undone, apply, check, preview, recover, undo};
pub use edit::{Edited, edit};
pub use options::Options;
pub use syntax::parse;
