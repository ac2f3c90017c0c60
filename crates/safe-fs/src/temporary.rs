//! Temporary names: unguessable, so that nobody can hold one ready, and never
//! taken over something that exists.

use std::ffi::{OsStr, OsString};
use std::io;

use crate::dir::Dir;
use crate::sys;

/// What every temporary name begins with, for whoever looks for litter.
pub const TEMPORARY_PREFIX: &str = ".sandpatch-";

/// Makes a name from 64 random bits and a suffix that says what it is for.
pub(crate) fn name(suffix: &str) -> io::Result<OsString> {
    Ok(format!("{TEMPORARY_PREFIX}{:016x}{suffix}", sys::random()?).into())
}

/// Returns the name that keeps the old file while a new one has this name.
pub(crate) fn aside_of(name: &OsStr) -> OsString {
    let mut aside = name.to_os_string();
    aside.push("-old");
    aside
}

/// Tells whether a name has the shape of a temporary one.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    const SUFFIXES: [&[u8]; 3] = [b"-new", b"-old", b"-new-old"];
    let random = name.strip_prefix(TEMPORARY_PREFIX.as_bytes());
    random
        .and_then(|rest| rest.split_at_checked(16))
        .is_some_and(|(digits, suffix)| {
            digits.iter().all(u8::is_ascii_hexdigit) && SUFFIXES.contains(&suffix)
        })
}

/// A name that disappears with its owner unless it is kept.
#[derive(Debug)]
pub(crate) struct Temporary {
    pub(crate) dir: Dir,
    pub(crate) name: OsString,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Remove,
    Keep,
}

impl Temporary {
    /// Takes charge of a name that exists now.
    pub(crate) fn new(dir: Dir, name: OsString) -> Self {
        Self {
            dir,
            name,
            fate: Fate::Remove,
        }
    }

    /// Gives the name away: to a step, or to its final place.
    pub(crate) fn keep(mut self) -> Held {
        self.fate = Fate::Keep;
        Held {
            dir: self.dir.clone(),
            name: std::mem::take(&mut self.name),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.fate == Fate::Remove {
            // Nothing can be told from a drop; a name that cannot be removed
            // is found by its prefix later.
            let _ = sys::unlink_at(std::os::fd::AsFd::as_fd(&self.dir), &self.name);
        }
    }
}

/// A name in a directory, held by a step.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) dir: Dir,
    pub(crate) name: OsString,
}

impl Held {
    /// Returns directory and name for a call.
    pub(crate) fn pair(&self) -> (std::os::fd::BorrowedFd<'_>, &OsStr) {
        sys::pair(&self.dir, &self.name)
    }
}

/// Moves a name and never replaces one: `RENAME_NOREPLACE`, or where the file
/// system lacks it, a second link and the removal of the first.
pub(crate) fn move_new(
    from: (std::os::fd::BorrowedFd<'_>, &OsStr),
    to: (std::os::fd::BorrowedFd<'_>, &OsStr),
) -> io::Result<()> {
    match sys::rename_new(from, to) {
        Err(error) if sys::lacks_rename_flag(&error) => link_and_unlink(from, to),
        result => result,
    }
}

fn link_and_unlink(
    from: (std::os::fd::BorrowedFd<'_>, &OsStr),
    to: (std::os::fd::BorrowedFd<'_>, &OsStr),
) -> io::Result<()> {
    sys::link_at(from, to)?;
    sys::unlink_at(from.0, from.1).inspect_err(|_| {
        let _ = sys::unlink_at(to.0, to.1);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::path::Path;

    #[test]
    fn names_differ_and_have_the_shape() {
        let (one, other) = (name("-old").unwrap(), name("-old").unwrap());
        assert_ne!(one, other);
        assert!(is_temporary(one.as_encoded_bytes()));
        assert!(is_temporary(
            aside_of(&name("-new").unwrap()).as_encoded_bytes()
        ));
        for other in [
            ".sandpatch-journal",
            ".sandpatch-",
            ".sandpatch-0123456789abcdef",
            "a",
        ] {
            assert!(!is_temporary(other.as_bytes()), "{other}");
        }
        let text = one.into_string().unwrap();
        let middle = text
            .strip_prefix(".sandpatch-")
            .unwrap()
            .strip_suffix("-old")
            .unwrap();
        assert!(middle.len() == 16 && middle.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn link_and_unlink_never_replaces() {
        let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        std::fs::write(temp.path().join("a"), "a").unwrap();
        std::fs::write(temp.path().join("b"), "b").unwrap();
        let dir = Dir::from_fd(sys::open(Path::new(temp.path()), sys::PIN_DIRECTORY).unwrap());
        let dir = dir.unwrap();
        let pair = |name: &'static str| (dir.as_fd(), OsStr::new(name));
        let error = link_and_unlink(pair("a"), pair("b")).unwrap_err();
        assert!(sys::is(&error, libc::EEXIST));
        link_and_unlink(pair("a"), pair("c")).unwrap();
        assert!(!temp.path().join("a").exists());
        assert_eq!(std::fs::read(temp.path().join("c")).unwrap(), b"a");
    }
}
