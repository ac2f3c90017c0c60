//! safe-fs
