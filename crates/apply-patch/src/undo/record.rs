//! The record of what a patch replaced: one entry for each effect, in order.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use safe_fs::SavedAttributes;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use super::kept::Kept;

/// The most that a record may hold, in bytes.
pub const MOST_RECORD_BYTES: u64 = 64 << 20;

/// What a change takes beside its bytes, at least.
const OVERHEAD_BYTES: u64 = 64;

/// No record that was written has more; a forged one could fill the memory with
/// changes of a few bytes.
const MOST_CHANGES: u64 = MOST_RECORD_BYTES / OVERHEAD_BYTES;

/// The first bytes, with the format's version.
const MAGIC: &[u8] = b"sandpatch undo 1\n";

/// Why a record cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The replaced files are larger than what is kept.
    #[error("what the patch replaced is more than {MOST_RECORD_BYTES} bytes")]
    TooLarge,
    /// What is neither a file nor a link cannot be made again.
    #[error("it removed something that is neither a regular file nor a symbolic link")]
    Special,
    /// A replaced file could not be read.
    #[error("a replaced file could not be read: {0}")]
    Unreadable(safe_fs::Error),
    /// It could not be written.
    #[error("the record could not be written: {0}")]
    Write(io::Error),
    /// The bytes are no record.
    #[error("it is no record of an applied patch")]
    Malformed,
}

/// What one effect of a patch did to a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// The file or link at `from` got the name `to`.
    Rename {
        from: OsString,
        to: OsString,
        moved: Moved,
    },
    /// A new file took a name.
    Write {
        at: OsString,
        before: Before,
        after: Digest,
    },
    /// A name went.
    Remove { at: OsString, before: Before },
    /// A directory was made.
    MadeDirectory { at: OsString, dev: u64, ino: u64 },
}

/// What was at a place before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Before {
    Nothing,
    File {
        /// What it was.
        digest: Digest,
        content: Kept,
        /// Nothing where the new file took them over.
        attributes: Option<SavedAttributes>,
        /// How many names the file had.
        links: u64,
    },
    Link {
        target: OsString,
    },
}

/// Tells contents apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest {
    size_bytes: u64,
    hash: u128,
}

impl Digest {
    pub(crate) fn of(content: &[u8]) -> Self {
        Self {
            size_bytes: content.len() as u64,
            hash: XxHash3_128::oneshot(content),
        }
    }
}

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Moved {
    Link {
        target: OsString,
    },
    /// A file of this content.
    File(Digest),
    /// A file that is too large to be read for a move.
    LargeFile {
        dev: u64,
        ino: u64,
        size_bytes: u64,
        modified_ns: i128,
    },
}

/// What a patch replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    pub(crate) changes: Vec<Change>,
}

impl Recorded {
    /// Reads a record, whoever wrote it.
    ///
    /// # Errors
    ///
    /// [`RecordError::Malformed`], also when it was cut off.
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(RecordError::Malformed)?;
        match postcard::take_from_bytes::<u64>(rest) {
            Ok((count, _)) if count <= MOST_CHANGES => {}
            _ => return Err(RecordError::Malformed),
        }
        match postcard::take_from_bytes(rest) {
            Ok((changes, [])) => Ok(Self { changes }),
            _ => Err(RecordError::Malformed),
        }
    }

    /// Returns all places, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.changes.iter().flat_map(Change::paths)
    }

    /// Returns the places whose content has to be looked at.
    pub(crate) fn read_paths(&self) -> BTreeSet<&Path> {
        let read = |change: &'_ Change| match change {
            Change::Write { .. } | Change::Remove { .. } => true,
            Change::Rename { moved, .. } => matches!(moved, Moved::File(_)),
            Change::MadeDirectory { .. } => false,
        };
        let changes = self.changes.iter().filter(|change| read(change));
        changes.flat_map(Change::paths).collect()
    }

    /// Returns the attributes of what was replaced, by place.
    pub(crate) fn saved_attributes(&self) -> impl Iterator<Item = (&Path, &SavedAttributes)> {
        self.changes.iter().filter_map(|change| match change {
            Change::Write { at, before, .. } | Change::Remove { at, before } => match before {
                Before::File {
                    attributes: Some(attributes),
                    ..
                } => Some((Path::new(at), attributes)),
                _ => None,
            },
            _ => None,
        })
    }

    /// Returns the record's bytes.
    ///
    /// # Errors
    ///
    /// [`RecordError::TooLarge`].
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, RecordError> {
        let sizes = self.changes.iter().map(Change::size_bytes);
        if sizes.sum::<u64>() > MOST_RECORD_BYTES {
            return Err(RecordError::TooLarge);
        }
        let unwritable = |error| RecordError::Write(io::Error::other(error));
        postcard::to_extend(&self.changes, MAGIC.to_vec()).map_err(unwritable)
    }
}

impl Change {
    /// Returns about how much the change takes in a record.
    fn size_bytes(&self) -> u64 {
        let (path, before) = match self {
            Self::Write { at, before, .. } | Self::Remove { at, before } => (at, Some(before)),
            Self::Rename { to, .. } => (to, None),
            Self::MadeDirectory { at, .. } => (at, None),
        };
        let kept = match before {
            Some(Before::File { content, .. }) => content.size_bytes(),
            _ => 0,
        };
        kept + path.len() as u64 + OVERHEAD_BYTES
    }

    /// Returns the places that the change is about.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match self {
            Self::Rename { from, to, .. } => (from, Some(to)),
            Self::Write { at, .. } | Self::Remove { at, .. } | Self::MadeDirectory { at, .. } => {
                (at, None)
            }
        };
        [Some(one), other].into_iter().flatten().map(Path::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Recorded {
        Recorded {
            changes: vec![
                Change::Write {
                    at: "a".into(),
                    before: Before::File {
                        digest: Digest::of(b"old text"),
                        content: Kept::of(b"old text", b"new text"),
                        attributes: None,
                        links: 1,
                    },
                    after: Digest::of(b"new text"),
                },
                Change::Remove {
                    at: "l".into(),
                    before: Before::Link { target: "a".into() },
                },
            ],
        }
    }

    #[test]
    fn what_is_written_is_read_and_no_part_of_it() {
        let bytes = record().to_bytes().unwrap();
        assert_eq!(Recorded::parse(&bytes).unwrap(), record());
        for length in 0..bytes.len() {
            assert!(Recorded::parse(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Recorded::parse(&[&bytes[..], b"x"].concat()).is_err());
    }

    #[test]
    fn more_changes_than_can_be_written_are_not_read() {
        let change = Change::Remove {
            at: OsString::new(),
            before: Before::Nothing,
        };
        let of = |count: u64| {
            let changes = vec![change.clone(); usize::try_from(count).unwrap()];
            postcard::to_extend(&changes, MAGIC.to_vec()).unwrap()
        };
        assert!(Recorded::parse(&of(MOST_CHANGES)).is_ok());
        assert!(Recorded::parse(&of(MOST_CHANGES + 1)).is_err());
        // A length that is only claimed costs nothing.
        let claimed = postcard::to_extend(&u64::MAX, MAGIC.to_vec()).unwrap();
        assert!(Recorded::parse(&claimed).is_err());
    }

    #[test]
    fn too_much_is_not_recorded() {
        let content = vec![0; MOST_RECORD_BYTES as usize];
        let record = Recorded {
            changes: vec![Change::Remove {
                at: "a".into(),
                before: Before::File {
                    digest: Digest::of(b""),
                    content: Kept::of(&content, b""),
                    attributes: None,
                    links: 1,
                },
            }],
        };
        assert!(matches!(record.to_bytes(), Err(RecordError::TooLarge)));
    }
}
