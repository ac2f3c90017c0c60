//! Walks a path one component at a time, noting every link it crosses.
//!
//! The kernel resolves a path in one call, but does not tell which symbolic
//! links it followed, and it follows those that a sandboxed program may have
//! made. This walk reports each link and, once it is inside a root, can refuse
//! them.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use sandbox_policy::facts::FileId;

use crate::error::Errno;

/// The most links that one walk follows, as in the kernel.
const MAX_LINKS: usize = 40;

/// What to do with links inside a root.
#[derive(Clone, Copy)]
pub(crate) enum Links<'a> {
    /// Follow them.
    Follow,
    /// Refuse them below any of these directories.
    RefuseBelow(&'a [FileId]),
}

/// Something that a walk found.
pub(crate) struct Found {
    pub(crate) real: PathBuf,
    pub(crate) stat: Stat,
}

/// The result of a walk.
pub(crate) struct Walk {
    /// Links that were crossed: real path and identity.
    pub(crate) crossed: Vec<(PathBuf, FileId)>,
    /// What was reached, or the first real path that does not exist.
    pub(crate) end: Result<Found, PathBuf>,
}

/// Returns the identity in a `stat`.
pub(crate) fn id_of(stat: &Stat) -> FileId {
    FileId {
        dev: stat.st_dev,
        ino: stat.st_ino,
    }
}

struct Level {
    fd: OwnedFd,
    path: PathBuf,
    stat: Stat,
}

struct Walker<'a> {
    levels: Vec<Level>,
    pending: VecDeque<OsString>,
    crossed: Vec<(PathBuf, FileId)>,
    links: Links<'a>,
}

/// Walks an absolute path.
pub(crate) fn walk(path: &Path, links: Links<'_>) -> Result<Walk, Errno> {
    let root = open_level(CWD, OsStr::new("/"), PathBuf::from("/"))?;
    let pending = names(path);
    let mut walker = Walker {
        levels: vec![root],
        pending,
        crossed: Vec::new(),
        links,
    };
    while let Some(name) = walker.pending.pop_front() {
        if let Some(missing) = walker.enter(&name)? {
            return Ok(Walk {
                crossed: walker.crossed,
                end: Err(missing),
            });
        }
    }
    let last = walker.levels.pop().ok_or(Errno(libc::ENOENT))?;
    let found = Found {
        real: last.path,
        stat: last.stat,
    };
    Ok(Walk {
        crossed: walker.crossed,
        end: Ok(found),
    })
}

impl Walker<'_> {
    /// Takes one step; returns the path when nothing is there.
    fn enter(&mut self, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
        if name == ".." {
            if self.levels.len() > 1 {
                self.levels.pop();
            }
            return Ok(None);
        }
        let here = self.levels.last().ok_or(Errno(libc::ENOENT))?;
        let path = here.path.join(name);
        let level = match open_level(&here.fd, name, path.clone()) {
            Err(Errno(libc::ENOENT | libc::ENOTDIR)) => return Ok(Some(path)),
            other => other?,
        };
        if FileType::from_raw_mode(level.stat.st_mode) == FileType::Symlink {
            self.follow(&level)?;
        } else {
            self.levels.push(level);
        }
        Ok(None)
    }

    /// Puts the text of a link before what is left of the path.
    fn follow(&mut self, link: &Level) -> Result<(), Errno> {
        let refused = match self.links {
            Links::Follow => false,
            Links::RefuseBelow(roots) => self
                .levels
                .iter()
                .any(|level| roots.contains(&id_of(&level.stat))),
        };
        if refused || self.crossed.len() >= MAX_LINKS {
            return Err(Errno(libc::ELOOP));
        }
        self.crossed.push((link.path.clone(), id_of(&link.stat)));
        let text = PathBuf::from(OsString::from_vec(
            readlinkat(&link.fd, c"", Vec::new())?.into_bytes(),
        ));
        if text.is_absolute() {
            self.levels.truncate(1);
        }
        let mut pending = names(&text);
        pending.append(&mut self.pending);
        self.pending = pending;
        Ok(())
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    let parts = path.components();
    parts
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            _ => None,
        })
        .collect()
}

/// Opens a path without any right on its content.
pub(crate) fn open_path(path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

fn open_level(dir: impl std::os::fd::AsFd, name: &OsStr, path: PathBuf) -> Result<Level, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(dir, name.as_bytes(), flags, Mode::empty())?;
    let stat = fstat(&fd)?;
    Ok(Level { fd, path, stat })
}
