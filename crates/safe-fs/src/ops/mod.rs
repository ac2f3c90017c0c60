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

pub(crate) use attributes::save;
pub use attributes::{LostAttribute, SavedAttributes};
pub use create::create;
pub use make_dirs::make_directories;
pub(crate) use make_dirs::make_directories_telling;
pub use relink::relink;
pub(crate) use relink::relink_as;
pub use remove::remove;
pub(crate) use remove::remove_as;
pub use rename::rename;
pub use replace::replace;
pub use rewrite::rewrite;
pub(crate) use rewrite::{restore, restore_if_mixed};
pub use stage::{Attributes, Staged, stage};
pub(crate) use stage::{stage_link, stage_telling};
