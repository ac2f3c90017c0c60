//! A tree as a value: every name with its kind, mode and bytes.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// What stands at one name.
#[derive(Clone, PartialEq, Eq)]
pub enum Node {
    /// A regular file and its bytes.
    File(Vec<u8>),
    /// A directory.
    Dir,
    /// A symbolic link and its text.
    Link(PathBuf),
    /// Anything else: `p` FIFO, `s` socket, `c` or `b` device.
    Special(char),
}

impl Node {
    /// The letter of the kind, as manifests spell it.
    #[must_use]
    pub fn letter(&self) -> char {
        match self {
            Self::File(_) => 'f',
            Self::Dir => 'd',
            Self::Link(_) => 'l',
            Self::Special(letter) => *letter,
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(bytes) => write!(
                out,
                "file {:?}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
            ),
            Self::Dir => out.write_str("dir"),
            Self::Link(target) => write!(out, "link to {}", target.display()),
            Self::Special(letter) => write!(out, "special {letter}"),
        }
    }
}

/// One name's node with its permission bits and owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub node: Node,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
}

/// Every name below a directory, by relative path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<PathBuf, Entry>);

impl Snapshot {
    /// Takes the snapshot of everything below `root`; links are not followed.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        let mut entries = BTreeMap::new();
        collect(root, root, &mut entries);
        Self(entries)
    }

    /// The names that differ from `other`, one line each; empty when equal.
    #[must_use]
    pub fn difference(&self, other: &Self) -> String {
        let names = self.0.keys().chain(other.0.keys());
        let mut lines: Vec<String> = names
            .filter(|name| self.0.get(*name) != other.0.get(*name))
            .map(|name| {
                let (before, after) = (self.0.get(name), other.0.get(name));
                format!("{}: {before:?} became {after:?}\n", name.display())
            })
            .collect();
        lines.sort();
        lines.dedup();
        lines.concat()
    }
}

fn collect(root: &Path, dir: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    let listing =
        fs::read_dir(dir).unwrap_or_else(|error| panic!("list {}: {error}", dir.display()));
    for path in listing.map(|entry| entry.expect("entry").path()) {
        let meta = fs::symlink_metadata(&path).expect("lstat");
        let node = node_at(&path, meta.file_type());
        if node == Node::Dir {
            collect(root, &path, entries);
        }
        let relative = path.strip_prefix(root).expect("below root").to_owned();
        let (mode, uid) = (meta.mode() & 0o7777, meta.uid());
        entries.insert(relative, Entry { node, mode, uid });
    }
}

fn node_at(path: &Path, kind: fs::FileType) -> Node {
    match kind {
        kind if kind.is_file() => Node::File(fs::read(path).expect("read")),
        kind if kind.is_dir() => Node::Dir,
        kind if kind.is_symlink() => Node::Link(fs::read_link(path).expect("readlink")),
        kind if kind.is_fifo() => Node::Special('p'),
        kind if kind.is_socket() => Node::Special('s'),
        kind if kind.is_char_device() => Node::Special('c'),
        _ => Node::Special('b'),
    }
}
