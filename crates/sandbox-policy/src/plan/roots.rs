//! Which roots are mounted.

use crate::facts::{FileId, HostFacts, MountMode, ResolvedRoot, RootKind};
use crate::path::AbsolutePath;
use crate::plan::error::PlanError;
use crate::plan::mount::PinnedRoot;
use crate::policy::Protection;

/// A root whose facts allow it to be one.
pub(crate) struct Root<'a> {
    pub(crate) logical: &'a AbsolutePath,
    pub(crate) protection: Protection,
    pub(crate) facts: &'a ResolvedRoot,
}

/// A root that gets a mount of its own.
pub(crate) struct Kept {
    pub(crate) pinned: PinnedRoot,
    /// Another root lies above it, with a carve-out between them.
    pub(crate) is_nested: bool,
}

/// Checks every root.
pub(crate) fn resolved(facts: &HostFacts) -> Result<Vec<Root<'_>>, PlanError> {
    facts
        .roots
        .iter()
        .map(|root| {
            let Some(found) = &root.resolved else {
                return Err(PlanError::RootMissing(root.logical.clone()));
            };
            if found.kind == RootKind::Special {
                return Err(PlanError::RootSpecial(root.logical.clone()));
            }
            check_tree(&found.real)?;
            Ok(Root {
                logical: &root.logical,
                protection: root.protection,
                facts: found,
            })
        })
        .collect()
}

/// Refuses roots in trees that are replaced or held.
fn check_tree(real: &AbsolutePath) -> Result<(), PlanError> {
    let dev = AbsolutePath::of_kernel("/dev");
    let held = [
        AbsolutePath::of_kernel("/proc"),
        AbsolutePath::of_kernel("/sys"),
    ];
    let tree = held.into_iter().find(|tree| real.is_within(tree));
    let tree = tree.or((*real == dev).then_some(dev));
    match tree {
        Some(tree) => Err(PlanError::RootInKernelTree {
            root: real.clone(),
            tree,
        }),
        None => Ok(()),
    }
}

/// Drops each root that another one covers, unless a carve-out lies between
/// them, and each whose mount is read-only anyway: nothing could be written
/// there.
pub(crate) fn uncovered(roots: &[Root<'_>], protected: &[(AbsolutePath, FileId)]) -> Vec<Kept> {
    let mut kept: Vec<Kept> = Vec::new();
    let mut sorted: Vec<&ResolvedRoot> = roots.iter().map(|root| root.facts).collect();
    sorted.sort_by_key(|root| (root.real.depth(), root.real.clone()));
    sorted.dedup_by(|a, b| a.real == b.real);
    for root in sorted
        .into_iter()
        .filter(|root| root.mount == MountMode::Writable)
    {
        let above = kept
            .iter()
            .rfind(|other| root.real.is_below(&other.pinned.real));
        let carved = above.is_none_or(|above| {
            let between =
                |path: &AbsolutePath| root.real.is_below(path) && path.is_below(&above.pinned.real);
            protected.iter().any(|(path, _)| between(path))
        });
        if carved {
            let is_nested = above.is_some();
            let pinned = PinnedRoot {
                real: root.real.clone(),
                id: root.id,
                kind: root.kind,
            };
            kept.push(Kept { pinned, is_nested });
        }
    }
    kept
}
