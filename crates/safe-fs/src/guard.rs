//! Names that nothing may be changed at or below. A name can be spelt in
//! another case or be reached by another name (a link, a bind mount, a short
//! name of a foreign file system), so directories are compared by identity
//! and names without regard to ASCII case.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::fcntl::OFlag;

use crate::containment::Chain;
use crate::dir::Dir;
use crate::id::FileId;
use crate::sys;

/// Says at which depth below a root a name is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardDepth {
    /// Directly below a root.
    Top,
    /// At every depth.
    Any,
}

/// Guards a name; ASCII case does not matter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The name of the directory or file.
    pub name: OsString,
    /// Where the name is guarded.
    pub depth: GuardDepth,
}

/// Whether a directory is a root itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Root,
    Deeper,
}

pub(crate) struct Guards {
    guards: Vec<Guard>,
    /// Where guarded names directly below a root lead that are links.
    targets: Vec<Target>,
}

/// What a guarded link leads to, pinned so that its identity stays its own.
struct Target {
    _held: OwnedFd,
    id: FileId,
    guard: usize,
}

impl Guards {
    /// Takes the guards and pins what they lead to where they are links.
    pub(crate) fn new<'a>(
        guards: &[Guard],
        roots: impl Iterator<Item = &'a Dir>,
    ) -> io::Result<Self> {
        let mut targets = Vec::new();
        for root in roots {
            for (index, guard) in guards.iter().enumerate() {
                targets.extend(target(root, &guard.name, index)?);
            }
        }
        Ok(Self {
            guards: guards.to_vec(),
            targets,
        })
    }
    /// Guards a directory wherever it is, in the name of the first guard of that name.
    pub(crate) fn add_directory(&mut self, directory: OwnedFd, name: &OsStr) -> io::Result<()> {
        let id = FileId::of(&sys::stat_fd(directory.as_fd())?);
        let named = |guard: &Guard| guard.name == name;
        if let Some(guard) = self.guards.iter().position(named) {
            let _held = directory;
            self.targets.push(Target { _held, id, guard });
        }
        Ok(())
    }

    /// Returns the guards that hold for names in a directory at this level.
    fn at(&self, level: Level) -> impl Iterator<Item = &Guard> {
        self.guards
            .iter()
            .filter(move |guard| level == Level::Root || guard.depth == GuardDepth::Any)
    }

    /// Returns the guard that a name in a directory at this level meets.
    pub(crate) fn named(&self, level: Level, name: &OsStr) -> Option<&Guard> {
        self.at(level)
            .find(|guard| guard.name.eq_ignore_ascii_case(name))
    }

    /// Tells whether the names alone show that no guard is met.
    pub(crate) fn clear_of<'a>(&self, names: &mut impl Iterator<Item = &'a OsStr>) -> bool {
        self.targets.is_empty()
            && names.all(|name| is_plain(name) && self.named(Level::Root, name).is_none())
    }

    /// Returns the guard that a new or existing name beneath a chain meets.
    pub(crate) fn meets(
        &self,
        chain: &Chain,
        missing: &[OsString],
        last: &OsStr,
    ) -> io::Result<Option<&Guard>> {
        if let Some(guard) = self.above(chain)? {
            return Ok(Some(guard));
        }
        let mut level = chain.level();
        let mut first = Some(chain.dir());
        for name in missing.iter().map(OsString::as_os_str).chain([last]) {
            if let Some(guard) = self.named(level, name) {
                return Ok(Some(guard));
            }
            if let Some(dir) = first.take()
                && (!is_plain(name) || !self.targets.is_empty())
                && let Some(guard) = self.same_entry(dir, level, name)?
            {
                return Ok(Some(guard));
            }
            level = Level::Deeper;
        }
        Ok(None)
    }

    fn leading_to(&self, id: FileId) -> Option<&Guard> {
        let target = self.targets.iter().find(|target| target.id == id)?;
        self.guards.get(target.guard)
    }

    /// Returns the guard that one of the directories of a chain is.
    fn above(&self, chain: &Chain) -> io::Result<Option<&Guard>> {
        let names = chain.names();
        for (index, (child, parent, level)) in chain.pairs().enumerate() {
            if let Some(guard) = self.leading_to(child.id()) {
                return Ok(Some(guard));
            }
            if let Some(guard) = self.by_identity(parent, level, child.id())? {
                return Ok(Some(guard));
            }
            let named = match names.get(index) {
                Some(name) => self.named(level, name),
                None => self.by_listing(parent, level, child.id())?,
            };
            if named.is_some() {
                return Ok(named);
            }
        }
        Ok(None)
    }

    fn by_identity(&self, dir: &Dir, level: Level, id: FileId) -> io::Result<Option<&Guard>> {
        for guard in self.at(level) {
            if leads_to(dir, &guard.name)? == Some(id) {
                return Ok(Some(guard));
            }
        }
        Ok(None)
    }

    fn same_entry(&self, dir: &Dir, level: Level, name: &OsStr) -> io::Result<Option<&Guard>> {
        match identity(dir, name)? {
            Some(id) => match self.leading_to(id) {
                Some(guard) => Ok(Some(guard)),
                None => self.by_identity(dir, level, id),
            },
            None => Ok(None),
        }
    }

    /// Finds a directory's name among its siblings: for hosts without `/proc`.
    fn by_listing(&self, dir: &Dir, level: Level, id: FileId) -> io::Result<Option<&Guard>> {
        for name in sys::list(dir.as_fd())? {
            if let Some(guard) = self.named(level, &name)
                && identity(dir, &name)? == Some(id)
            {
                return Ok(Some(guard));
            }
        }
        Ok(None)
    }
}

fn identity(dir: &Dir, name: &OsStr) -> io::Result<Option<FileId>> {
    match sys::stat_at(dir.as_fd(), name) {
        Ok(stat) => Ok(Some(FileId::of(&stat))),
        Err(error) if sys::is(&error, libc::ENOENT) || sys::is(&error, libc::ENAMETOOLONG) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What a name is or leads to. A link that leads nowhere, or where we may not
/// go, hides nothing that we could reach.
fn leads_to(dir: &Dir, name: &OsStr) -> io::Result<Option<FileId>> {
    match sys::stat_target_at(dir.as_fd(), name) {
        Ok(stat) => Ok(Some(FileId::of(&stat))),
        Err(error) if is_nowhere(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Pins what a name leads to when it is a link.
fn target(root: &Dir, name: &OsStr, guard: usize) -> io::Result<Option<Target>> {
    let Some(link) = identity(root, name)? else {
        return Ok(None);
    };
    if leads_to(root, name)?.is_none_or(|id| id == link) {
        return Ok(None);
    }
    match sys::open_at(root.as_fd(), name, OFlag::O_PATH) {
        Ok(held) => {
            let id = FileId::of(&sys::stat_fd(held.as_fd())?);
            Ok(Some(Target {
                _held: held,
                id,
                guard,
            }))
        }
        Err(error) if is_nowhere(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_nowhere(error: &io::Error) -> bool {
    [
        libc::ENOENT,
        libc::ENOTDIR,
        libc::ELOOP,
        libc::EACCES,
        libc::ENAMETOOLONG,
    ]
    .iter()
    .any(|errno| sys::is(error, *errno))
}

/// Tells whether a name can only mean itself. Foreign file systems give files
/// a second, short name (`GIT~1`), drop trailing dots and spaces, fold letters
/// beyond ASCII or split at a colon.
fn is_plain(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    bytes.is_ascii()
        && !bytes.iter().any(|byte| matches!(byte, b'~' | b':' | b'\\'))
        && !matches!(bytes.last(), Some(b'.' | b' '))
}

/// Splits the kernel's own path of a directory into its last `count` names,
/// deepest first; nothing when it has fewer.
pub(crate) fn last_names(path: &OsStr, count: usize) -> Vec<OsString> {
    let names: Vec<_> = Path::new(path)
        .iter()
        .rev()
        .take(count)
        .map(OsStr::to_os_string)
        .collect();
    if names.len() == count {
        names
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_not_plain() {
        for name in [
            "GIT~1",
            ".git.",
            ".git ",
            ".git::$INDEX_ALLOCATION",
            ".g\u{131}t",
        ] {
            assert!(!is_plain(OsStr::new(name)), "{name}");
        }
        assert!(is_plain(OsStr::new("src.rs")));
    }

    #[test]
    fn case_and_depth_decide() {
        let guard = |name: &str, depth| Guard {
            name: name.into(),
            depth,
        };
        let guards = [
            guard(".git", GuardDepth::Any),
            guard("top", GuardDepth::Top),
        ];
        let guards = Guards::new(&guards, std::iter::empty()).unwrap();
        assert!(guards.named(Level::Deeper, OsStr::new(".GiT")).is_some());
        assert!(guards.named(Level::Root, OsStr::new("TOP")).is_some());
        assert!(guards.named(Level::Deeper, OsStr::new("top")).is_none());
    }
}
