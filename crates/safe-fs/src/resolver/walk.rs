//! Resolution component by component: each directory is pinned, each link is
//! read from its pinned inode, and `..` goes back to the directory that was
//! pinned before. Nothing is looked up twice, so nothing can be swapped
//! between two looks.
//!
//! The path is a queue of components; a link's target takes the place of its
//! name in the queue. `..` leaves a directory that is not there (or that is a
//! file) by name alone, since no link can hide in it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sys::stat::{FileStat, SFlag};

use super::{Found, Hop, Proof, Start, filesystem_root};
use crate::dir::Dir;
use crate::error::{Context, Error, ErrorKind, LinkHop, Operation};
use crate::parts::{Part, Parts, split};
use crate::sys;

/// As many links as the kernel follows (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// Pins the parent directory of a path, or its deepest part that exists.
pub(super) fn parent(start: &Start<'_>, parts: &Parts) -> Result<Found, Error> {
    let mut walk = Walk {
        op: start.op,
        stack: vec![Level {
            dir: start.dir.clone(),
            path: start.path.to_path_buf(),
        }],
        missing: Vec::new(),
        queue: Vec::new(),
        hops: Vec::new(),
    };
    if parts.absolute {
        walk.restart_at_root()?;
    }
    walk.enqueue(parts.parents.clone(), Origin::Path);
    while let Some(next) = walk.queue.pop() {
        walk.step(next)?;
    }
    let dir = walk.top()?.dir.clone();
    Ok(Found {
        dir,
        missing: walk.missing,
        proof: Proof::Needed,
        hops: walk.hops,
    })
}

struct Level {
    dir: Dir,
    path: PathBuf,
}

/// Where a component was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// In the path: what is missing can be made.
    Path,
    /// In a link: what is missing makes the link dangle.
    Link,
}

struct Walk {
    op: Operation,
    stack: Vec<Level>,
    missing: Vec<OsString>,
    queue: Vec<(Part, Origin)>,
    hops: Vec<Hop>,
}

impl Walk {
    fn enqueue(&mut self, parts: Vec<Part>, origin: Origin) {
        self.queue
            .extend(parts.into_iter().rev().map(|part| (part, origin)));
    }

    fn restart_at_root(&mut self) -> Result<(), Error> {
        let path = PathBuf::from("/");
        let dir = filesystem_root().during(self.op, &path)?;
        self.stack = vec![Level { dir, path }];
        Ok(())
    }

    fn top(&self) -> Result<&Level, Error> {
        self.stack
            .last()
            .ok_or_else(|| Error::new(self.op, Path::new("."), ErrorKind::Os))
    }

    fn step(&mut self, (part, origin): (Part, Origin)) -> Result<(), Error> {
        match part {
            Part::Up if self.missing.pop().is_some() => Ok(()),
            Part::Up => self.go_up(),
            Part::Name(name) if self.missing.is_empty() => self.go_down(name, origin),
            Part::Name(name) => {
                self.missing.push(name);
                Ok(())
            }
        }
    }

    fn go_up(&mut self) -> Result<(), Error> {
        if self.stack.len() > 1 {
            self.stack.pop();
            return Ok(());
        }
        let top = self.top()?;
        let path = top.path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let dir = top.dir.parent().during(self.op, &top.path)?;
        self.stack = vec![Level { dir, path }];
        Ok(())
    }

    fn go_down(&mut self, name: OsString, origin: Origin) -> Result<(), Error> {
        let (top, op) = (self.top()?, self.op);
        let path = top.path.join(&name);
        let fd = match sys::open_at(top.dir.as_fd(), &name, sys::PIN_ANYTHING) {
            Ok(fd) => fd,
            Err(error) if sys::is(&error, libc::ENOENT) => return self.note_missing(name, origin),
            Err(error) => return Err(error).during(op, &path),
        };
        let stat = sys::stat_fd(fd.as_fd()).during(op, &path)?;
        match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFDIR => {
                let dir = Dir::from_fd(fd).during(op, &path)?;
                self.stack.push(Level { dir, path });
                Ok(())
            }
            SFlag::S_IFLNK => self.follow(fd, &stat, path),
            _ => self.leave_file(&path, origin),
        }
    }

    fn note_missing(&mut self, name: OsString, origin: Origin) -> Result<(), Error> {
        match (origin, self.hops.last()) {
            (Origin::Link, Some(hop)) => {
                Err(Error::new(self.op, &hop.link.link, ErrorKind::NotFound))
            }
            _ => {
                self.missing.push(name);
                Ok(())
            }
        }
    }

    /// `file/..` is where the file is; `file/x` is nowhere.
    fn leave_file(&mut self, path: &Path, origin: Origin) -> Result<(), Error> {
        if origin == Origin::Path
            && let Some((Part::Up, Origin::Path)) = self.queue.last()
        {
            self.queue.pop();
            return Ok(());
        }
        Err(Error::new(self.op, path, ErrorKind::NotADirectory))
    }

    fn follow(&mut self, fd: OwnedFd, stat: &FileStat, path: PathBuf) -> Result<(), Error> {
        let op = self.op;
        if self.hops.len() >= MAX_LINKS {
            return Err(Error::new(op, &path, ErrorKind::Loop));
        }
        let target = sys::read_link(fd.as_fd()).during(op, &path)?;
        let link = LinkHop { link: path, target };
        if is_on_procfs(fd.as_fd()).during(op, &link.link)? {
            return Err(Error::new(
                op,
                &link.link.clone(),
                ErrorKind::Outside { via: Some(link) },
            ));
        }
        let dir = self.top()?.dir.clone();
        if is_planted(&dir, stat).during(op, &link.link)? {
            return Err(Error::new(op, &link.link, ErrorKind::PermissionDenied));
        }
        let target = Path::new(&link.target).to_path_buf();
        self.hops.push(Hop { dir, link });
        if target.is_absolute() {
            self.restart_at_root()?;
        }
        self.enqueue(split(&target), Origin::Link);
        Ok(())
    }
}

/// Links of procfs are refused, magic or not (`statfs(2)`): a descriptor's
/// link would lead wherever the descriptor was opened.
fn is_on_procfs(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let stat = rustix::io::retry_on_intr(|| rustix::fs::fstatfs(fd))?;
    Ok(stat.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// In a sticky directory that everybody may write, only links of its owner
/// or of the follower are followed (`proc(5)`, `fs.protected_symlinks`).
fn is_planted(dir: &Dir, link: &FileStat) -> io::Result<bool> {
    const STICKY_FOR_ALL: u32 = 0o1002;
    let holder = sys::stat_at(dir.as_fd(), OsStr::new("."))?;
    let shared = holder.st_mode & STICKY_FOR_ALL == STICKY_FOR_ALL;
    let follower = nix::unistd::geteuid().as_raw();
    Ok(shared && link.st_uid != holder.st_uid && link.st_uid != follower)
}
