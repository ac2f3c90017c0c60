//! A tree with its hard links, for the question "entirely old or entirely new".

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Snapshot;

/// What every name that sandpatch makes for itself begins with.
const OWN_PREFIX: &str = ".sandpatch-";

/// Every name below a directory, and which of them are the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    names: Snapshot,
    /// The names of each file that has several, in this tree.
    linked: BTreeSet<Vec<PathBuf>>,
}

impl Tree {
    /// Looks at everything below `root`; links are not followed.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        let names = Snapshot::of(root);
        let mut by_inode: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
        for name in names.0.keys() {
            let meta = fs::symlink_metadata(root.join(name)).expect("lstat");
            let same = by_inode.entry((meta.dev(), meta.ino())).or_default();
            same.push(name.clone());
        }
        let linked = by_inode.into_values().filter(|same| same.len() > 1);
        Self {
            names,
            linked: linked.collect(),
        }
    }

    /// What differs from `other`, one line each; empty when nothing does.
    #[must_use]
    pub fn difference(&self, other: &Self) -> String {
        let mut text = self.names.difference(&other.names);
        for same in self.linked.symmetric_difference(&other.linked) {
            text.push_str(&format!("one file in one tree only: {same:?}\n"));
        }
        text
    }

    /// Says what differs from whichever of two trees is nearer; empty when this
    /// is one of them.
    #[must_use]
    pub fn neither(&self, old: &Self, new: &Self) -> String {
        let (from_old, from_new) = (old.difference(self), new.difference(self));
        match from_old.len().min(from_new.len()) {
            0 => String::new(),
            length if length == from_old.len() => format!("nearer to the old tree:\n{from_old}"),
            _ => format!("nearer to the new tree:\n{from_new}"),
        }
    }

    /// The names that sandpatch left behind.
    #[must_use]
    pub fn litter(&self) -> Vec<&Path> {
        let is_own = |path: &&PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(OWN_PREFIX))
        };
        let names = self.names.0.keys().filter(is_own);
        names.map(PathBuf::as_path).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_bytes_links_and_litter() {
        let top = crate::place::top();
        let path = |name: &str| top.path().join(name);
        fs::create_dir(path("d")).expect("mkdir");
        fs::write(path("one"), "1").expect("write");
        fs::write(path("two"), "1").expect("write");
        let apart = Tree::of(top.path());
        assert_eq!(apart.difference(&Tree::of(top.path())), "");
        fs::remove_file(path("two")).expect("remove");
        fs::hard_link(path("one"), path("two")).expect("link");
        let together = Tree::of(top.path());
        assert!(apart.difference(&together).contains("\"one\", \"two\""));
        assert!(together.litter().is_empty());
        fs::write(path("d/.sandpatch-0-new"), "").expect("write");
        let littered = Tree::of(top.path());
        assert_eq!(littered.litter(), [Path::new("d/.sandpatch-0-new")]);
        assert!(!together.difference(&littered).is_empty());
    }
}
