//! Ending what an earlier, killed patch began, before a new one looks at the files.

use std::collections::BTreeSet;

use safe_fs::{Recovered, Roots};

use super::ApplyError;
use super::commit::Interrupted;
use super::observe::Observed;
use crate::failure::{Cause, Failure, FailureKind};
use crate::report::Note;

/// How long a patch waits for a living one to end.
const TIMEOUT_MS: u64 = 10_000;

/// Ends what a killed patch began in this workspace: all of it is done then, or none.
///
/// # Errors
///
/// [`ApplyError::NotRecovered`]: something stands in the way, and the journal
/// of that patch stays.
pub fn recover(roots: &Roots) -> Result<Option<Recovered>, ApplyError> {
    roots.recover(TIMEOUT_MS).map_err(ApplyError::NotRecovered)
}

/// Ends what a killed patch began whose journal lies beside its files, because
/// the workspace directory took none; then everything has to be looked at again.
pub fn beside(
    observed: &Observed,
    roots: &Roots,
    recovered: &mut Vec<Recovered>,
) -> Result<(), Interrupted> {
    if roots.takes_journal() {
        return Ok(());
    }
    let mut seen = BTreeSet::new();
    let before = recovered.len();
    for location in observed.locations() {
        if seen.insert(location.dir().id()) {
            let ended = roots.recover_beside(location, TIMEOUT_MS);
            recovered.extend(ended.map_err(ApplyError::NotRecovered)?);
        }
    }
    match recovered.len() == before {
        true => Ok(()),
        false => Err(Interrupted::Changed(Box::new(looked_too_early()))),
    }
}

/// What is reported should every attempt find another journal.
fn looked_too_early() -> Failure {
    Failure {
        operation: 0,
        line: 0,
        path: String::new(),
        absolute: std::path::PathBuf::new(),
        kind: FailureKind::Read(Cause::Changed),
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
