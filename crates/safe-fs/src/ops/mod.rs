//! The operations, one file each. All of them act on a location's pinned
//! directory and last name, follow no link, and give a step that can be
//! undone or finished.

mod attributes;
mod create;
mod make_dirs;
mod relink;
mod remove;
mod rename;
mod replace;
mod rewrite;
mod stage;

pub use attributes::LostAttribute;
pub use create::create;
pub use make_dirs::make_directories;
pub use relink::{relink, relink_as};
pub use remove::{remove, remove_as, temporary_name};
pub use rename::rename;
pub use replace::replace;
pub(crate) use rewrite::restore;
pub use rewrite::rewrite;
pub use stage::{Attributes, Staged, stage};
