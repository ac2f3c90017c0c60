//! What earlier runs hid, by inode: a later run hides it too where it has been
//! moved meanwhile.
//!
//! The record is one small file that is replaced as a whole. It only ever adds
//! to what is hidden, so losing it, or half of what two runs write at once,
//! costs protection against a move between runs and nothing else.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use sandbox_policy::AbsolutePath;
use sandbox_policy::facts::{Denial, FileId};

use super::directory::{self, Missing};
use super::{Base, NoState, Root, small_file};

const DIRECTORY: &str = "denied";
const NAME: &str = "inodes";

/// The most records that are kept, the oldest given up first.
const MOST: usize = 4_096;

/// What is read at most, in bytes.
const MOST_BYTES: u64 = 8 << 20;

/// The record, opened.
pub struct Denied {
    directory: OwnedFd,
}

impl Denied {
    /// Opens the directory of the record, which no root may hold.
    pub fn open(base: &Base, roots: &[Root], missing: Missing) -> Result<Self, NoState> {
        let uid = rustix::process::geteuid().as_raw();
        let directory = directory::open(base, DIRECTORY, roots, missing, uid)?;
        Ok(Self { directory })
    }

    /// Returns what is recorded; what cannot be read is nothing.
    pub fn read(&self) -> Vec<Denial> {
        let text = small_file::read(&self.directory, NAME, MOST_BYTES);
        text.map(|text| decode(&text)).unwrap_or_default()
    }

    /// Adds what a run hides, if it is not recorded yet.
    pub fn add(&self, known: &[Denial], denials: &[Denial]) -> std::io::Result<()> {
        let new: Vec<&Denial> = denials.iter().filter(|it| !known.contains(it)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let all: Vec<&Denial> = known.iter().chain(new).collect();
        let first = all.len().saturating_sub(MOST);
        small_file::replace(&self.directory, NAME, &encode(&all[first..]))
    }
}

/// Writes a line for each record: device, inode, birth, path; a path holds no
/// NUL, so that ends the line.
fn encode(denials: &[&Denial]) -> Vec<u8> {
    let mut text = Vec::new();
    for denial in denials {
        let born = denial
            .born_ns
            .map_or("-".to_owned(), |born| born.to_string());
        let numbers = format!("{} {} {born} ", denial.id.dev, denial.id.ino);
        text.extend_from_slice(numbers.as_bytes());
        text.extend_from_slice(denial.path.as_path().as_os_str().as_bytes());
        text.push(0);
    }
    text
}

/// Reads the lines that are whole.
fn decode(text: &[u8]) -> Vec<Denial> {
    let lines = text.split(|byte| *byte == 0);
    lines.filter_map(line).collect()
}

fn line(text: &[u8]) -> Option<Denial> {
    let mut fields = text.splitn(4, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(fields.next()?).ok();
    let (dev, ino) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let born_ns = match word()? {
        "-" => None,
        number => Some(number.parse().ok()?),
    };
    let path = OsString::from_vec(fields.next()?.to_vec());
    Some(Denial {
        path: AbsolutePath::new(path).ok()?,
        id: FileId { dev, ino },
        born_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(path: &str, ino: u64, born_ns: Option<i128>) -> Denial {
        let id = FileId { dev: 5, ino };
        let path = AbsolutePath::new(path).unwrap();
        Denial { path, id, born_ns }
    }

    #[test]
    fn records_survive() {
        let all = [
            denial("/a b\n/c", 7, Some(-3)),
            denial("/x", u64::MAX, None),
        ];
        let text = encode(&all.iter().collect::<Vec<_>>());
        assert_eq!(decode(&text), all);
        assert_eq!(decode(&text[..text.len() - 3]), all[..1]);
        assert_eq!(decode(b"5 x - /a\0garbage\0 \0\0"), []);
    }

    #[test]
    fn a_record_is_replaced_as_a_whole_and_bounded() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let base = Base {
            path: place.path().to_path_buf(),
            floor: place.path().to_path_buf(),
        };
        assert!(Denied::open(&base, &[], Missing::Report).is_err());
        let record = Denied::open(&base, &[], Missing::Make).unwrap();
        assert_eq!(record.read(), []);
        let many: Vec<Denial> = (0..MOST as u64 + 5)
            .map(|ino| denial("/a", ino, None))
            .collect();
        record.add(&[], &many).unwrap();
        assert_eq!(record.read(), many[5..]);
        let more = [denial("/b", 1, Some(1))];
        record.add(&record.read(), &more).unwrap();
        let read = record.read();
        assert_eq!((read.len(), read.last()), (MOST, more.last()));
        let names = std::fs::read_dir(place.path().join("sandpatch/denied")).unwrap();
        assert_eq!(names.count(), 1);
    }
}
