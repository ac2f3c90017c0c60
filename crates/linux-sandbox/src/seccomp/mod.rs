//! Which system calls are refused.
//!
//! The rules are data in [`rules`]; [`compile()`] turns them into one program,
//! since every further filter costs time at start and on each call.

mod compile;
mod rules;

pub(crate) use compile::compile;
