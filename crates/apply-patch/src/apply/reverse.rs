//! Takes an applied patch back, by its record: observe, plan, commit, as a patch does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use safe_fs::Roots;

use super::commit::{self, Interrupted};
use super::observe::{Observed, lexical, observe_places};
use super::{ApplyError, transact};
use crate::failure::{Cause, Failure, FailureKind};
use crate::options::Options;
use crate::plan::Plan;
use crate::plan::snapshot::SlotId;
use crate::report::Report;
use crate::syntax::ast::{Body, MoveTo, Operation, Patch};
use crate::undo::Recorded;
use crate::undo::plan::{Blocked, Found, reverse};

/// An undo has no text whose lines could be counted.
const NO_LINE: usize = 0;

/// Why a patch was not taken back; the files are as they were.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// Somebody changed these since.
    #[error("changed since the patch was applied: {}", listed(.0))]
    Changed(Vec<PathBuf>),
    /// The files are as they were before the patch.
    #[error("undone already: the files are as they were before")]
    Already,
    /// The changes could not be made.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// What an undo has done.
#[derive(Debug)]
pub enum Undone {
    /// The patch of the record was taken back.
    Undone(Report),
    /// Only what an interrupted patch had begun was ended.
    Recovered(Report),
}

fn listed(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    shown.join(", ")
}

/// Puts back what an applied patch replaced, entirely or not at all; when a
/// later patch was interrupted, that one is ended, and nothing else is done.
///
/// # Errors
///
/// [`UndoError`]: a file that the patch changed is not as the patch left it, or
/// the changes cannot be made.
pub fn undo(record: &Recorded, roots: &Roots, options: &Options) -> Result<Undone, UndoError> {
    // That was the last patch; whoever wants one more taken back asks again.
    let recovered = super::recover(roots)?;
    if !recovered.notes.is_empty() {
        return Ok(Undone::Recovered(recovered));
    }
    take_back(record, roots, options).map(Undone::Undone)
}

fn take_back(record: &Recorded, roots: &Roots, options: &Options) -> Result<Report, UndoError> {
    let words = Words::of(record);
    let patch = words.patch();
    let mut blocked = None;
    let done = transact(&patch, roots, || {
        let (mut observed, slots) = observe(record, roots);
        let refused = refused(record, &slots, roots);
        if !refused.is_empty() {
            return Err(Interrupted::Failed(ApplyError::Failed(refused)));
        }
        let plan = match reverse(record, &found(&observed, &slots)) {
            Ok(reverse) => Plan {
                effects: reverse.effects,
                report: Report {
                    changes: reverse.changes,
                    notes: reverse.notes,
                    ..Report::default()
                },
            },
            Err(why) => {
                blocked = Some(why);
                return Err(Interrupted::Failed(ApplyError::Failed(Vec::new())));
            }
        };
        for (path, attributes) in record.saved_attributes() {
            if let Some(Ok(slot)) = slots.get(path) {
                observed.remember(*slot, attributes.clone());
            }
        }
        commit::commit(&patch, &plan, &observed, (roots, options), None)
    });
    match blocked {
        None => Ok(done?),
        Some(Blocked::Changed(paths)) => Err(UndoError::Changed(paths)),
        Some(Blocked::Already) => Err(UndoError::Already),
    }
}

type Slots = BTreeMap<PathBuf, Result<SlotId, Cause>>;

fn observe(record: &Recorded, roots: &Roots) -> (Observed, Slots) {
    let read = record.read_paths();
    observe_places(record.paths(), roots, |path| read.contains(path))
}

/// Returns the places that the policy refuses, by their changes.
fn refused(record: &Recorded, slots: &Slots, roots: &Roots) -> Vec<Failure> {
    let mut seen = BTreeSet::new();
    let mut failures = Vec::new();
    for (operation, change) in record.changes.iter().enumerate() {
        for path in change.paths().filter(|path| seen.insert(*path)) {
            let Some(Err(cause)) = slots.get(path) else {
                continue;
            };
            if cause.is_policy() {
                failures.push(Failure {
                    operation,
                    line: NO_LINE,
                    path: path.to_string_lossy().into_owned(),
                    absolute: lexical(roots.base_path(), path),
                    kind: FailureKind::Write(cause.clone()),
                });
            }
        }
    }
    failures
}

fn found<'a>(observed: &'a Observed, slots: &Slots) -> BTreeMap<PathBuf, Found<'a>> {
    let found = |(path, slot): (&PathBuf, &Result<SlotId, _>)| {
        let slot = *slot.as_ref().ok()?;
        let identity = observed.pinned(slot).map(|pinned| {
            let id = pinned.id();
            (id.dev, id.ino, pinned.size_bytes(), pinned.mtime_ns())
        });
        let found = Found {
            slot,
            snapshot: observed.snapshot(),
            identity,
        };
        Some((path.clone(), found))
    };
    slots.iter().filter_map(found).collect()
}

/// What is said of each change when it cannot be made: a patch with its paths.
struct Words {
    paths: Vec<(String, Option<String>)>,
}

impl Words {
    fn of(record: &Recorded) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let words = record.changes.iter().map(|change| {
            let mut paths = change.paths().map(text);
            (paths.next().unwrap_or_default(), paths.next())
        });
        Self {
            paths: words.collect(),
        }
    }

    fn patch(&self) -> Patch<'_> {
        Patch {
            operations: self.paths.iter().map(operation).collect(),
            environment_id: None,
        }
    }
}

fn operation((path, to): &(String, Option<String>)) -> Operation<'_> {
    let line = NO_LINE;
    let Some(to) = to else {
        let body = Body::Add { lines: Vec::new() };
        return Operation { path, line, body };
    };
    // It goes from its new name to its old one.
    let body = Body::Update {
        move_to: Some(MoveTo { path, line }),
        chunks: Vec::new(),
    };
    Operation {
        path: to,
        line,
        body,
    }
}
