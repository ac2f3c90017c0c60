//! What the files that a patch names looked like, as plain data.
//!
//! Planning asks nothing of the file system: one module observes, this value
//! carries what it saw, and the plan is a function of it. Two paths that lead
//! to one place share one slot, however they are spelled.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::failure::{Cause, LinkHop, SpecialKind};

/// A place that some path of the patch leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub(crate) usize);

/// The identity of a place: an existing directory, and the names below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceKey {
    /// Device and inode of the deepest existing parent directory.
    pub directory: (u64, u64),
    /// The missing directories, then the last component; never empty.
    pub names: Vec<OsString>,
}

/// What is at a place before the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotState {
    /// Nothing.
    Missing,
    /// A regular file.
    File(FileState),
    /// A symbolic link.
    Link(LinkState),
    /// A directory.
    Directory,
    /// Something that is never opened.
    Special(SpecialKind),
}

/// A regular file as it was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// The bytes, read only when an update needs them.
    pub content: Option<Result<Vec<u8>, Cause>>,
    /// Whether the file itself may be written.
    pub writable: Result<(), Cause>,
    /// The number of its hard links.
    pub links: u64,
    /// Device and inode, by which two names of one file are known.
    pub inode: (u64, u64),
}

/// A symbolic link as it was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// Where the link is and what it says.
    pub hop: LinkHop,
    /// The path that its chain ends at, for messages; empty when it may not be followed.
    pub ends_at: PathBuf,
    /// The place its chain ends at, or why it may not be followed.
    pub target: Result<SlotId, Cause>,
}

/// One place with what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its identity.
    pub key: PlaceKey,
    /// What is there.
    pub state: SlotState,
}

/// One path of the patch, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The absolute path, lexically normal, for messages.
    pub absolute: PathBuf,
    /// The place it leads to, or why it leads nowhere that may be used.
    pub slot: Result<SlotId, Cause>,
}

/// Everything that was observed for one patch.
#[derive(Debug, Default)]
pub struct Snapshot {
    slots: Vec<Slot>,
    by_key: BTreeMap<PlaceKey, SlotId>,
    paths: BTreeMap<String, ResolvedPath>,
}

impl Snapshot {
    /// Returns the slot of a place, if it is known.
    pub fn find(&self, key: &PlaceKey) -> Option<SlotId> {
        self.by_key.get(key).copied()
    }

    /// Records a place; a place that is known already keeps its first state.
    pub fn insert(&mut self, slot: Slot) -> SlotId {
        if let Some(id) = self.find(&slot.key) {
            return id;
        }
        let id = SlotId(self.slots.len());
        self.by_key.insert(slot.key.clone(), id);
        self.slots.push(slot);
        id
    }

    /// Records how a path of the patch resolves.
    pub fn insert_path(&mut self, path: &str, resolved: ResolvedPath) {
        self.paths.insert(path.to_owned(), resolved);
    }

    /// Returns how a path of the patch resolves, if it was observed.
    pub fn path(&self, path: &str) -> Option<&ResolvedPath> {
        self.paths.get(path)
    }

    /// Returns one slot.
    pub fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[id.0]
    }

    /// Records the bytes of a file, or why they cannot be had.
    pub fn set_content(&mut self, id: SlotId, content: Result<Vec<u8>, Cause>) {
        if let SlotState::File(file) = &mut self.slots[id.0].state {
            file.content = Some(content);
        }
    }

    /// Returns the number of hard links of the file at a place; 0 when it is no file.
    pub fn links(&self, id: SlotId) -> u64 {
        match &self.slot(id).state {
            SlotState::File(file) => file.links,
            _ => 0,
        }
    }

    /// Returns the other places whose file is the very file at `id`.
    pub fn other_names(&self, id: SlotId) -> Vec<SlotId> {
        let SlotState::File(file) = &self.slot(id).state else {
            return Vec::new();
        };
        if file.links < 2 {
            return Vec::new();
        }
        let same = |slot: &Slot| matches!(&slot.state, SlotState::File(f) if f.inode == file.inode);
        let all = self.slots.iter().enumerate();
        all.filter(|(i, slot)| *i != id.0 && same(slot))
            .map(|(i, _)| SlotId(i))
            .collect()
    }

    /// Returns the slot that an edit of `id` would touch: the end of its link chain.
    pub fn edited(&self, id: SlotId) -> Result<SlotId, Cause> {
        match &self.slot(id).state {
            SlotState::Link(link) => link.target.clone(),
            _ => Ok(id),
        }
    }
}
