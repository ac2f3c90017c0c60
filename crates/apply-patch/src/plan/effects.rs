//! The net effects of a patch, in the order in which they are to be made.
//!
//! Renames come first, since they free the names that writes may fill; then
//! writes, then removals. Within a kind the patch's own order is kept.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::rc::Rc;

use super::operation::Origins;
use super::overlay::{Attributes, Content, Now, Overlay};
use super::snapshot::{SlotId, SlotState, Snapshot};
use crate::report::Report;

/// One change of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The very inode at `from` gets the name `to`, which is free by then.
    Rename {
        /// Where it is.
        from: SlotId,
        /// Where it goes.
        to: SlotId,
        /// The operation that asks for it.
        operation: usize,
    },
    /// A new inode with these bytes takes a name, whether or not something has it.
    Write {
        /// The place.
        slot: SlotId,
        /// The bytes.
        content: Rc<Vec<u8>>,
        /// Where mode, owner and extended attributes come from.
        attributes: Attributes,
        /// The operation that asks for it.
        operation: usize,
    },
    /// A name goes.
    Remove {
        /// The place.
        slot: SlotId,
        /// The operation that asks for it.
        operation: usize,
    },
    /// A symbolic link takes a free name; only an undo makes links.
    Link {
        /// The place.
        slot: SlotId,
        /// What the link says.
        target: OsString,
        /// The operation that asks for it.
        operation: usize,
    },
    /// A directory goes at the very end, if it is empty then; only an undo removes any.
    RemoveDirectory {
        /// The place.
        slot: SlotId,
        /// Device and inode of the directory that is meant.
        directory: (u64, u64),
        /// The operation that asks for it.
        operation: usize,
    },
}

impl Effect {
    /// Returns the operation that asks for the effect.
    pub const fn operation(&self) -> usize {
        match self {
            Self::Rename { operation, .. }
            | Self::Write { operation, .. }
            | Self::Remove { operation, .. }
            | Self::Link { operation, .. }
            | Self::RemoveDirectory { operation, .. } => *operation,
        }
    }
}

/// Everything that is to be done, and what is to be said of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The effects in order.
    pub effects: Vec<Effect>,
    /// The report, should all of them succeed.
    pub report: Report,
}

impl Plan {
    /// Reduces the overlay's final state to net effects.
    pub(super) fn net(overlay: Overlay<'_>, report: Report, origins: &Origins) -> Self {
        let snapshot = overlay.snapshot();
        let mut net = Net::new(snapshot, origins);
        let touched = overlay.into_touched();
        for (slot, now) in &touched {
            net.rename(*slot, now);
        }
        for (slot, now) in &touched {
            net.write(*slot, now);
        }
        for (slot, now) in &touched {
            net.remove(*slot, now);
        }
        Self {
            effects: net.into_effects(),
            report,
        }
    }
}

/// The effects while they are being gathered.
struct Net<'a> {
    snapshot: &'a Snapshot,
    origins: &'a Origins,
    renames: Vec<Effect>,
    writes: Vec<Effect>,
    removes: Vec<Effect>,
    renamed: BTreeSet<SlotId>,
}

impl<'a> Net<'a> {
    fn new(snapshot: &'a Snapshot, origins: &'a Origins) -> Self {
        Self {
            snapshot,
            origins,
            renames: Vec::new(),
            writes: Vec::new(),
            removes: Vec::new(),
            renamed: BTreeSet::new(),
        }
    }

    fn operation(&self, slot: SlotId) -> usize {
        self.origins.get(&slot).copied().unwrap_or_default()
    }

    /// Takes the very inode along; what has the new name goes first.
    fn rename(&mut self, to: SlotId, now: &Now) {
        let from = match now {
            Now::File {
                content: Content::Original(from),
                ..
            } if *from != to => *from,
            Now::Link(from) if *from != to => *from,
            _ => return,
        };
        let operation = self.operation(to);
        if !matches!(self.snapshot.slot(to).state, SlotState::Missing) {
            self.renames.push(Effect::Remove {
                slot: to,
                operation,
            });
        }
        self.renames.push(Effect::Rename {
            from,
            to,
            operation,
        });
        self.renamed.insert(from);
    }

    fn write(&mut self, slot: SlotId, now: &Now) {
        let Now::File {
            content: Content::New(bytes),
            attributes,
        } = now
        else {
            return;
        };
        if self.written_by_other_name(slot, bytes) {
            return;
        }
        let operation = self.operation(slot);
        let content = Rc::clone(bytes);
        self.writes.push(Effect::Write {
            slot,
            content,
            attributes: *attributes,
            operation,
        });
    }

    /// Tells whether another name of the same file gets this very content, so that
    /// the names follow each other and one write is enough.
    fn written_by_other_name(&self, slot: SlotId, content: &Rc<Vec<u8>>) -> bool {
        let others = self.snapshot.other_names(slot);
        self.writes.iter().any(|effect| match effect {
            Effect::Write {
                slot: other,
                content: written,
                ..
            } => others.contains(other) && Rc::ptr_eq(written, content),
            _ => false,
        })
    }

    fn remove(&mut self, slot: SlotId, now: &Now) {
        let was_missing = matches!(self.snapshot.slot(slot).state, SlotState::Missing);
        if *now == Now::Missing && !was_missing && !self.renamed.contains(&slot) {
            self.removes.push(Effect::Remove {
                slot,
                operation: self.operation(slot),
            });
        }
    }

    fn into_effects(mut self) -> Vec<Effect> {
        self.writes.sort_by_key(Effect::operation);
        self.removes.sort_by_key(Effect::operation);
        self.renames
            .into_iter()
            .chain(self.writes)
            .chain(self.removes)
            .collect()
    }
}
