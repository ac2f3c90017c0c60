//! Race-free file operations beneath pinned directories.
//!
//! A path is a promise that somebody else can break between two calls; a
//! descriptor is not. So a path is resolved once, by the kernel, to a pinned
//! parent directory ([`Dir`]) and one last component; that the parent lies
//! beneath a root is proved on the descriptor; and every later call names
//! the pair and follows no link.
//!
//! Vocabulary:
//! * **root**: a directory, opened once, beneath which changes are allowed;
//! * **guard**: a name beneath a root that nothing may be changed at or below;
//! * **[`Location`]**: a proved place, whether or not something is there;
//! * **[`Pinned`]**: a file that was found there, held by its inode;
//! * **[`Staged`]**: a new inode that has no name yet;
//! * **[`Step`]**: a change that was made and can be undone or finished;
//! * **[`Transaction`]**: steps of which all happen or none, written down before
//!   they are made, so that the next run can end what a killed one began.
//!
//! What this crate is not: it holds no policy (which roots, which guards) and
//! knows nothing of patches. It promises nothing against a process that may
//! write outside the roots and moves directories across their border.

mod containment;
mod dir;
mod entry;
mod error;
mod guard;
mod id;
mod journal;
mod links;
mod location;
mod lock;
mod ops;
mod parts;
mod pinned;
mod resolver;
mod roots;
mod step;
mod sys;
mod temporary;
mod transaction;

pub use dir::Dir;
pub use entry::{Entry, SpecialKind};
pub use error::{Error, ErrorKind, LinkHop, Operation};
pub use guard::{Guard, GuardDepth};
pub use id::FileId;
pub use journal::{Conflict, Direction, Durability, JOURNAL_NAME, Recovered};
pub use links::{Complete, LinkSearch};
pub use location::{Location, LocationKey};
pub use lock::WorkspaceLock;
pub use ops::{
    Attributes, LostAttribute, SavedAttributes, Staged, create, make_directories, relink, remove,
    rename, replace, rewrite, stage,
};
pub use pinned::Pinned;
pub use resolver::Resolver;
pub use roots::Roots;
pub use step::Step;
pub use temporary::TEMPORARY_PREFIX;
pub use transaction::{Transaction, Unsettled};
