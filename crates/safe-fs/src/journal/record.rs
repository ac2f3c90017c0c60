//! The journal's format: a line that names it, its own identity, and then one
//! record for each intent. A record that is cut off was never acted on.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::id::{FileId, Stamp, Time};

/// The first line, with the format's version.
const MAGIC: &[u8] = b"sandpatch journal 1\n";

/// A place as a later run finds it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamedPlace {
    pub(crate) directory: OsString,
    /// Which directory it was: another one may have its name by now.
    pub(crate) directory_id: FileId,
    pub(crate) name: OsString,
}

impl NamedPlace {
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(&self.directory).join(&self.name)
    }

    /// Returns the place of another name in the same directory.
    pub(crate) fn beside(&self, name: OsString) -> Self {
        Self {
            directory: self.directory.clone(),
            directory_id: self.directory_id,
            name,
        }
    }
}

/// What is about to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Record {
    /// A file is staged under a temporary name.
    Stage { temporary: NamedPlace },
    /// A new inode gets a free name.
    Create { at: NamedPlace, new: Stamp },
    /// A new inode takes the place of another, which then has the temporary name.
    Replace {
        at: NamedPlace,
        temporary: OsString,
        new: Stamp,
        old: Stamp,
    },
    /// A name is moved to a temporary one.
    Remove {
        at: NamedPlace,
        temporary: OsString,
        old: Stamp,
    },
    /// A name is moved to a free one.
    Rename {
        from: NamedPlace,
        to: NamedPlace,
        moved: Stamp,
    },
    /// A directory is made.
    MakeDirectory { at: NamedPlace },
    /// A file is written in place.
    Rewrite {
        at: NamedPlace,
        file: Stamp,
        accessed: Time,
        old: Vec<u8>,
        new: Vec<u8>,
    },
    /// A directory goes at the very end, if it is empty then.
    RemoveDirectory { at: NamedPlace, directory: FileId },
    /// Everything is done; what was kept for the way back can go.
    Done,
}

impl Record {
    /// Returns the places that it names, but for temporary ones beside them.
    pub(crate) fn places(&self) -> impl Iterator<Item = &NamedPlace> {
        let (one, other) = match self {
            Self::Rename { from, to, .. } => (Some(from), Some(to)),
            Self::Stage { temporary: at }
            | Self::Create { at, .. }
            | Self::Replace { at, .. }
            | Self::Remove { at, .. }
            | Self::MakeDirectory { at }
            | Self::Rewrite { at, .. }
            | Self::RemoveDirectory { at, .. } => (Some(at), None),
            Self::Done => (None, None),
        };
        one.into_iter().chain(other)
    }

    /// Appends the record's bytes.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) -> io::Result<()> {
        let bytes = postcard::to_allocvec(self).map_err(io::Error::other)?;
        to.extend_from_slice(&bytes);
        Ok(())
    }
}

/// Returns the bytes that a journal begins with.
pub(super) fn header(own: Stamp) -> io::Result<Vec<u8>> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(postcard::to_allocvec(&own).map_err(io::Error::other)?);
    Ok(bytes)
}

/// The most records that are read: as many as a patch can have descriptors for, and more.
const MOST_RECORDS: usize = 1 << 20;

/// What a journal begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header<'b> {
    /// It was made and not written: what it begins with is written at once.
    Begun,
    /// It is no journal.
    Foreign,
    /// It names itself, and goes on.
    Named { own: Stamp, rest: &'b [u8] },
}

/// Reads the beginning of a journal, whoever wrote it.
pub(super) fn parse_header(bytes: &[u8]) -> Header<'_> {
    if bytes.is_empty() {
        return Header::Begun;
    }
    let header = bytes.strip_prefix(MAGIC).map(postcard::take_from_bytes);
    match header {
        Some(Ok((own, rest))) => Header::Named { own, rest },
        _ => Header::Foreign,
    }
}

/// Reads the records: whole ones, up to the one that says that all is done;
/// nothing when there are more than a transaction can have.
pub(super) fn parse_records(mut bytes: &[u8]) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while let Ok((record, rest)) = postcard::take_from_bytes::<Record>(bytes) {
        if records.len() == MOST_RECORDS {
            return None;
        }
        let is_last = record == Record::Done;
        records.push(record);
        if is_last {
            break;
        }
        bytes = rest;
    }
    Some(records)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamp(ino: u64) -> Stamp {
        Stamp {
            id: FileId { dev: 7, ino },
            birth: Some((1, 2)),
            size: 3,
            modified: (4, 5),
        }
    }

    fn place(name: &str) -> NamedPlace {
        NamedPlace {
            directory: "/ws/d".into(),
            directory_id: FileId { dev: 7, ino: 8 },
            name: name.into(),
        }
    }

    fn all() -> Vec<Record> {
        let old = stamp(1);
        let new = stamp(2);
        let temporary = OsString::from(".sandpatch-0-new");
        vec![
            Record::Stage {
                temporary: place(".sandpatch-0-new"),
            },
            Record::Create {
                at: place("a"),
                new,
            },
            Record::Replace {
                at: place("b"),
                temporary: temporary.clone(),
                new,
                old,
            },
            Record::Remove {
                at: place("c"),
                temporary,
                old,
            },
            Record::Rename {
                from: place("d"),
                to: place("e"),
                moved: old,
            },
            Record::MakeDirectory { at: place("f") },
            Record::Rewrite {
                at: place("g"),
                file: old,
                accessed: (6, 7),
                old: b"old".to_vec(),
                new: b"new".to_vec(),
            },
            Record::RemoveDirectory {
                at: place("h"),
                directory: old.id,
            },
            Record::Done,
        ]
    }

    fn parsed(bytes: &[u8]) -> Option<(Stamp, Vec<Record>)> {
        match parse_header(bytes) {
            Header::Named { own, rest } => Some((own, parse_records(rest)?)),
            Header::Begun | Header::Foreign => None,
        }
    }

    #[test]
    fn more_records_than_a_transaction_has_are_not_read() {
        let mut one = Vec::new();
        Record::MakeDirectory {
            at: NamedPlace {
                directory: OsString::new(),
                directory_id: FileId { dev: 0, ino: 0 },
                name: OsString::new(),
            },
        }
        .encode(&mut one)
        .unwrap();
        assert!(parse_records(&one.repeat(MOST_RECORDS)).is_some());
        assert!(parse_records(&one.repeat(MOST_RECORDS + 1)).is_none());
    }

    fn written() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header(stamp(9)).unwrap();
        let mut ends = vec![bytes.len()];
        for record in all() {
            record.encode(&mut bytes).unwrap();
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    #[test]
    fn what_is_written_is_read() {
        let (bytes, _) = written();
        assert_eq!(parsed(&bytes), Some((stamp(9), all())));
        // Behind the end nothing counts.
        let more = [&bytes[..], &bytes[bytes.len() - 20..]].concat();
        assert_eq!(parsed(&more), Some((stamp(9), all())));
    }

    /// A kill during the write leaves some prefix: whole records count, and no other.
    #[test]
    fn every_prefix_is_its_whole_records() {
        let (bytes, ends) = written();
        for length in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= length).count();
            match parse_header(&bytes[..length]) {
                Header::Begun => assert_eq!(length, 0),
                Header::Foreign => assert_eq!(whole, 0, "{length} bytes"),
                Header::Named { rest, .. } => {
                    assert_eq!(parse_records(rest).unwrap(), all()[..whole - 1]);
                }
            }
        }
    }

    /// A length that is only claimed costs nothing: all of it would not fit anywhere.
    #[test]
    fn a_claimed_length_is_not_believed() {
        let begun = header(stamp(9)).unwrap();
        let mut rewrite = Vec::new();
        all()[6].encode(&mut rewrite).unwrap();
        let at = rewrite.windows(4).position(|it| it == b"\x03old").unwrap();
        let huge = postcard::to_allocvec(&u64::MAX).unwrap();
        rewrite.splice(at..=at, huge);
        let bytes = [&begun[..], &rewrite].concat();
        assert_eq!(parsed(&bytes), Some((stamp(9), Vec::new())));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever stands there says the same when it is written again.
        #[test]
        fn any_bytes_are_read(
            random in prop::collection::vec(any::<u8>(), 0..200),
            small in prop::collection::vec(0..10_u8, 0..200),
            keeps in 0..400_usize,
        ) {
            let (written, _) = written();
            let kept = &written[..keeps.min(written.len())];
            for bytes in [&random[..], &[kept, &random].concat(), &[kept, &small].concat()] {
                if let Some((own, records)) = parsed(bytes) {
                    let mut again = header(own).unwrap();
                    for record in &records {
                        record.encode(&mut again).unwrap();
                    }
                    prop_assert_eq!(parsed(&again), Some((own, records)));
                }
            }
        }
    }

    #[test]
    fn other_files_are_foreign() {
        for text in [
            "x",
            "sandpatch journal 2\n",
            "#!/bin/sh\n",
            "sandpatch journal 1\nnotes",
        ] {
            assert_eq!(parse_header(text.as_bytes()), Header::Foreign, "{text}");
        }
    }
}
