//! Patterns of file names that must not be read.
//!
//! A pattern is expanded when a run begins: what matches then is hidden, hidden
//! and ignored files like all others. A file that comes up later is not.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobMatcher};

use crate::path::{AbsolutePath, PathError};

/// Says why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobError {
    /// The part before the first special character is no usable path.
    #[error(transparent)]
    Base(#[from] PathError),
    /// The pattern itself is malformed.
    #[error("pattern {0}")]
    Pattern(#[from] globset::Error),
    /// Patterns are text.
    #[error("pattern {0:?} is not UTF-8")]
    NotText(PathBuf),
}

/// A pattern of denied paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobRule {
    base: AbsolutePath,
    glob: Glob,
}

impl GlobRule {
    /// Reads an absolute pattern: `*` stays within one name, `**` does not.
    pub fn new(pattern: &Path) -> Result<Self, GlobError> {
        let text = pattern.to_str();
        let text = text.ok_or_else(|| GlobError::NotText(pattern.into()))?;
        let plain = pattern
            .components()
            .take_while(|part| !is_pattern(part.as_os_str()));
        let base = AbsolutePath::new(plain.collect::<PathBuf>())?;
        let glob = GlobBuilder::new(text).literal_separator(true).build()?;
        Ok(Self { base, glob })
    }

    /// Returns the directory that holds whatever matches.
    pub fn base(&self) -> &AbsolutePath {
        &self.base
    }

    /// Compiles the pattern.
    pub fn matcher(&self) -> GlobMatcher {
        self.glob.compile_matcher()
    }
}

/// Tells whether a text has characters that make it a pattern.
pub fn is_pattern(text: &OsStr) -> bool {
    text.as_bytes()
        .iter()
        .any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_by_component() {
        let rule = GlobRule::new(Path::new("/w/a/**/.env")).unwrap();
        assert_eq!(rule.base(), &AbsolutePath::new("/w/a").unwrap());
        let matches = |path: &[u8]| rule.matcher().is_match(OsStr::from_bytes(path));
        for hit in ["/w/a/.env", "/w/a/b/.hid/.env", "/w/a/node_modules/.env"] {
            assert!(matches(hit.as_bytes()), "{hit}");
        }
        assert!(matches(b"/w/a/\xff/.env"));
        for miss in ["/w/.env", "/w/a/x.env", "/w/a/.env/x", "/w/ab/.env"] {
            assert!(!matches(miss.as_bytes()), "{miss}");
        }
        let one = GlobRule::new(Path::new("/w/*.key")).unwrap().matcher();
        assert!(one.is_match("/w/a.key") && !one.is_match("/w/b/a.key"));
    }

    #[test]
    fn bad_patterns_say_why() {
        assert!(matches!(
            GlobRule::new(Path::new("a/*")),
            Err(GlobError::Base(_))
        ));
        assert!(matches!(
            GlobRule::new(Path::new("/a/[")),
            Err(GlobError::Pattern(_))
        ));
        let bytes = OsStr::from_bytes(b"/\xff/*");
        assert!(matches!(
            GlobRule::new(Path::new(bytes)),
            Err(GlobError::NotText(_))
        ));
    }
}
