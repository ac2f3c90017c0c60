//! One spelling per path.
//!
//! Rules are compared as strings of components, so a path must have exactly one
//! spelling before it becomes part of a policy. `..` is refused rather than
//! resolved: beside symbolic links it has no lexical meaning.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// An absolute path in lexically normal form: bytes, no `.`, `..`, `//` or
/// trailing slash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "OsString", into = "OsString")]
pub struct AbsolutePath(PathBuf);

/// Says why a path cannot be part of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path does not start at `/`.
    #[error("path {0:?} is not absolute")]
    Relative(PathBuf),
    /// The path contains `..`.
    #[error("path {0:?} contains `..`")]
    ParentComponent(PathBuf),
    /// The path contains a NUL byte.
    #[error("path {0:?} contains a NUL byte")]
    Nul(PathBuf),
}

impl AbsolutePath {
    /// Validates and normalises a path.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, PathError> {
        let path = path.as_ref();
        if !path.is_absolute() {
            return Err(PathError::Relative(path.into()));
        }
        if path.as_os_str().as_bytes().contains(&0) {
            return Err(PathError::Nul(path.into()));
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(PathError::ParentComponent(path.into()));
        }
        Ok(Self(path.components().collect()))
    }

    /// Returns the root directory, `/`.
    pub fn filesystem_root() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Returns a path made of names that are known to be good.
    pub(crate) fn of_kernel(path: &'static str) -> Self {
        Self(PathBuf::from(path))
    }

    /// Appends one entry name; a name with `/` or NUL, `.` and `..` are refused.
    pub fn child(&self, name: &OsStr) -> Result<Self, PathError> {
        let mut parts = Path::new(name).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(part)), None) if part == name => Self::new(self.0.join(name)),
            _ => Err(PathError::ParentComponent(self.0.join(name))),
        }
    }

    /// Borrows the path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Returns the last component, or `None` for `/`.
    pub fn file_name(&self) -> Option<&OsStr> {
        self.0.file_name()
    }

    /// Returns the directory above, or `None` for `/`.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|parent| Self(parent.into()))
    }

    /// Tells whether this path is `other` or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Tells whether this path lies below `other` and is not `other`.
    pub fn is_below(&self, other: &Self) -> bool {
        self != other && self.is_within(other)
    }

    /// Returns the number of components below `/`.
    pub fn depth(&self) -> usize {
        self.0.components().count() - 1
    }

    /// Returns the directories strictly between `above` and this path, the
    /// broadest first; empty when this path is not below `above`.
    pub fn between(&self, above: &Self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut next = self.parent();
        while let Some(path) = next.filter(|path| path.is_below(above)) {
            next = path.parent();
            found.push(path);
        }
        found.reverse();
        found
    }
}

impl TryFrom<OsString> for AbsolutePath {
    type Error = PathError;

    fn try_from(text: OsString) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl From<AbsolutePath> for OsString {
    fn from(path: AbsolutePath) -> Self {
        path.0.into_os_string()
    }
}

impl AsRef<Path> for AbsolutePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Debug for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsolutePath {
        AbsolutePath::new(text).unwrap()
    }

    #[test]
    fn has_one_spelling() {
        assert_eq!(path("//a/./b//c/").as_path().as_os_str(), "/a/b/c");
        assert_eq!(path("/").as_path().as_os_str(), "/");
    }

    #[test]
    fn refuses_what_has_no_lexical_meaning() {
        assert!(matches!(
            AbsolutePath::new("a"),
            Err(PathError::Relative(_))
        ));
        assert!(matches!(
            AbsolutePath::new("/a/../b"),
            Err(PathError::ParentComponent(_))
        ));
        assert!(matches!(AbsolutePath::new("/a\0b"), Err(PathError::Nul(_))));
        for bad in ["", ".", "..", "a/b", "/a", "a/"] {
            assert!(path("/x").child(OsStr::new(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn compares_by_component() {
        assert!(path("/a/b").is_within(&path("/a")));
        assert!(!path("/ab").is_within(&path("/a")));
        assert!(!path("/a").is_below(&path("/a")));
        assert_eq!(
            path("/a/b/c/d").between(&path("/a")),
            [path("/a/b"), path("/a/b/c")]
        );
        assert_eq!(path("/a/b").between(&path("/x")), []);
        assert_eq!((path("/").depth(), path("/a/b").depth()), (0, 2));
    }
}
