//! Parses, plans and applies `*** Begin Patch` patches.

pub mod edit;
pub mod locate;
pub mod options;
pub mod syntax;
pub mod text;

pub use edit::{Edited, edit};
pub use options::Options;
pub use syntax::parse;
