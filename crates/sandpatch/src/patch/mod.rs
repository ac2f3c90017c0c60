//! Applying a patch: the text, the sandbox around, the stage inside.

pub mod inner;
pub mod input;
mod keeping;
pub mod outcome;
pub mod outer;
pub mod stage;
