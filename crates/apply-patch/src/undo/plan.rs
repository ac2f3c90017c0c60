//! From a record to the effects that take it back: pure, like the plan of a patch.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::record::{Before, Change, Digest, Moved, Recorded};
use crate::plan::snapshot::{SlotId, SlotState, Snapshot};
use crate::plan::{Attributes, Effect};
use crate::report;

/// What is at a place, as far as an undo needs to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) slot: SlotId,
    pub(crate) snapshot: &'a Snapshot,
    /// Device, inode, size and time of modification.
    pub(crate) identity: Option<(u64, u64, u64, i128)>,
}

impl<'a> Found<'a> {
    fn state(&self) -> &'a SlotState {
        &self.snapshot.slot(self.slot).state
    }

    fn content(&self) -> Option<&'a [u8]> {
        match self.state() {
            SlotState::File(file) => match &file.content {
                Some(Ok(bytes)) => Some(bytes),
                _ => None,
            },
            _ => None,
        }
    }

    fn has(&self, digest: &Digest) -> bool {
        self.content()
            .is_some_and(|content| Digest::of(content) == *digest)
    }

    fn is(&self, expected: &Expected<'_>) -> bool {
        match (expected, self.state()) {
            (Expected::Nothing, SlotState::Missing) => true,
            (Expected::Digest(digest), _) => self.has(digest),
            (Expected::Link(target), SlotState::Link(link)) => link.hop.target == **target,
            (Expected::Inode(identity), _) => self.identity == Some(*identity),
            _ => false,
        }
    }
}

/// What is to be at a place.
enum Expected<'r> {
    Nothing,
    Digest(&'r Digest),
    Link(&'r OsString),
    /// This very file, as it was: device, inode, size and time of modification.
    Inode((u64, u64, u64, i128)),
}

impl<'r> Expected<'r> {
    const fn before(before: &'r Before) -> Self {
        match before {
            Before::Nothing => Self::Nothing,
            Before::File { digest, .. } => Self::Digest(digest),
            Before::Link { target } => Self::Link(target),
        }
    }

    const fn moved(moved: &'r Moved) -> Self {
        match moved {
            Moved::File(digest) => Self::Digest(digest),
            Moved::Link { target } => Self::Link(target),
            Moved::LargeFile {
                dev,
                ino,
                size_bytes,
                modified_ns,
            } => Self::Inode((*dev, *ino, *size_bytes, *modified_ns)),
        }
    }
}

/// The effects that take a patch back, and what they change.
#[derive(Debug, Default)]
pub(crate) struct Reverse {
    pub(crate) effects: Vec<Effect>,
    pub(crate) changes: Vec<report::Change>,
    pub(crate) notes: Vec<report::Note>,
}

/// Why a way back is not taken.
#[derive(Debug)]
pub(crate) enum Blocked {
    /// These places were changed since.
    Changed(Vec<PathBuf>),
    /// It was taken already: an undo that was killed at its very end could not say so.
    Already,
}

/// Plans the way back.
pub(crate) fn reverse(
    record: &Recorded,
    found: &BTreeMap<PathBuf, Found<'_>>,
) -> Result<Reverse, Blocked> {
    let changed = others(&left_behind(record), found);
    match changed.is_empty() {
        true => {}
        false if others(&replaced(record), found).is_empty() => return Err(Blocked::Already),
        false => return Err(Blocked::Changed(changed)),
    }
    let mut reverse = Reverse::default();
    for (operation, change) in record.changes.iter().enumerate().rev() {
        if reverse.add(change, operation, found).is_none() {
            let paths = change.paths().map(Path::to_path_buf).collect();
            return Err(Blocked::Changed(paths));
        }
    }
    Ok(reverse)
}

/// Returns the places where something else is than expected.
fn others(
    expected: &BTreeMap<&Path, Expected<'_>>,
    found: &BTreeMap<PathBuf, Found<'_>>,
) -> Vec<PathBuf> {
    let is_there = |path: &Path, it: &Expected<'_>| found.get(path).is_some_and(|at| at.is(it));
    let differing = expected.iter().filter(|(path, it)| !is_there(path, it));
    differing.map(|(path, _)| path.to_path_buf()).collect()
}

/// Returns what was at each place before the patch; its first change counts.
fn replaced(record: &Recorded) -> BTreeMap<&Path, Expected<'_>> {
    let mut before = BTreeMap::new();
    for change in &record.changes {
        match change {
            Change::Rename { from, to, moved } => {
                before
                    .entry(Path::new(from))
                    .or_insert(Expected::moved(moved));
                before.entry(Path::new(to)).or_insert(Expected::Nothing);
            }
            Change::Write {
                at, before: was, ..
            }
            | Change::Remove { at, before: was } => {
                before.entry(Path::new(at)).or_insert(Expected::before(was));
            }
            Change::MadeDirectory { .. } => {}
        }
    }
    before
}

/// Returns what the patch left at each place; a later change of a place counts.
fn left_behind(record: &Recorded) -> BTreeMap<&Path, Expected<'_>> {
    let mut left = BTreeMap::new();
    for change in &record.changes {
        match change {
            Change::Rename { from, to, moved } => {
                left.insert(Path::new(from), Expected::Nothing);
                left.insert(Path::new(to), Expected::moved(moved));
            }
            Change::Write { at, after, .. } => {
                left.insert(Path::new(at), Expected::Digest(after));
            }
            Change::Remove { at, .. } => {
                left.insert(Path::new(at), Expected::Nothing);
            }
            Change::MadeDirectory { .. } => {}
        }
    }
    left
}

/// Returns what becomes of a file that was written when that is taken back.
const fn kind_of_return(before: &Before) -> report::ChangeKind {
    match before {
        Before::Nothing => report::ChangeKind::Deleted,
        _ => report::ChangeKind::Modified,
    }
}

impl Reverse {
    /// Adds the way back of one change; nothing when the record contradicts itself.
    fn add(
        &mut self,
        change: &Change,
        operation: usize,
        found: &BTreeMap<PathBuf, Found<'_>>,
    ) -> Option<()> {
        let at = |path: &OsString| found.get(Path::new(path));
        match change {
            Change::Rename { from, to, .. } => {
                self.effects.push(Effect::Rename {
                    from: at(to)?.slot,
                    to: at(from)?.slot,
                    operation,
                });
                self.tell(report::ChangeKind::Modified, from);
            }
            Change::Write {
                at: path, before, ..
            } => {
                let found = at(path)?;
                self.put_back(before, found.slot, Some(found.content()?), operation)?;
                self.tell(kind_of_return(before), path);
            }
            Change::Remove { at: path, before } => {
                self.put_back(before, at(path)?.slot, None, operation)?;
                self.notes.extend(parted(before, path));
                self.tell(report::ChangeKind::Added, path);
            }
            Change::MadeDirectory { at: path, dev, ino } => {
                self.effects.push(Effect::RemoveDirectory {
                    slot: at(path)?.slot,
                    directory: (*dev, *ino),
                    operation,
                });
            }
        }
        Some(())
    }

    fn put_back(
        &mut self,
        before: &Before,
        slot: SlotId,
        there: Option<&[u8]>,
        operation: usize,
    ) -> Option<()> {
        match before {
            Before::Nothing => self.effects.push(Effect::Remove { slot, operation }),
            Before::File {
                content,
                attributes,
                ..
            } => self.effects.push(Effect::Write {
                slot,
                content: Rc::new(content.restore(there.unwrap_or_default())?),
                attributes: match attributes {
                    Some(_) => Attributes::Saved(slot),
                    None => Attributes::Like(slot),
                },
                operation,
            }),
            Before::Link { target } => {
                if there.is_some() {
                    self.effects.push(Effect::Remove { slot, operation });
                }
                self.effects.push(Effect::Link {
                    slot,
                    target: target.clone(),
                    operation,
                });
            }
        }
        Some(())
    }

    fn tell(&mut self, kind: report::ChangeKind, path: &OsString) {
        self.changes.push(report::Change {
            kind,
            path: path.to_string_lossy().into_owned(),
        });
    }
}

/// Says that a name of a file that has others comes back as a file of its own.
fn parted(before: &Before, path: &OsString) -> Option<report::Note> {
    match before {
        Before::File { links, .. } if *links > 1 => Some(report::Note::LinksParted {
            path: path.to_string_lossy().into_owned(),
            others: links - 1,
        }),
        _ => None,
    }
}
