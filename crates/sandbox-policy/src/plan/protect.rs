//! What must be held read-only inside the roots, and what must not move so that
//! it stays held.
//!
//! A mount follows the directory it is made on, so a carve-out is only as firm
//! as the names that lead to it: every directory between a root and a carve-out
//! is mounted on itself (a mount point can be neither renamed nor removed), and
//! every symbolic link on the way is held as a link.

use std::collections::BTreeMap;

use crate::facts::{FileId, LinkTarget, ProtectedState, TargetEnd};
use crate::path::AbsolutePath;
use crate::plan::NotCovered;
use crate::plan::error::PlanError;
use crate::plan::roots::{Kept, Root};
use crate::policy::{Protection, Purpose};

/// The carve-outs of all roots.
#[derive(Default)]
pub(crate) struct CarveOuts {
    /// Directories that must keep their place.
    pub(crate) ancestors: Vec<AbsolutePath>,
    /// What is held read-only.
    pub(crate) protected: Vec<(AbsolutePath, FileId)>,
    /// What could not be held.
    pub(crate) not_covered: Vec<NotCovered>,
}

/// Collects carve-outs; a map keeps one rule per path.
struct Collector<'a> {
    roots: &'a [Root<'a>],
    purpose: Purpose,
    protected: BTreeMap<AbsolutePath, FileId>,
    missing: Vec<NotCovered>,
}

/// Decides what is held below the roots.
pub(crate) fn carve_outs(roots: &[Root<'_>], purpose: Purpose) -> Result<CarveOuts, PlanError> {
    let mut collector = Collector {
        roots,
        purpose,
        protected: BTreeMap::new(),
        missing: Vec::new(),
    };
    for root in roots
        .iter()
        .filter(|root| root.protection == Protection::ProtectedNames)
    {
        for entry in &root.facts.protected {
            let Ok(path) = root.facts.real.child(&entry.name) else {
                continue;
            };
            collector.add_name(path, &entry.state)?;
        }
        if purpose == Purpose::Command {
            collector
                .missing
                .push(NotCovered::NestedRepositories(root.facts.real.clone()));
            collector
                .missing
                .push(NotCovered::LinkedFiles(root.facts.real.clone()));
        }
    }
    Ok(collector.finish())
}

impl CarveOuts {
    /// Leaves out the directories that a mount of their own keeps in place.
    pub(crate) fn without_mounted(mut self, kept: &[Kept]) -> Self {
        let is_mounted = |path: &AbsolutePath| kept.iter().any(|root| root.pinned.real == *path);
        self.ancestors.retain(|path| !is_mounted(path));
        self
    }
}

impl Collector<'_> {
    fn add_name(&mut self, path: AbsolutePath, state: &ProtectedState) -> Result<(), PlanError> {
        match state {
            ProtectedState::Missing => self.add_missing(path),
            ProtectedState::Directory(id) => {
                self.protected.insert(path, *id);
            }
            ProtectedState::File { id, targets } => {
                for target in targets {
                    self.add_target(&path, target)?;
                }
                self.protected.insert(path, *id);
            }
            ProtectedState::Link { id, target, .. } => {
                self.add_target(&path, target)?;
                self.protected.insert(path, *id);
            }
        }
        Ok(())
    }

    /// The patch stage refuses missing protected names itself.
    fn add_missing(&mut self, path: AbsolutePath) {
        if self.purpose == Purpose::Command {
            self.missing.push(NotCovered::MissingProtectedName(path));
        }
    }

    fn add_target(&mut self, name: &AbsolutePath, target: &LinkTarget) -> Result<(), PlanError> {
        for (link, id) in &target.crossed {
            if self.root_above(link).is_some() {
                self.protected.insert(link.clone(), *id);
            }
        }
        match &target.end {
            TargetEnd::Missing { real } if self.root_above(real).is_some() => {
                self.add_missing(real.clone());
            }
            TargetEnd::Missing { .. } => {}
            TargetEnd::Found { real, id } => {
                self.refuse_if_it_holds_a_root(name, real)?;
                if self.root_above(real).is_some() {
                    self.protected.insert(real.clone(), *id);
                }
            }
        }
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

    /// Returns the broadest root above a path.
    fn root_above(&self, path: &AbsolutePath) -> Option<&AbsolutePath> {
        let above = self.roots.iter().map(|root| &root.facts.real);
        above
            .filter(|root| path.is_below(root))
            .min_by_key(|root| root.depth())
    }

    fn finish(self) -> CarveOuts {
        let mut ancestors: Vec<AbsolutePath> = Vec::new();
        for path in self.protected.keys() {
            let Some(root) = self.root_above(path) else {
                continue;
            };
            let between = path.between(root).into_iter();
            ancestors.extend(between.filter(|it| !self.protected.contains_key(it)));
        }
        ancestors.sort();
        ancestors.dedup();
        CarveOuts {
            ancestors,
            protected: self.protected.into_iter().collect(),
            not_covered: self.missing,
        }
    }
}
