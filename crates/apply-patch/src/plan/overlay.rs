//! The files as they will be, operation by operation.
//!
//! Later operations see the results of earlier ones without anything being
//! written. A value here is either what the snapshot saw or what the patch
//! has made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::rc::Rc;

use super::snapshot::{PlaceKey, SlotId, SlotState, Snapshot};
use crate::failure::{Cause, SpecialKind};

/// Where the attributes (mode, owner, extended attributes) of a result come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attributes {
    /// A new file: mode 0666 less the umask (R33).
    Fresh,
    /// The file that was at this place when the patch was read.
    Like(SlotId),
    /// Those that were recorded for this place when an earlier patch took its file away.
    Saved(SlotId),
}

/// The bytes of a file of the overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// As they are on disk at this place, unread as yet or unchanged.
    Original(SlotId),
    /// Made by the patch.
    New(Rc<Vec<u8>>),
}

/// What is at a place once some operations are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// Nothing.
    Missing,
    /// A regular file.
    File {
        /// Its bytes.
        content: Content,
        /// Its attributes.
        attributes: Attributes,
    },
    /// The very link that was at this place when the patch was read.
    Link(SlotId),
    /// A directory.
    Directory,
    /// Something that is never opened.
    Special(SpecialKind),
}

/// The snapshot with the results of the operations so far.
pub struct Overlay<'s> {
    snapshot: &'s Snapshot,
    now: BTreeMap<SlotId, Now>,
    made_directories: BTreeSet<PlaceKey>,
    /// The operation lines that wrote a place as the target of a move or an add.
    written_by: BTreeMap<SlotId, usize>,
    /// The operation lines that took the first entry of a place away.
    taken_by: BTreeMap<SlotId, usize>,
}

impl<'s> Overlay<'s> {
    /// Starts from what was observed.
    pub fn new(snapshot: &'s Snapshot) -> Self {
        Self {
            snapshot,
            now: BTreeMap::new(),
            made_directories: BTreeSet::new(),
            written_by: BTreeMap::new(),
            taken_by: BTreeMap::new(),
        }
    }

    /// Returns what was observed.
    pub fn snapshot(&self) -> &'s Snapshot {
        self.snapshot
    }

    /// Returns what is at a place after the operations so far.
    pub fn get(&self, id: SlotId) -> Now {
        if let Some(now) = self.now.get(&id) {
            return now.clone();
        }
        if self.made_directories.contains(&self.snapshot.slot(id).key) {
            return Now::Directory;
        }
        self.original(id)
    }

    /// Returns what was at a place before the patch.
    pub fn original(&self, id: SlotId) -> Now {
        match &self.snapshot.slot(id).state {
            SlotState::Missing => Now::Missing,
            SlotState::File(_) => Now::File {
                content: Content::Original(id),
                attributes: Attributes::Like(id),
            },
            SlotState::Link(_) => Now::Link(id),
            SlotState::Directory => Now::Directory,
            SlotState::Special(kind) => Now::Special(*kind),
        }
    }

    /// Tells whether two places that named one file before the patch still do.
    pub fn one_file(&self, one: SlotId, other: SlotId) -> bool {
        match (self.get(one), self.get(other)) {
            (
                Now::File { content: mine, .. },
                Now::File {
                    content: theirs, ..
                },
            ) => match (mine, theirs) {
                (Content::Original(mine), Content::Original(theirs)) => {
                    mine == one && theirs == other
                }
                (Content::New(mine), Content::New(theirs)) => Rc::ptr_eq(&mine, &theirs),
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns the place that an edit of `id` touches now: the end of a link that is still there.
    pub fn edited(&self, id: SlotId) -> Result<SlotId, Cause> {
        match self.get(id) {
            Now::Link(link) => self.snapshot.edited(link),
            _ => Ok(id),
        }
    }

    /// Checks that no parent of the place is a file that the patch has made.
    pub fn check_parents(&self, id: SlotId) -> Result<(), Cause> {
        for parent in parents(&self.snapshot.slot(id).key) {
            let Some(slot) = self.snapshot.find(&parent) else {
                continue;
            };
            if !matches!(self.get(slot), Now::Missing | Now::Directory) {
                return Err(Cause::ParentIsFile);
            }
        }
        Ok(())
    }

    /// Puts a file at a place, with the directories that it needs.
    pub fn put(&mut self, id: SlotId, now: Now) {
        self.made_directories
            .extend(parents(&self.snapshot.slot(id).key));
        self.now.insert(id, now);
    }

    /// Takes what is at a place away.
    pub fn take(&mut self, id: SlotId, line: usize) {
        self.now.insert(id, Now::Missing);
        self.taken_by.entry(id).or_insert(line);
        self.written_by.remove(&id);
    }

    /// Remembers which operation's result is at a place.
    pub fn mark_written(&mut self, id: SlotId, line: usize) {
        self.written_by.insert(id, line);
    }

    /// Returns the line of the operation whose result is at a place.
    pub fn written_by(&self, id: SlotId) -> Option<usize> {
        self.written_by.get(&id).copied()
    }

    /// Returns the line of the operation that took away what was at a place before the patch.
    pub fn taken_by(&self, id: SlotId) -> Option<usize> {
        self.taken_by.get(&id).copied()
    }

    /// Returns the places that the operations have touched, in slot order, with their results.
    pub fn into_touched(self) -> Vec<(SlotId, Now)> {
        let mut touched: Vec<_> = self.now.into_iter().collect();
        touched.sort_by_key(|(id, _)| *id);
        touched
    }
}

/// Returns the missing directories above a place, outermost first.
fn parents(key: &PlaceKey) -> impl Iterator<Item = PlaceKey> + '_ {
    (1..key.names.len()).map(|depth| {
        let names: Vec<OsString> = key.names[..depth].to_vec();
        PlaceKey {
            directory: key.directory,
            names,
        }
    })
}
