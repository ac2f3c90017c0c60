//! A walk through the roots, for what lies in them unannounced: repositories
//! whose hooks and settings git would run and believe, and further names of what
//! is denied.
//!
//! The walk reads names only, follows no link, and ends at a bound: a tree with
//! more entries is reported as not looked at, not waited for.

use std::collections::VecDeque;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use sandbox_policy::facts::{
    GitDirectoryFacts, MountMode, ProtectedState, RepositoryFacts, RootFacts, RootKind, RuleFacts,
    SurveyFacts, TargetEnd,
};
use sandbox_policy::globs::GlobRule;
use sandbox_policy::policy::{GIT, GUARDED_NAMES, Protection};
use sandbox_policy::{AbsolutePath, Policy};

use super::denials::Sought;
use super::{names, rules};
use crate::error::Errno;
use crate::resolve::id_of;

/// The most directory entries that one survey looks at: about a tenth of a
/// second with a warm cache.
const MAX_ENTRIES: usize = 200_000;

/// The most repositories that are held: each takes several mounts.
const MAX_REPOSITORIES: usize = 1_000;

/// Names in a git directory that hold further git directories.
const NESTS: [&str; 2] = ["worktrees", "modules"];

/// Names that are held in the git directory of a worktree: its hooks and
/// settings are those of the common one.
const GUARDED_IN_WORKTREE: [&str; 2] = ["config.worktree", "commondir"];

struct Surveyor<'a> {
    opens_git: bool,
    /// Other roots below the one that is walked; they are walked on their own.
    roots: Vec<&'a Path>,
    pending: VecDeque<PathBuf>,
    seen_entries: usize,
    sought: &'a Sought,
    denied: Vec<GlobMatcher>,
    found: Surveyed,
}

/// What a walk found.
#[derive(Default)]
pub(super) struct Surveyed {
    pub(super) facts: SurveyFacts,
    /// Rules for further names of what is denied.
    pub(super) rules: Vec<RuleFacts>,
}

/// Walks through all roots.
pub(super) fn survey(policy: &Policy, roots: &[RootFacts], sought: &Sought) -> Surveyed {
    let found = roots.iter().filter_map(|root| {
        let resolved = root.resolved.as_ref()?;
        let walked = resolved.kind == RootKind::Directory && resolved.mount == MountMode::Writable;
        walked.then_some((root.protection, resolved.real.as_path()))
    });
    let found: Vec<(Protection, &Path)> = found.collect();
    let mut surveyor = Surveyor {
        opens_git: policy.opens_git(),
        roots: found.iter().map(|(_, real)| *real).collect(),
        pending: VecDeque::new(),
        seen_entries: 0,
        sought,
        denied: policy
            .denied_globs()
            .iter()
            .map(GlobRule::matcher)
            .collect(),
        found: Surveyed::default(),
    };
    for (protection, real) in found {
        match protection {
            Protection::ProtectedNames => surveyor.walk(real),
            Protection::GitDirectory => surveyor.add_repository(real),
            // Nothing is held in it, but something may hide there.
            Protection::Nothing if sought.is_empty() && surveyor.denied.is_empty() => {}
            Protection::Nothing => surveyor.walk(real),
        }
    }
    let mut walked = surveyor.roots.clone();
    for glob in policy.denied_globs() {
        let base = glob.base().as_path();
        if !walked.iter().any(|above| base.starts_with(above)) {
            surveyor.walk(base);
            walked.push(base);
        }
    }
    surveyor.found
}

impl Surveyor<'_> {
    fn walk(&mut self, root: &Path) {
        self.pending.push_back(root.to_path_buf());
        while let Some(dir) = self.pending.pop_front() {
            let is_full = self.seen_entries >= MAX_ENTRIES
                || self.found.facts.repositories.len() >= MAX_REPOSITORIES;
            if is_full {
                self.found.facts.unseen.extend(AbsolutePath::new(&dir).ok());
            } else {
                self.look_into(&dir, root);
            }
        }
    }

    /// Reads one directory; what cannot be read cannot be walked inside either.
    fn look_into(&mut self, dir: &Path, root: &Path) {
        let Some(mut entries) = open_directory(dir).ok().and_then(|fd| Dir::new(fd).ok()) else {
            return;
        };
        while let Some(Ok(entry)) = entries.read() {
            self.seen_entries += 1;
            let name = name_of(entry.file_name());
            if name == "." || name == ".." {
                continue;
            }
            let path = dir.join(name);
            self.found
                .rules
                .extend(self.sought.recognise(entry.ino(), &path));
            if self.denied.iter().any(|glob| glob.is_match(&path)) {
                self.found.rules.extend(rules::look_at_match(&path));
            }
            if name == GIT {
                // The root's own is held as a whole, unless it was opened.
                if dir != root || self.opens_git {
                    self.add_repository(&path);
                }
                continue;
            }
            let is_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::Unknown => open_directory(&path).is_ok(),
                _ => false,
            };
            if is_directory && !self.roots.contains(&path.as_path()) {
                self.pending.push_back(path);
            }
        }
    }

    /// Adds a `.git`; one that is gone again meanwhile is none.
    fn add_repository(&mut self, path: &Path) {
        let state = names::look_at_name(CWD, path, path.as_os_str());
        let (Ok(state), Ok(real)) = (state, AbsolutePath::new(path)) else {
            return;
        };
        let directories = self.directories_of(path, &state);
        self.found.facts.repositories.push(RepositoryFacts {
            path: real,
            state,
            directories,
        });
    }

    /// Lists the git directories that belong to a repository, wherever they are:
    /// those outside of the roots cannot be written anyway.
    fn directories_of(&self, path: &Path, state: &ProtectedState) -> Vec<GitDirectoryFacts> {
        let targets = match state {
            ProtectedState::Directory(_) => return git_directories(path),
            ProtectedState::File { targets, .. } => targets.as_slice(),
            ProtectedState::Link { target, .. } => std::slice::from_ref(target),
            ProtectedState::EmptyDirectory(_) | ProtectedState::Missing => &[],
        };
        let ends = targets.iter().filter_map(|target| match &target.end {
            TargetEnd::Found { real, .. } => Some(real.as_path()),
            TargetEnd::Missing { .. } => None,
        });
        let inside = ends.filter(|end| self.roots.iter().any(|root| end.starts_with(root)));
        inside.flat_map(git_directories).collect()
    }
}

/// Lists a git directory and those of worktrees and submodules in it.
fn git_directories(top: &Path) -> Vec<GitDirectoryFacts> {
    let mut found = Vec::new();
    let mut pending = VecDeque::from([(top.to_path_buf(), &GUARDED_NAMES[..])]);
    while let Some((dir, guarded)) = pending.pop_front() {
        let Ok(fd) = open_directory(&dir) else {
            continue;
        };
        found.extend(look_at_git_directory(&fd, &dir, guarded));
        for nest in NESTS {
            let guarded = match nest {
                "worktrees" => &GUARDED_IN_WORKTREE[..],
                _ => &GUARDED_NAMES[..],
            };
            let nested = nested_git_directories(&dir.join(nest));
            pending.extend(nested.into_iter().map(|dir| (dir, guarded)));
        }
        if found.len() + pending.len() > MAX_REPOSITORIES {
            break;
        }
    }
    found
}

fn look_at_git_directory(fd: &OwnedFd, dir: &Path, guarded: &[&str]) -> Option<GitDirectoryFacts> {
    let real = AbsolutePath::new(dir).ok()?;
    let id = id_of(&fstat(fd).ok()?);
    let guarded = names::look_at(fd.as_fd(), &real, guarded).ok()?;
    Some(GitDirectoryFacts { real, id, guarded })
}

/// Lists the git directories below a nest: a submodule's name may have several
/// parts.
fn nested_git_directories(nest: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = VecDeque::from([nest.to_path_buf()]);
    while let Some(dir) = pending.pop_front() {
        let Some(mut entries) = open_directory(&dir).ok().and_then(|fd| Dir::new(fd).ok()) else {
            continue;
        };
        while let Some(Ok(entry)) = entries.read() {
            let name = name_of(entry.file_name());
            if name == "." || name == ".." || entry.file_type() != FileType::Directory {
                continue;
            }
            let path = dir.join(name);
            match path.join("HEAD").symlink_metadata().is_ok() {
                true => found.push(path),
                false => pending.push_back(path),
            }
        }
        if found.len() + pending.len() > MAX_REPOSITORIES {
            break;
        }
    }
    found
}

fn name_of(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

/// Opens a directory to list it, without following a link.
fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}
