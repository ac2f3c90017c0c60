//! Parses, plans and applies `*** Begin Patch` patches.

pub mod options;
pub mod syntax;

pub use options::Options;
