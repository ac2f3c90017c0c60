//! The patch grammar: text in, operations out.

pub mod ast;
