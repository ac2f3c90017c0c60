//! From rules and facts to what must stand where: one list of real paths, each
//! with one access, in which no entry says what the one above it says already.

use std::collections::BTreeMap;

use crate::facts::{
    FileId, GitDirectoryFacts, HostFacts, LinkTarget, MountMode, ProtectedFacts, ProtectedState,
    RepositoryFacts, RootKind, TargetEnd,
};
use crate::path::AbsolutePath;
use crate::plan::error::PlanError;
use crate::plan::roots::Root;
use crate::policy::{GIT, GUARDED_NAMES, MissingNames, Policy, Protection, Purpose};
use crate::rule::{Access, Origin};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Something with content of its own.
    Present {
        /// Its inode.
        id: FileId,
        /// What it is.
        kind: RootKind,
    },
    /// A symbolic link, which must stay one.
    Link {
        /// Its inode.
        id: FileId,
    },
    /// Nothing.
    Missing,
}

/// What must hold at one real path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The access there and below, as far as no deeper entry differs.
    pub(crate) access: Access,
    /// What stands there.
    pub(crate) standing: Standing,
    /// Who asked for it.
    pub(crate) origin: Origin,
}

/// Everything that must hold, by real path.
pub(crate) type Entries = BTreeMap<AbsolutePath, Entry>;

struct Collector<'a> {
    policy: &'a Policy,
    roots: &'a [Root<'a>],
    tmp: Option<&'a AbsolutePath>,
    purpose: Purpose,
    collected: Collected,
}

/// What must hold, and what will not.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) entries: Entries,
    /// Missing names that the program can make.
    pub(crate) open: Vec<AbsolutePath>,
}

/// Collects what must hold.
pub(crate) fn collect(
    policy: &Policy,
    facts: &HostFacts,
    roots: &[Root<'_>],
    purpose: Purpose,
) -> Result<Collected, PlanError> {
    let mut collector = Collector {
        policy,
        roots,
        tmp: facts.tmp.as_ref(),
        purpose,
        collected: Collected::default(),
    };
    for root in roots {
        collector.add_root(root);
    }
    for rule in &facts.rules {
        let (access, origin) = (rule.rule.access, rule.rule.origin);
        collector.add_target(&rule.target, access, origin);
    }
    for root in roots {
        collector.add_protected(root)?;
    }
    if purpose == Purpose::Command {
        for repository in &facts.survey.repositories {
            collector.add_repository(repository)?;
        }
    }
    Ok(collector.collected)
}

impl Collector<'_> {
    /// Adds an entry; on one path the stronger access wins, and what a caller
    /// says outranks what is protected by default.
    fn add(&mut self, path: AbsolutePath, entry: Entry) {
        let rank = |entry: &Entry| (entry.origin != Origin::Protected, entry.access);
        match self.collected.entries.get(&path) {
            Some(known) if rank(known) >= rank(&entry) => {}
            _ => {
                self.collected.entries.insert(path, entry);
            }
        }
    }

    /// A root on a read-only mount adds nothing: nothing can be written there.
    fn add_root(&mut self, root: &Root<'_>) {
        if root.facts.mount == MountMode::ReadOnly {
            return;
        }
        let standing = Standing::Present {
            id: root.facts.id,
            kind: root.facts.kind,
        };
        let entry = held(standing, Access::Write, root.origin);
        self.add(root.facts.real.clone(), entry);
    }

    /// Holds the links on a way, which could be made to lead elsewhere before
    /// the next run.
    fn add_links(&mut self, target: &LinkTarget, origin: Origin) {
        for (link, id) in &target.crossed {
            let standing = Standing::Link { id: *id };
            self.add(link.clone(), held(standing, Access::Read, origin));
        }
    }

    /// Adds what a chain of names leads to, and the links on the way.
    fn add_target(&mut self, target: &LinkTarget, access: Access, origin: Origin) {
        self.add_links(target, origin);
        match &target.end {
            TargetEnd::Found { real, id, kind } => {
                let (id, kind) = (*id, *kind);
                let standing = Standing::Present { id, kind };
                self.add(real.clone(), held(standing, access, origin));
            }
            TargetEnd::Missing { real } if holds_missing(origin) => {
                self.add_missing(real.clone(), access, origin);
            }
            TargetEnd::Missing { .. } => {}
        }
    }

    /// The patch stage refuses missing names itself.
    fn add_missing(&mut self, path: AbsolutePath, access: Access, origin: Origin) {
        match (self.purpose, self.policy.missing_names()) {
            (Purpose::Patch, _) => {}
            (Purpose::Command, MissingNames::Placeholder) if !self.is_in_tmp(&path) => {
                self.add(path, held(Standing::Missing, access, origin));
            }
            (Purpose::Command, _) if self.is_in_a_root(&path) => self.collected.open.push(path),
            (Purpose::Command, _) => {}
        }
    }

    fn is_in_a_root(&self, path: &AbsolutePath) -> bool {
        let mut roots = self.roots.iter();
        roots.any(|root| path.is_within(&root.facts.real))
    }

    /// Everybody's programs look for such names in `/tmp` itself: nothing that
    /// stands in for them is put there.
    fn is_in_tmp(&self, path: &AbsolutePath) -> bool {
        path.parent()
            .is_some_and(|parent| self.tmp == Some(&parent))
    }

    /// An empty directory is held like a missing name: its owner may remove it,
    /// and a mount on it goes with it.
    fn add_empty(&mut self, path: AbsolutePath, id: FileId) {
        let is_held = self.purpose == Purpose::Command
            && self.policy.missing_names() == MissingNames::Placeholder;
        let standing = match is_held {
            true => Standing::Missing,
            false => Standing::Present {
                id,
                kind: RootKind::Directory,
            },
        };
        self.add(path, held(standing, Access::Read, Origin::Protected));
    }

    fn add_protected(&mut self, root: &Root<'_>) -> Result<(), PlanError> {
        let opened = self.policy.opens_git() && self.purpose == Purpose::Command;
        for fact in &root.facts.protected {
            // What is opened comes with the repositories, as far as it is held.
            let is_opened = opened && fact.name == GIT;
            let is_missing = fact.state == ProtectedState::Missing;
            let is_free = is_missing && self.is_covered(&root.facts.real);
            if root.protection == Protection::Nothing || is_opened || is_free {
                continue;
            }
            if let Ok(path) = root.facts.real.child(&fact.name) {
                self.add_state(path, fact)?;
            }
        }
        Ok(())
    }

    /// Tells whether another root covers one, so that it is a directory among
    /// others there: repositories can be made in all of them, and holding names
    /// in this one would cut it off for renames and links.
    fn is_covered(&self, root: &AbsolutePath) -> bool {
        let mut others = self.roots.iter().map(|other| &other.facts.real);
        others.any(|other| {
            let between = root.between(other).into_iter().chain([root.clone()]);
            let is_held = |path: AbsolutePath| {
                let mut names = self.policy.protected_names().iter();
                names.any(|name| path.file_name() == Some(name))
            };
            root.is_below(other) && !between.into_iter().any(is_held)
        })
    }

    fn add_state(&mut self, path: AbsolutePath, fact: &ProtectedFacts) -> Result<(), PlanError> {
        let origin = Origin::Protected;
        let standing = match &fact.state {
            ProtectedState::Missing => {
                if may_be_made(&fact.name) {
                    self.add_missing(path, Access::Read, origin);
                }
                return Ok(());
            }
            ProtectedState::EmptyDirectory(id) => {
                self.add_empty(path, *id);
                return Ok(());
            }
            ProtectedState::Directory(id) => Standing::Present {
                id: *id,
                kind: RootKind::Directory,
            },
            ProtectedState::File { id, targets } => {
                for target in targets {
                    self.add_led_to(&path, target)?;
                }
                Standing::Present {
                    id: *id,
                    kind: RootKind::File,
                }
            }
            ProtectedState::Link { id, target, .. } => {
                self.add_led_to(&path, target)?;
                Standing::Link { id: *id }
            }
        };
        self.add(path, held(standing, Access::Read, origin));
        Ok(())
    }

    /// Adds what a protected name leads to, unless a git directory that was
    /// made a root holds it: that one has its own guards.
    fn add_led_to(&mut self, name: &AbsolutePath, target: &LinkTarget) -> Result<(), PlanError> {
        if let TargetEnd::Found { real, .. } = &target.end {
            self.refuse_if_it_holds_a_root(name, real)?;
            let opened = |root: &Root<'_>| {
                root.protection == Protection::GitDirectory && real.is_within(&root.facts.real)
            };
            if self.roots.iter().any(opened) {
                return Ok(());
            }
        }
        self.add_target(target, Access::Read, Origin::Protected);
        Ok(())
    }

    /// A link to a root, or to something above one, would make it read-only.
    fn refuse_if_it_holds_a_root(
        &self,
        name: &AbsolutePath,
        target: &AbsolutePath,
    ) -> Result<(), PlanError> {
        let held = self
            .roots
            .iter()
            .find(|root| root.facts.real.is_within(target) && name.is_within(&root.facts.real));
        match held {
            Some(root) => Err(PlanError::ProtectedTargetHoldsRoot {
                name: name.clone(),
                target: target.clone(),
                root: root.facts.real.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Holds what a nested repository would run, and its way to it: a pointer or
    /// a link as it stands, of a directory only the guarded names.
    fn add_repository(&mut self, repository: &RepositoryFacts) -> Result<(), PlanError> {
        let standing = match &repository.state {
            ProtectedState::Missing
            | ProtectedState::EmptyDirectory(_)
            | ProtectedState::Directory(_) => None,
            ProtectedState::File { id, .. } => Some(Standing::Present {
                id: *id,
                kind: RootKind::File,
            }),
            ProtectedState::Link { id, target, .. } => {
                self.add_links(target, Origin::Protected);
                Some(Standing::Link { id: *id })
            }
        };
        if let Some(standing) = standing {
            let entry = held(standing, Access::Read, Origin::Protected);
            self.add(repository.path.clone(), entry);
        }
        for directory in &repository.directories {
            self.add_git_directory(directory)?;
        }
        Ok(())
    }

    /// A directory without settings is held as a whole: nothing could stand in
    /// for a missing file.
    fn add_git_directory(&mut self, directory: &GitDirectoryFacts) -> Result<(), PlanError> {
        let lacks_settings =
            |fact: &ProtectedFacts| fact.name == SETTINGS && fact.state == ProtectedState::Missing;
        if directory.guarded.iter().any(lacks_settings) {
            let standing = Standing::Present {
                id: directory.id,
                kind: RootKind::Directory,
            };
            let entry = held(standing, Access::Read, Origin::Protected);
            self.add(directory.real.clone(), entry);
            return Ok(());
        }
        for fact in &directory.guarded {
            if let Ok(path) = directory.real.child(&fact.name) {
                self.add_state(path, fact)?;
            }
        }
        Ok(())
    }
}

/// The file with the settings of a repository.
const SETTINGS: &str = "config";

/// Tells whether a missing name can be held by an empty directory: git takes
/// one for missing hooks, but not for the files beside them.
fn may_be_made(name: &std::ffi::OsStr) -> bool {
    !GUARDED_NAMES.iter().any(|known| name == *known) || name == "hooks"
}

fn held(standing: Standing, access: Access, origin: Origin) -> Entry {
    Entry {
        access,
        standing,
        origin,
    }
}

/// A profile means what it says of missing paths too. What a flag or a pattern
/// hides is there or it is no secret.
fn holds_missing(origin: Origin) -> bool {
    matches!(origin, Origin::Profile { .. } | Origin::Protected)
}
