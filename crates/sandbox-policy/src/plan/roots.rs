//! Which roots there can be.

use crate::facts::{HostFacts, ResolvedRoot, RootKind};
use crate::path::AbsolutePath;
use crate::plan::error::PlanError;
use crate::policy::Protection;
use crate::rule::Origin;

/// A root whose facts allow it to be one.
pub(crate) struct Root<'a> {
    pub(crate) logical: &'a AbsolutePath,
    pub(crate) protection: Protection,
    pub(crate) origin: Origin,
    pub(crate) facts: &'a ResolvedRoot,
}

/// Checks every root. One that a profile names may be missing: profiles are
/// written for many hosts.
pub(crate) fn resolved(facts: &HostFacts) -> Result<Vec<Root<'_>>, PlanError> {
    let may_miss = |origin: Origin| matches!(origin, Origin::Profile { .. });
    facts
        .roots
        .iter()
        .filter(|root| root.resolved.is_some() || !may_miss(root.origin))
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
                origin: root.origin,
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
