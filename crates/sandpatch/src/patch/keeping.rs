//! What the outer stage does around a patch so that it can be undone: it opens
//! a record that the inner stage writes by descriptor, and names it afterwards.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use apply_patch::report::ChangeKind;
use apply_patch::syntax::ast::{Body, Operation};

use super::inner::Input;
use crate::cli::Dialect;
use crate::exit::Exit;
use crate::render;
use crate::state::{Base, Change, Header, Missing, NoState, Place, Root, Store};
use crate::user::User;

/// Whether a record is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// What is replaced is to be recorded.
    Record,
    /// Nothing is replaced.
    Nothing,
}

/// What a record is about.
pub struct About<'a> {
    /// The patch.
    pub patch: &'a Input,
    /// Where it is applied.
    pub directory: &'a Path,
    /// Where it may write.
    pub roots: &'a [Root],
    /// How it is understood.
    pub dialect: Dialect,
}

/// Does the work with a descriptor for the record, or the reason why there is none.
pub fn around(
    user: &User,
    wanted: Wanted,
    about: &About<'_>,
    work: impl FnOnce(Option<Arc<OwnedFd>>, Option<&str>) -> Exit,
) -> Exit {
    if wanted == Wanted::Nothing {
        return work(None, None);
    }
    match open(user, about.roots) {
        Ok(store) => recorded(&store, about, work),
        Err(why) => work(None, Some(&why.to_string())),
    }
}

fn open(user: &User, roots: &[Root]) -> Result<Store, NoState> {
    Store::open(&Base::of(user)?, roots, Missing::Make)
}

fn recorded(
    store: &Store,
    about: &About<'_>,
    work: impl FnOnce(Option<Arc<OwnedFd>>, Option<&str>) -> Exit,
) -> Exit {
    let pending = match store.begin() {
        Ok(pending) => pending,
        Err(why) => return work(None, Some(&why.to_string())),
    };
    let exit = work(Some(pending.descriptor()), None);
    if let Err(why) = pending.keep(|| about.header()) {
        render::note(&format!("this patch cannot be undone: {why}"));
    }
    exit
}

impl About<'_> {
    fn header(&self) -> Header {
        let place = |root: &Root| Place {
            path: root.real.clone(),
            dev: root.id.dev,
            ino: root.id.ino,
        };
        let own = self.roots.iter().find(|root| root.real == self.directory);
        let workspace = own.map_or_else(
            || Place {
                path: self.directory.to_path_buf(),
                dev: 0,
                ino: 0,
            },
            place,
        );
        let roots = self.roots.iter().map(place).collect();
        Header::now(workspace, roots, self.dialect.name(), summary(self.patch))
    }
}

/// The size up to which a patch is read once more, for the list of what it changed.
const SUMMARISED_BYTES: usize = 256 << 10;

/// Returns what a patch that was applied changed, by its headers.
fn summary(patch: &Input) -> Vec<Change> {
    let Input::Patch(text) = patch else {
        return Vec::new();
    };
    if text.len() > SUMMARISED_BYTES {
        return Vec::new();
    }
    match apply_patch::parse(text) {
        Ok(parsed) => parsed.patch.operations.iter().map(change).collect(),
        Err(_) => Vec::new(),
    }
}

fn change(operation: &Operation<'_>) -> Change {
    let (kind, path) = match &operation.body {
        Body::Add { .. } => (ChangeKind::Added, operation.path),
        Body::Delete => (ChangeKind::Deleted, operation.path),
        Body::Update { move_to, .. } => {
            let path = move_to.map_or(operation.path, |to| to.path);
            (ChangeKind::Modified, path)
        }
    };
    Change {
        kind,
        path: path.to_owned(),
    }
}
