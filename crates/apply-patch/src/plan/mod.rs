//! From a patch and what was observed to an ordered list of effects: pure.
//!
//! Every operation is tried on the overlay, so one run finds every operation
//! that cannot be done; only when none fails does a [`Plan`] come out. The plan
//! holds net effects: a file that is edited twice is written once.

mod effects;
mod operation;
mod overlay;
mod refusal;
mod relocate;
pub mod snapshot;

pub use effects::{Effect, Plan};
pub use overlay::Attributes;

use crate::failure::Failure;
use crate::options::Options;
use crate::syntax::ast::Patch;
use operation::Planner;
use snapshot::Snapshot;

/// Plans a patch, or returns every operation that cannot be done.
///
/// # Errors
///
/// One [`Failure`] for each operation that fails, in patch order. An operation
/// that fails leaves the overlay as it was, so later failures may be its echo.
pub fn plan(
    patch: &Patch<'_>,
    snapshot: &Snapshot,
    options: &Options,
) -> Result<Plan, Vec<Failure>> {
    let mut planner = Planner::new(patch, snapshot, options);
    let failures: Vec<Failure> = patch
        .operations
        .iter()
        .enumerate()
        .filter_map(|(index, operation)| planner.operation(index, operation).err())
        .collect();
    if !failures.is_empty() {
        return Err(failures);
    }
    let (overlay, report, origins) = planner.finish();
    Ok(Plan::net(overlay, report, &origins))
}
