//! Ending what an earlier, killed patch began, before a new one looks at the files.

use safe_fs::{Recovered, Roots};

use super::ApplyError;
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
    let mut recovered = ended(roots)?;
    recovered.extend(beside(roots)?);
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
/// the workspace directory took none.
pub fn beside(roots: &Roots) -> Result<Vec<Recovered>, ApplyError> {
    let recovered = roots.recover_beside(TIMEOUT_MS);
    recovered.map_err(ApplyError::NotRecovered)
}

/// Refuses to look at files of which a killed patch has changed a part.
pub fn refuse_pending(roots: &Roots) -> Result<(), ApplyError> {
    match roots.is_interrupted() {
        Ok(false) => Ok(()),
        Ok(true) => Err(ApplyError::Pending),
        Err(error) => Err(ApplyError::NotRecovered(error)),
    }
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
