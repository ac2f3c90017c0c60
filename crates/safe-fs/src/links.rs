//! The search for the other names of a file. No kernel call answers it, so
//! the directories beneath the roots are read, within a budget; entries are
//! compared by the inode number that the directory itself holds, so files are
//! not looked at one by one.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::dir::Type;

use crate::dir::Dir;
use crate::error::{Context, Error, Operation};
use crate::guard::Level;
use crate::id::FileId;
use crate::journal::JOURNAL_NAME;
use crate::location::Location;
use crate::roots::Roots;
use crate::sys;

/// Says whether a search saw everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Complete {
    /// All wanted names were found, or every directory was read.
    Yes,
    /// The budget ran out first.
    BudgetHit,
}

/// Holds the names that a search found.
#[derive(Debug)]
pub struct LinkSearch {
    /// All names of the file beneath the roots, the known one included.
    pub found: Vec<Location>,
    /// Whether there may be more.
    pub complete: Complete,
}

impl Roots {
    /// Searches the roots for names of an inode, until `wanted` are found
    /// (usually the link count) or `budget_entries` entries were read.
    ///
    /// Links are not followed; guarded names, directories on other devices
    /// and directories that may not be read are passed over.
    pub fn find_links(
        &self,
        id: FileId,
        wanted: u64,
        budget_entries: usize,
    ) -> Result<LinkSearch, Error> {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        Search::new(self, Goal::Inode(id), wanted, budget_entries).in_all_roots()
    }

    /// Searches the roots for journals, in as many entries as is bearable.
    pub(crate) fn find_journals(&self) -> Result<Vec<Location>, Error> {
        const BUDGET_ENTRIES: usize = 100_000;
        let goal = Goal::Name(OsStr::new(JOURNAL_NAME));
        let search = Search::new(self, goal, usize::MAX, BUDGET_ENTRIES);
        Ok(search.in_all_roots()?.found)
    }
}

/// What is searched for.
#[derive(Clone, Copy)]
enum Goal<'a> {
    /// Names of an inode.
    Inode(FileId),
    /// Files of a name.
    Name(&'a OsStr),
}

enum Todo {
    Root(Dir, PathBuf),
    /// Opened only when its turn comes, so that few descriptors are held.
    Child(Dir, OsString, PathBuf),
}

impl Goal<'_> {
    fn is_name(&self, name: &OsStr) -> bool {
        matches!(self, Self::Name(wanted) if name == *wanted)
    }

    fn is_inode(&self, id: FileId) -> bool {
        matches!(self, Self::Inode(wanted) if id == *wanted)
    }
}

struct Search<'a> {
    roots: &'a Roots,
    goal: Goal<'a>,
    wanted: usize,
    budget_entries: usize,
    seen: HashSet<FileId>,
    todo: Vec<Todo>,
    found: Vec<Location>,
}

impl<'a> Search<'a> {
    fn new(roots: &'a Roots, goal: Goal<'a>, wanted: usize, budget_entries: usize) -> Self {
        Self {
            roots,
            goal,
            wanted,
            budget_entries,
            seen: HashSet::new(),
            todo: Vec::new(),
            found: Vec::new(),
        }
    }

    fn in_all_roots(mut self) -> Result<LinkSearch, Error> {
        let mut complete = Complete::Yes;
        for root in &self.roots.roots {
            self.todo
                .push(Todo::Root(root.dir.clone(), root.path.clone()));
            if !self.run()? {
                complete = Complete::BudgetHit;
                break;
            }
        }
        Ok(LinkSearch {
            found: self.found,
            complete,
        })
    }

    /// Reads directories until none is left; false when the budget is spent.
    fn run(&mut self) -> Result<bool, Error> {
        while self.found.len() < self.wanted
            && let Some(todo) = self.todo.pop()
        {
            let (dir, path) = match todo {
                Todo::Root(dir, path) => (Ok(dir), path),
                Todo::Child(parent, name, path) => (parent.child(&name), path),
            };
            match dir.and_then(|dir| self.read(dir, &path)) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) if is_passed_over(&error) => {}
                Err(error) => return Err(error).during(Operation::FindLinks, &path),
            }
        }
        Ok(true)
    }

    fn read(&mut self, dir: Dir, path: &std::path::Path) -> io::Result<bool> {
        let elsewhere = matches!(self.goal, Goal::Inode(id) if id.dev != dir.id().dev);
        if elsewhere || !self.seen.insert(dir.id()) {
            return Ok(true);
        }
        let is_root = self.roots.ids().contains(&dir.id());
        let level = if is_root { Level::Root } else { Level::Deeper };
        for entry in sys::open_listing(dir.as_fd())?.iter() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.budget_entries == 0 {
                return Ok(false);
            }
            self.budget_entries -= 1;
            if self.goal.is_name(name) || self.roots.guards.named(level, name).is_none() {
                self.consider(&dir, path, name, entry.ino(), entry.file_type())?;
            }
            if self.found.len() >= self.wanted {
                break;
            }
        }
        Ok(true)
    }

    fn consider(
        &mut self,
        dir: &Dir,
        path: &std::path::Path,
        name: &OsStr,
        ino: u64,
        kind: Option<Type>,
    ) -> io::Result<()> {
        if matches!(kind, Some(Type::Directory) | None) {
            let child = Todo::Child(dir.clone(), name.to_os_string(), path.join(name));
            self.todo.push(child);
        }
        let likely = match self.goal {
            Goal::Inode(id) => ino == id.ino,
            Goal::Name(_) => self.goal.is_name(name),
        };
        if !likely || kind == Some(Type::Directory) {
            return Ok(());
        }
        match sys::stat_at(dir.as_fd(), name) {
            Ok(stat) if self.goal.is_name(name) || self.goal.is_inode(FileId::of(&stat)) => {
                self.found.push(Location {
                    dir: dir.clone(),
                    missing: Vec::new(),
                    name: name.to_os_string(),
                    path: path.join(name),
                })
            }
            Err(error) if !sys::is(&error, libc::ENOENT) => return Err(error),
            _ => {}
        }
        Ok(())
    }
}

/// What vanished, is no directory after all, or may not be read.
fn is_passed_over(error: &io::Error) -> bool {
    [libc::ENOENT, libc::ENOTDIR, libc::EACCES, libc::EPERM]
        .into_iter()
        .any(|errno| sys::is(error, errno))
}
