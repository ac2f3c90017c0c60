//! Paths taken apart: validated once, so that later code meets no odd cases.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::error::ErrorKind;

/// One component on the way to the parent directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// `..`
    Up,
    /// A name.
    Name(OsString),
}

/// A path as the way to a parent directory and one last name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) absolute: bool,
    pub(crate) parents: Vec<Part>,
    pub(crate) last: OsString,
}

impl Parts {
    /// Takes a path apart; refuses what cannot name a file.
    pub(crate) fn parse(path: &Path) -> Result<Self, ErrorKind> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&0) {
            return Err(ErrorKind::InvalidName);
        }
        let mut parents = split(path);
        let (last, rest) = match bytes.rsplit(|byte| *byte == b'/').next() {
            Some(b"" | b"." | b"..") | None => (None, bytes),
            Some(name) => (parents.pop(), name),
        };
        match last {
            Some(Part::Name(last)) => Ok(Self {
                absolute: path.is_absolute(),
                parents,
                last,
            }),
            _ if rest.ends_with(b"/") && !parents.is_empty() => Err(ErrorKind::TrailingSlash),
            _ => Err(ErrorKind::IsADirectory),
        }
    }

    /// Tells whether `..` is among the parents.
    pub(crate) fn goes_up(&self) -> bool {
        self.parents.contains(&Part::Up)
    }

    /// Returns the parents' names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.parents.iter().filter_map(|part| match part {
            Part::Up => None,
            Part::Name(name) => Some(name.as_os_str()),
        })
    }

    /// Returns the parents as one path for the kernel; `.` when there are none.
    pub(crate) fn parent_path(&self) -> PathBuf {
        let mut path = PathBuf::from(if self.absolute { "/" } else { "." });
        for part in &self.parents {
            path.push(match part {
                Part::Up => OsStr::new(".."),
                Part::Name(name) => name,
            });
        }
        path
    }
}

/// Splits a path at its slashes; empty components and `.` say nothing.
pub(crate) fn split(path: &Path) -> Vec<Part> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(Part::Name(name.to_os_string())),
            Component::ParentDir => Some(Part::Up),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

/// Joins a path to a base and removes `.` and `..` by name only: for messages.
pub(crate) fn lexical(base: &Path, path: &Path) -> PathBuf {
    let mut joined = PathBuf::from("/");
    for component in base.join(path).components() {
        match component {
            Component::Normal(name) => joined.push(name),
            Component::ParentDir => {
                joined.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_name_a_file_is_refused() {
        for (path, kind) in [
            ("", ErrorKind::IsADirectory),
            ("/", ErrorKind::IsADirectory),
            (".", ErrorKind::IsADirectory),
            ("a/.", ErrorKind::IsADirectory),
            ("a/..", ErrorKind::IsADirectory),
            ("a/", ErrorKind::TrailingSlash),
            ("a/../", ErrorKind::TrailingSlash),
            ("a\0b", ErrorKind::InvalidName),
        ] {
            assert_eq!(Parts::parse(Path::new(path)), Err(kind), "{path:?}");
        }
    }

    #[test]
    fn parents_and_last_are_told_apart() {
        let parts = Parts::parse(Path::new("a/./..//b/c")).unwrap();
        assert_eq!(parts.last, "c");
        assert!(parts.goes_up() && !parts.absolute);
        assert_eq!(parts.parent_path(), Path::new("./a/../b"));
        let parts = Parts::parse(Path::new("/c")).unwrap();
        assert_eq!(parts.parent_path(), Path::new("/"));
    }

    #[test]
    fn messages_show_no_dots() {
        assert_eq!(
            lexical(Path::new("/w/x"), Path::new("../a/./b")),
            Path::new("/w/a/b")
        );
        assert_eq!(
            lexical(Path::new("/w"), Path::new("/../e")),
            Path::new("/e")
        );
    }
}
