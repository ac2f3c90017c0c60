//! Recording what effects replace, while it is at hand.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use safe_fs::{Entry, FileId, Location, Pinned, Roots};

use super::kept::Kept;
use super::record::{Before, Change, Digest, MOST_RECORD_BYTES, Moved, RecordError, Recorded};
use crate::apply::observe::Observed;
use crate::plan::snapshot::{SlotId, SlotState};
use crate::plan::{Attributes, Effect};

/// Up to this size a file is read when it is only moved.
const READ_WHEN_MOVED_BYTES: u64 = 1 << 20;

/// Records what the effects replaced; `made` are the directories that were made.
///
/// # Errors
///
/// [`RecordError::TooLarge`], [`RecordError::Unreadable`].
pub(crate) fn capture(
    effects: &[Effect],
    observed: &Observed,
    made: &[Location],
    roots: &Roots,
) -> Result<Recorded, RecordError> {
    let mut capture = Capture {
        observed,
        roots,
        directories: BTreeMap::new(),
        vacated: BTreeSet::new(),
        kept_bytes: 0,
    };
    let mut changes = Vec::with_capacity(effects.len() + made.len());
    for directory in made {
        changes.extend(capture.directory(directory));
    }
    for effect in effects {
        changes.extend(capture.effect(effect)?);
    }
    Ok(Recorded { changes })
}

struct Capture<'a> {
    observed: &'a Observed,
    roots: &'a Roots,
    /// The path of each directory that is known by now.
    directories: BTreeMap<FileId, PathBuf>,
    vacated: BTreeSet<SlotId>,
    kept_bytes: u64,
}

impl Capture<'_> {
    fn effect(&mut self, effect: &Effect) -> Result<Option<Change>, RecordError> {
        Ok(match effect {
            Effect::Rename { from, to, .. } => {
                let moved = self.moved(*from)?;
                self.vacated.insert(*from);
                Some(Change::Rename {
                    from: self.path(*from),
                    to: self.path(*to),
                    moved,
                })
            }
            Effect::Write {
                slot,
                content,
                attributes,
                ..
            } => Some(Change::Write {
                at: self.path(*slot),
                before: self.before(*slot, content, *attributes == Attributes::Like(*slot))?,
                after: Digest::of(content),
            }),
            Effect::Remove { slot, .. } => {
                let before = self.before(*slot, &[], false)?;
                self.vacated.insert(*slot);
                let at = self.path(*slot);
                Some(Change::Remove { at, before })
            }
            Effect::Link { .. } | Effect::RemoveDirectory { .. } => None,
        })
    }

    fn directory(&mut self, at: &Location) -> Option<Change> {
        let path = self.place(at);
        let now = self.roots.resolve(Path::new(&path)).ok()?;
        match self.roots.entry(&now) {
            Ok(Entry::Directory(id)) => Some(Change::MadeDirectory {
                at: path,
                dev: id.dev,
                ino: id.ino,
            }),
            _ => None,
        }
    }

    fn path(&mut self, slot: SlotId) -> OsString {
        let observed = self.observed;
        self.place(observed.location(slot))
    }

    /// Returns a place's path from the base directory, asking the kernel once for each directory.
    fn place(&mut self, at: &Location) -> OsString {
        let roots = self.roots;
        let known = self.directories.entry(at.dir().id()).or_insert_with(|| {
            let mut path = roots.real_path(at);
            for _ in 0..=at.missing().len() {
                path.pop();
            }
            path
        });
        let mut path = known.clone();
        path.extend(at.missing());
        path.push(at.name());
        path.into_os_string()
    }

    fn before(&mut self, slot: SlotId, new: &[u8], keeps: bool) -> Result<Before, RecordError> {
        let observed = self.observed;
        let pinned = observed
            .pinned(slot)
            .filter(|_| !self.vacated.contains(&slot));
        let state = &observed.snapshot().slot(slot).state;
        let (Some(pinned), false) = (pinned, matches!(state, SlotState::Missing)) else {
            return Ok(Before::Nothing);
        };
        if let SlotState::Link(link) = state {
            let target = link.hop.target.clone();
            return Ok(Before::Link { target });
        }
        let old = match state {
            SlotState::File(file) => match &file.content {
                Some(Ok(old)) => Cow::Borrowed(old),
                _ => Cow::Owned(self.read(pinned)?),
            },
            _ => return Err(RecordError::Special),
        };
        let attributes = match keeps {
            true => None,
            false => Some(pinned.attributes().map_err(RecordError::Unreadable)?),
        };
        Ok(Before::File {
            digest: Digest::of(&old),
            content: Kept::of(&old, new),
            attributes,
            links: pinned.nlink(),
        })
    }

    /// Reads a file that the patch did not need to read, as long as there is room.
    fn read(&mut self, pinned: &Pinned) -> Result<Vec<u8>, RecordError> {
        self.kept_bytes = self.kept_bytes.saturating_add(pinned.size_bytes());
        match self.kept_bytes {
            0..=MOST_RECORD_BYTES => pinned.read().map_err(RecordError::Unreadable),
            _ => Err(RecordError::TooLarge),
        }
    }

    fn moved(&self, from: SlotId) -> Result<Moved, RecordError> {
        let state = &self.observed.snapshot().slot(from).state;
        let Some(pinned) = self.observed.pinned(from) else {
            return Err(RecordError::Malformed);
        };
        Ok(match state {
            SlotState::Link(link) => Moved::Link {
                target: link.hop.target.clone(),
            },
            _ if pinned.size_bytes() <= READ_WHEN_MOVED_BYTES => {
                Moved::File(Digest::of(&pinned.read().map_err(RecordError::Unreadable)?))
            }
            _ => Moved::LargeFile {
                dev: pinned.id().dev,
                ino: pinned.id().ino,
                size_bytes: pinned.size_bytes(),
                modified_ns: pinned.mtime_ns(),
            },
        })
    }
}
