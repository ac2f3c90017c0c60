//! What the outer stage says about a transaction, behind what the sandboxed
//! stage wrote.
//!
//! The body is untrusted bytes. The header is written last, when no process of
//! the sandbox is left, and is found from the end of the file: so it is what the
//! outer stage wrote, whatever stands before it. One file, one name, and no
//! moment in which one exists without the other.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::SystemTime;

use apply_patch::report::ChangeKind;
use serde::{Deserialize, Serialize};

/// The version of the header and of the record as a whole.
const VERSION: u32 = 1;

/// How many changes are listed; the rest are counted.
pub const MOST_CHANGES: usize = 100;

/// What stands between the body and nothing: the header's length and these bytes.
const MAGIC: [u8; 8] = *b"sndpatch";

/// The size of length and magic, in bytes.
pub const END_BYTES: usize = 4 + MAGIC.len();

/// The largest header, in bytes.
pub const MOST_HEADER_BYTES: usize = 1 << 20;

/// A directory, as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its path without symbolic links.
    #[serde(with = "path")]
    pub path: PathBuf,
    /// Its device.
    pub dev: u64,
    /// Its inode.
    pub ino: u64,
}

/// One line of a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What happened.
    #[serde(with = "Kind")]
    pub kind: ChangeKind,
    /// To which path, as the patch spelled it.
    pub path: String,
}

/// The words that reports use for [`ChangeKind`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "ChangeKind", rename_all = "lowercase")]
enum Kind {
    Added,
    Modified,
    Deleted,
}

/// What is known about a transaction without trusting the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    version: u32,
    /// When it was applied, in seconds since 1970.
    pub time: u64,
    /// The directory that the patch was applied in.
    pub workspace: Place,
    /// Where it could write.
    pub roots: Vec<Place>,
    /// The dialect, by its name on the command line.
    pub dialect: String,
    /// The first lines of the summary, as far as they are known. The paths are the
    /// patch's: any text.
    pub changes: Vec<Change>,
    /// How many further ones there were.
    pub more_changes: usize,
}

impl Header {
    /// Describes a transaction that was applied now.
    pub fn now(
        workspace: Place,
        roots: Vec<Place>,
        dialect: String,
        mut changes: Vec<Change>,
    ) -> Self {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let more_changes = changes.len().saturating_sub(MOST_CHANGES);
        changes.truncate(MOST_CHANGES);
        Self {
            version: VERSION,
            // A clock before 1970 is not set.
            time: time.map_or(0, |time| time.as_secs()),
            workspace,
            roots,
            dialect,
            changes,
            more_changes,
        }
    }

    /// Encodes the header as the end of a record.
    ///
    /// # Errors
    ///
    /// When it does not fit into [`MOST_HEADER_BYTES`].
    pub fn encode(&self) -> Result<Vec<u8>, HeaderError> {
        let mut bytes = serde_json::to_vec(self)?;
        let length = match u32::try_from(bytes.len()) {
            Ok(length) if bytes.len() <= MOST_HEADER_BYTES => length,
            _ => return Err(HeaderError::TooLong(bytes.len())),
        };
        bytes.extend(length.to_le_bytes());
        bytes.extend(MAGIC);
        Ok(bytes)
    }

    /// Decodes the text of a header.
    pub fn decode(text: &[u8]) -> Result<Self, HeaderError> {
        let header: Self = serde_json::from_slice(text)?;
        match header.version {
            VERSION => Ok(header),
            version => Err(HeaderError::Version(version)),
        }
    }
}

/// Returns the length of the header that ends a record with these last bytes.
pub fn header_bytes(end: [u8; END_BYTES]) -> Result<usize, HeaderError> {
    let [a, b, c, d, magic @ ..] = end;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    match magic == MAGIC {
        true if length <= MOST_HEADER_BYTES => Ok(length),
        true => Err(HeaderError::TooLong(length)),
        false => Err(HeaderError::NoHeader),
    }
}

/// Says what is wrong with a header.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// The file does not end as a record does.
    #[error("the record has no header at its end")]
    NoHeader,
    /// It is too long.
    #[error("the header has {0} bytes")]
    TooLong(usize),
    /// It was written by a newer version.
    #[error("the record has version {0}, this sandpatch reads version {VERSION}")]
    Version(u32),
    /// It is not the text that it should be.
    #[error("the header is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Paths are bytes, and JSON has none: those that are no UTF-8 become numbers.
mod path {
    use super::{OsStrExt, OsString, OsStringExt, PathBuf};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(path: &std::path::Path, to: S) -> Result<S::Ok, S::Error> {
        let bytes = path.as_os_str().as_bytes();
        let form = match std::str::from_utf8(bytes) {
            Ok(text) => Form::Text(text.to_owned()),
            Err(_) => Form::Bytes(bytes.to_vec()),
        };
        form.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Form::deserialize(from)? {
            Form::Text(text) => PathBuf::from(text),
            Form::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(path: &[u8], changes: usize) -> Header {
        let place = Place {
            path: PathBuf::from(OsString::from_vec(path.to_vec())),
            dev: u64::MAX,
            ino: 1,
        };
        let change = |n: usize| Change {
            kind: ChangeKind::Modified,
            path: n.to_string(),
        };
        let changes = (0..changes).map(change).collect();
        Header::now(place.clone(), vec![place], "safe".into(), changes)
    }

    fn split(record: &[u8]) -> (&[u8], &[u8]) {
        let (rest, end) = record.split_at(record.len() - END_BYTES);
        let length = header_bytes(end.try_into().unwrap()).unwrap();
        rest.split_at(rest.len() - length)
    }

    #[test]
    fn headers_are_read_as_they_are_written() {
        for path in [&b"/a b"[..], b"/\xff\xfe", b"/\"\\\n"] {
            let written = header(path, 2);
            let mut record = b"body".to_vec();
            record.extend(written.encode().unwrap());
            let (body, text) = split(&record);
            assert_eq!(body, b"body");
            assert_eq!(Header::decode(text).unwrap(), written);
        }
    }

    #[test]
    fn many_changes_are_counted() {
        let header = header(b"/a", MOST_CHANGES + 5);
        assert_eq!(
            (header.changes.len(), header.more_changes),
            (MOST_CHANGES, 5)
        );
    }

    #[test]
    fn what_is_no_header_is_refused() {
        assert!(matches!(
            header_bytes([0; END_BYTES]),
            Err(HeaderError::NoHeader)
        ));
        let mut end = [0xff; END_BYTES];
        end[4..].copy_from_slice(&MAGIC);
        assert!(matches!(header_bytes(end), Err(HeaderError::TooLong(_))));
        assert!(matches!(
            Header::decode(b"{}"),
            Err(HeaderError::Malformed(_))
        ));
        let mut newer = header(b"/a", 0);
        newer.version = 2;
        let text = serde_json::to_vec(&newer).unwrap();
        assert!(matches!(
            Header::decode(&text),
            Err(HeaderError::Version(2))
        ));
        let mut long = header(b"/a", 0);
        long.dialect = "x".repeat(MOST_HEADER_BYTES);
        assert!(matches!(long.encode(), Err(HeaderError::TooLong(_))));
    }
}
