//! The native backend: namespaces and mounts made by this process itself.

mod blank;
mod devices;
mod empty_view;
pub(crate) mod exec;
pub(crate) mod identity;
pub(crate) mod init;
pub(crate) mod mounts;
pub(crate) mod process;
pub(crate) mod standard;
pub(crate) mod supervisor;

pub(crate) use standard::above_inherited;
pub(crate) use supervisor::run;
