//! What must hold for every input, one module for each target.
//!
//! A target that only looks for panics finds little in safe code. These checks
//! say what the engine promises, and say it in other words than the engine does.

pub mod edit;
mod file;
mod model;
pub mod parse;
pub mod plan;
pub mod record;
mod spelling;
#[path = "../../crates/apply-patch/tests/support/tree.rs"]
mod tree;
