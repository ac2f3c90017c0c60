//! What was found out about a bubblewrap, kept for the next run.
//!
//! The bytes come from a file that this crate does not know, and are believed
//! only for the very file, on the very boot, they were made for.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bubblewrap::features::Features;

/// The most candidates that are remembered.
const MOST: usize = 8;

/// Where it is kept; nobody else's bytes must come out of it.
pub trait FeatureCache {
    /// Returns what was kept last, if anything.
    fn load(&self) -> Option<Vec<u8>>;
    /// Keeps these bytes; when that fails, the next run asks again.
    fn store(&self, bytes: &[u8]);
}

/// Which file on which boot something is known of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    path: PathBuf,
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    boot: String,
}

impl Key {
    /// Returns the key of a file; `None` where it cannot be told apart.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        // Such a path has no place in the encoding.
        path.to_str()?;
        Some(Self {
            path: path.to_path_buf(),
            device: meta.dev(),
            inode: meta.ino(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            boot: boot.trim().to_owned(),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    key: Key,
    features: Features,
}

/// What is known, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Tells one layout of the bytes from another.
    layout: u32,
    known: Vec<Known>,
}

/// The layout of this version; it changes with [`Features`] and [`Key`].
const LAYOUT: u32 = 0x5350_0001;

impl Memory {
    /// Decodes what was kept; anything else is nothing.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        match postcard::from_bytes::<Self>(bytes) {
            Ok(memory) if memory.layout == LAYOUT && memory.known.len() <= MOST => memory,
            _ => Self {
                layout: LAYOUT,
                known: Vec::new(),
            },
        }
    }

    /// Returns what is known about a file.
    pub(crate) fn features(&self, key: &Key) -> Option<&Features> {
        let known = self.known.iter().find(|known| known.key == *key);
        known.map(|known| &known.features)
    }

    /// Adds to what is known, and returns the bytes to keep.
    pub(crate) fn with(mut self, key: Key, features: Features) -> Option<Vec<u8>> {
        self.known.retain(|known| known.key.path != key.path);
        self.known.push(Known { key, features });
        let surplus = self.known.len().saturating_sub(MOST);
        self.known.drain(..surplus);
        postcard::to_allocvec(&self).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str, inode: u64) -> Key {
        Key {
            path: path.into(),
            device: 1,
            inode,
            modified: (5, 6),
            changed: (7, 8),
            boot: "b".into(),
        }
    }

    fn features(version: &str) -> Features {
        Features {
            version: version.into(),
            ..Features::default()
        }
    }

    #[test]
    fn something_is_known_of_one_file_only() {
        let memory = Memory::decode(b"");
        let bytes = memory.with(key("/a", 1), features("1")).unwrap();
        let memory = Memory::decode(&bytes);
        assert_eq!(memory.features(&key("/a", 1)), Some(&features("1")));
        assert_eq!(memory.features(&key("/a", 2)), None);
        let later = Key {
            boot: "c".into(),
            ..key("/a", 1)
        };
        assert_eq!(memory.features(&later), None);
        let bytes = memory.with(key("/a", 2), features("2")).unwrap();
        let memory = Memory::decode(&bytes);
        assert_eq!(memory.features(&key("/a", 1)), None);
        assert_eq!(memory.features(&key("/a", 2)), Some(&features("2")));
    }

    #[test]
    fn foreign_bytes_are_nothing_and_the_oldest_go() {
        for bytes in [&b"garbage"[..], &[0xff; 40], b"\x01\x00"] {
            assert_eq!(Memory::decode(bytes).known, []);
        }
        let mut bytes = Vec::new();
        for inode in 0..MOST as u64 + 2 {
            let key = key(&format!("/{inode}"), inode);
            bytes = Memory::decode(&bytes).with(key, features("x")).unwrap();
        }
        let memory = Memory::decode(&bytes);
        assert_eq!(memory.known.len(), MOST);
        assert_eq!(memory.features(&key("/1", 1)), None);
        assert!(memory.features(&key("/2", 2)).is_some());
    }

    #[test]
    fn the_key_of_a_file_changes_with_it() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = place.path().join("x");
        std::fs::write(&file, "a").unwrap();
        let first = Key::of(&file).unwrap();
        assert_eq!(Key::of(&file), Some(first.clone()));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(Key::of(&file), None);
        std::fs::write(place.path().join("y"), "b").unwrap();
        std::fs::rename(place.path().join("y"), &file).unwrap();
        assert_ne!(Key::of(&file), Some(first));
    }
}
