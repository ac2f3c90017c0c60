//! The sandpatch executable.
fn main() {}
