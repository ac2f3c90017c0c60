//! A tree of files in memory: what a snapshot says of it, and what a plan makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use apply_patch::failure::Cause;
use apply_patch::plan::snapshot::{
    FileState, PlaceKey, ResolvedPath, Slot, SlotId, SlotState, Snapshot,
};
use apply_patch::plan::{Effect, Plan};
use apply_patch::syntax::ast::{Body, Patch};

/// The names from the top of the tree to a file or directory.
pub type Place = Vec<String>;

/// Files by place; the directories are those that hold them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub files: BTreeMap<Place, Rc<Vec<u8>>>,
}

impl Tree {
    /// Reads pairs of a name and bytes; a name that can not stand beside the others is left out.
    pub fn of<'a>(pairs: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut tree = Self::default();
        for (name, bytes) in pairs {
            if let Some(place) = place(name)
                && !tree.directories().contains(&place)
                && !above(&place).any(|parent| tree.files.contains_key(&parent))
            {
                tree.files.insert(place, Rc::new(bytes.to_vec()));
            }
        }
        tree
    }

    /// Returns every directory, without the top.
    pub fn directories(&self) -> BTreeSet<Place> {
        self.files.keys().flat_map(above).collect()
    }

    /// Returns where a path leads in this tree, if a file may be there.
    pub fn resolve(&self, path: &str) -> Option<Place> {
        place(path).filter(|place| !above(place).any(|parent| self.files.contains_key(&parent)))
    }

    /// Observes every path of a patch.
    pub fn snapshot(&self, patch: &Patch<'_>) -> (Snapshot, BTreeMap<SlotId, Place>) {
        let mut snapshot = Snapshot::default();
        let mut places = BTreeMap::new();
        for path in paths(patch) {
            let slot = self.resolve(path).ok_or(Cause::TrailingSlash).map(|place| {
                let id = snapshot.insert(self.slot(&place));
                places.insert(id, place);
                id
            });
            let absolute = PathBuf::from("/").join(path);
            snapshot.insert_path(path, ResolvedPath { absolute, slot });
        }
        (snapshot, places)
    }

    fn slot(&self, place: &Place) -> Slot {
        let directories = self.directories();
        let existing = above(place).filter(|parent| directories.contains(parent));
        let depth = existing.last().map_or(0, |parent| parent.len());
        // Directories are told apart by their position among all directories.
        let inode = directories.iter().position(|it| it[..] == place[..depth]);
        let key = PlaceKey {
            directory: (1, inode.map_or(0, |index| index as u64 + 1)),
            names: place[depth..].iter().map(OsString::from).collect(),
        };
        let position = self.files.keys().position(|file| file == place);
        let state = match (self.files.get(place), position) {
            (Some(bytes), Some(index)) => SlotState::File(FileState {
                content: Some(Ok(bytes.to_vec())),
                writable: Ok(()),
                links: 1,
                inode: (1, 1_000_000 + index as u64),
            }),
            _ if directories.contains(place) => SlotState::Directory,
            _ => SlotState::Missing,
        };
        Slot { key, state }
    }

    /// Carries a plan out, as strictly as a file system would.
    pub fn carry_out(&mut self, plan: &Plan, places: &BTreeMap<SlotId, Place>) {
        for effect in &plan.effects {
            match effect {
                Effect::Rename { from, to, .. } => {
                    let moved = self
                        .files
                        .remove(&places[from])
                        .expect("moved from nowhere");
                    let lost = self.files.insert(places[to].clone(), moved);
                    assert_eq!(lost, None, "a rename onto something");
                }
                Effect::Write { slot, content, .. } => {
                    self.files.insert(places[slot].clone(), Rc::clone(content));
                }
                Effect::Remove { slot, .. } => {
                    let gone = self.files.remove(&places[slot]);
                    assert!(gone.is_some(), "nothing to remove");
                }
                Effect::Link { .. } | Effect::RemoveDirectory { .. } => {
                    panic!("only an undo asks for that")
                }
            }
        }
    }
}

/// Returns the directories above a place, outermost first, without the top.
pub fn above(place: &Place) -> impl Iterator<Item = Place> + '_ {
    (1..place.len()).map(|depth| place[..depth].to_vec())
}

fn paths<'a>(patch: &Patch<'a>) -> Vec<&'a str> {
    let mut paths = Vec::new();
    for operation in &patch.operations {
        paths.push(operation.path);
        if let Body::Update {
            move_to: Some(to), ..
        } = &operation.body
        {
            paths.push(to.path);
        }
    }
    paths
}

/// Reads a path without looking at any tree; `None` where no file can be.
fn place(path: &str) -> Option<Place> {
    if path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
        return None;
    }
    let mut place = Place::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(place.pop()?),
            name => place.push(name.to_owned()),
        }
    }
    (!place.is_empty() && !path.ends_with("/.") && !path.ends_with("..")).then_some(place)
}
