//! Ending what an earlier, killed patch began, before a new one looks at the files.

use std::collections::BTreeSet;

use safe_fs::{Recovered, Roots};

use super::ApplyError;
use super::observe::Observed;
use crate::report::{Note, Report};

/// How long a patch waits for a living one to end.
const TIMEOUT_MS: u64 = 10_000;

/// Ends what a killed patch began in this workspace: all of it is done then, or
/// none. The report is empty when there was nothing to end.
///
/// # Errors
///
/// [`ApplyError::NotRecovered`]: something stands in the way, and the journal
/// of that patch stays.
pub fn recover(roots: &Roots) -> Result<Report, ApplyError> {
    let _lock = super::lock(roots);
    let recovered = ended(roots)?;
    Ok(Report {
        notes: recovered.iter().flat_map(notes).collect(),
        ..Report::default()
    })
}

/// Ends what a killed patch began, for one that holds the lock.
pub fn ended(roots: &Roots) -> Result<Vec<Recovered>, ApplyError> {
    roots.recover(TIMEOUT_MS).map_err(ApplyError::NotRecovered)
}

/// Ends what a killed patch began whose journal lies beside its files, because
/// the workspace directory took none; then everything has to be looked at again.
pub fn beside(observed: &Observed, roots: &Roots) -> Result<Vec<Recovered>, ApplyError> {
    let mut seen = BTreeSet::new();
    let mut ended = Vec::new();
    for location in observed.locations() {
        if seen.insert(location.dir().id()) {
            let recovered = roots.recover_beside(location, TIMEOUT_MS);
            ended.extend(recovered.map_err(ApplyError::NotRecovered)?);
        }
    }
    Ok(ended)
}

/// Says that what a preview saw is about to be taken back or finished.
pub fn pending(roots: &Roots) -> Option<Note> {
    let is_there = roots.is_interrupted().unwrap_or(true);
    is_there.then_some(Note::Interrupted)
}

/// Returns what the reader should know of a recovery.
pub fn notes(recovered: &Recovered) -> Vec<Note> {
    let mut notes = vec![Note::Recovered {
        direction: recovered.direction,
    }];
    notes.extend(
        recovered
            .conflicts
            .iter()
            .map(|conflict| Note::NotRestored {
                path: conflict.path.clone(),
                kept: conflict.kept.clone(),
            }),
    );
    notes
}
