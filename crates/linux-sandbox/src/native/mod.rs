//! The native backend: namespaces and mounts made by this process itself.

mod blank;
mod devices;
mod empty_view;
mod exec;
mod identity;
mod init;
mod mounts;
mod process;
mod standard;
mod supervisor;

pub(crate) use standard::above_inherited;
pub(crate) use supervisor::run;
