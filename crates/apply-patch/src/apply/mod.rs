//! Applies a patch: observe, plan, stage, commit. The one module that writes.
//!
//! A check stops after the plan, and a preview turns the plan into a diff; both
//! go the same way until then, so they say what an application would have said.
//!
//! Nothing is written before every operation is known to be possible, and
//! nothing keeps its change unless every change could be made. When a file
//! turns out to have changed since it was read, everything starts again from
//! what is there now.

mod commit;
mod links;
pub(crate) mod observe;
mod preview;
mod recovery;
mod reverse;

use std::io::Write;

use safe_fs::{Roots, WorkspaceLock};

use crate::failure::{Cause, Failure, FailureKind};
use crate::options::Options;
use crate::plan::{self, Plan};
use crate::report::Report;
use crate::syntax::ast::Patch;
use commit::Interrupted;
use observe::Observed;
pub use preview::Preview;
pub use recovery::recover;
pub use reverse::{UndoError, Undone, undo};

/// How long a patch waits for another one in the same workspace.
const LOCK_TIMEOUT_MS: u64 = 3_000;

/// How often a patch is computed anew because files changed underneath.
const ATTEMPTS: usize = 16;

/// Why a patch was not applied; the files are as they were.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The patch has no operation (R14).
    #[error("No files were modified.")]
    Empty,
    /// Operations that cannot be done, in patch order; never empty.
    #[error("{}", first_line(.0))]
    Failed(Vec<Failure>),
    /// A change could not be made, and some earlier one could not be taken back.
    #[error("{failure}; {} could not be put back: {source}", failure.absolute.display())]
    NotRolledBack {
        /// What went wrong first.
        failure: Box<Failure>,
        /// What kept a step from being undone.
        source: safe_fs::Error,
    },
    /// An earlier patch was interrupted: what is there now says nothing about what will be.
    #[error("an earlier patch was interrupted here, and has to be ended before one can be checked")]
    Pending,
    /// An earlier patch was interrupted, or is at work still, and has to end first.
    #[error("an earlier patch has to be ended first: {0}")]
    NotRecovered(safe_fs::Error),
}

fn first_line(failures: &[Failure]) -> String {
    failures
        .first()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// Applies a patch beneath pinned roots, entirely or not at all. What it
/// replaces is written into `record`, for [`undo`]; that it could not be is a note.
///
/// # Errors
///
/// [`ApplyError`]; unless it is [`ApplyError::NotRolledBack`], no file differs
/// from what it was, and nothing was left behind.
pub fn apply(
    patch: &Patch<'_>,
    roots: &Roots,
    options: &Options,
    mut record: Option<&mut dyn Write>,
) -> Result<Report, ApplyError> {
    transact(patch, roots, || {
        let (observed, plan) = planned(patch, roots, options)?;
        let record = record
            .as_mut()
            .map(|record| &mut **record as &mut dyn Write);
        commit::commit(patch, &plan, &observed, (roots, options), record)
    })
}

/// Makes changes, after whatever was interrupted in this workspace has ended.
fn transact(
    patch: &Patch<'_>,
    roots: &Roots,
    mut attempt: impl FnMut() -> Result<Report, Interrupted>,
) -> Result<Report, ApplyError> {
    let mut recovered = Vec::new();
    let mut report = repeatedly(patch, roots, || {
        recovered.extend(recovery::ended(roots)?);
        attempt().or_else(|stop| {
            // Perhaps a killed patch was in the way, whose journal lies elsewhere.
            let ended = recovery::beside(roots)?;
            let again = !ended.is_empty();
            recovered.extend(ended);
            Err(if again { stop.into_repeatable() } else { stop })
        })
    })?;
    report
        .notes
        .extend(recovered.iter().flat_map(recovery::notes));
    Ok(report)
}

/// Returns what [`apply`] would report, and touches nothing.
///
/// # Errors
///
/// As [`apply`], but for what only writing brings to light: a full disk, a
/// directory in which nothing may be made.
pub fn check(patch: &Patch<'_>, roots: &Roots, options: &Options) -> Result<Report, ApplyError> {
    recovery::refuse_pending(roots)?;
    repeatedly(patch, roots, || {
        let (observed, plan) = planned(patch, roots, options)?;
        preview::check(patch, plan, &observed, roots, options)
    })
}

/// Returns what [`apply`] would report and change, and touches nothing.
///
/// # Errors
///
/// As [`check`].
pub fn preview(patch: &Patch<'_>, roots: &Roots, options: &Options) -> Result<Preview, ApplyError> {
    recovery::refuse_pending(roots)?;
    repeatedly(patch, roots, || {
        let (observed, plan) = planned(patch, roots, options)?;
        preview::preview(patch, plan, &observed, roots, options)
    })
}

/// Makes patches to one workspace take turns.
///
/// Without the lock (a command holds it, or the directory cannot be locked) the
/// comparison at the swap still keeps edits from getting lost.
fn lock(roots: &Roots) -> Option<WorkspaceLock> {
    roots.lock(LOCK_TIMEOUT_MS).ok().flatten()
}

/// Tries until the files hold still, or the patience is at its end.
fn repeatedly<T>(
    patch: &Patch<'_>,
    roots: &Roots,
    mut attempt: impl FnMut() -> Result<T, Interrupted>,
) -> Result<T, ApplyError> {
    if patch.operations.is_empty() {
        return Err(ApplyError::Empty);
    }
    let _lock = lock(roots);
    let mut last = None;
    for _ in 0..ATTEMPTS {
        match attempt() {
            Err(Interrupted::Changed(failure)) => last = Some(failure),
            Err(Interrupted::Failed(error)) => return Err(error),
            Ok(done) => return Ok(done),
        }
    }
    let failures = last.map(|failure| vec![*failure]).unwrap_or_default();
    Err(ApplyError::Failed(failures))
}

fn planned(
    patch: &Patch<'_>,
    roots: &Roots,
    options: &Options,
) -> Result<(Observed, Plan), Interrupted> {
    let observed = observe::observe(patch, roots);
    let plan = plan::plan(patch, observed.snapshot(), options).map_err(Interrupted::of_plan)?;
    Ok((observed, plan))
}

impl From<ApplyError> for Interrupted {
    fn from(error: ApplyError) -> Self {
        Self::Failed(error)
    }
}

impl Interrupted {
    /// Whatever the reason was, it may be gone now.
    fn into_repeatable(self) -> Self {
        match self {
            Self::Failed(ApplyError::Failed(mut failures)) if !failures.is_empty() => {
                Self::Changed(Box::new(failures.swap_remove(0)))
            }
            stop => stop,
        }
    }

    /// A file that changed between its observation and its reading is a reason to look again.
    fn of_plan(mut failures: Vec<Failure>) -> Self {
        let raced = failures
            .iter()
            .position(|failure| matches!(failure.kind, FailureKind::Read(Cause::Changed)));
        match raced {
            Some(index) => Self::Changed(Box::new(failures.swap_remove(index))),
            None => Self::Failed(ApplyError::Failed(failures)),
        }
    }
}
