//! What came of a patch as one JSON object (docs/report.md): the types here are
//! the schema, so that the library stays free of it.
//!
//! Within a version, fields and kinds are only ever added. Operations, chunks
//! and lines count from 1.

use std::path::Path;

use apply_patch::edit::EditError;
use apply_patch::failure::{Cause, Failure, FailureKind};
use apply_patch::locate::{self, ChunkFailure, Nearest};
use apply_patch::report::{Landed, Note, Report};
use apply_patch::syntax::ParseError;
use apply_patch::{ApplyError, UndoError, edit};
use serde::Serialize;

use crate::exit::Exit;
use crate::patch::outcome::Outcome;
use crate::words;

/// The version of the schema.
const VERSION: u32 = 1;

/// Returns the document, with a line feed at its end.
pub fn document(outcome: &Outcome, exit: Exit) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string(&Document::new(outcome, exit))?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    status: Status,
    exit_code: u8,
    changes: Vec<Change<'a>>,
    hunks: Vec<Hunks<'a>>,
    notes: Vec<NoteEntry<'a>>,
    errors: Vec<ErrorEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Applied,
    Checked,
    Undone,
    Recovered,
    Refused,
    Failed,
}

#[derive(Serialize)]
struct Change<'a> {
    kind: &'static str,
    path: &'a str,
}

#[derive(Serialize)]
struct Hunks<'a> {
    operation: usize,
    line: usize,
    path: &'a str,
    chunks: Vec<Place>,
}

#[derive(Serialize)]
struct Place {
    chunk: usize,
    line: usize,
    r#match: &'static str,
}

#[derive(Serialize)]
struct NoteEntry<'a> {
    kind: &'static str,
    path: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<&'a [usize]>,
}

#[derive(Default, Serialize)]
struct ErrorEntry<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    details: Vec<String>,
    chunks: Vec<Chunk<'a>>,
}

#[derive(Serialize)]
struct Chunk<'a> {
    chunk: usize,
    line: usize,
    kind: &'static str,
    message: String,
    expected: Vec<&'a str>,
    nearest_line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Differing<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found_line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<&'a [usize]>,
}

#[derive(Serialize)]
struct Differing<'a> {
    line: usize,
    kind: &'static str,
    expected: &'a str,
    found: Option<&'a str>,
}

impl<'a> Document<'a> {
    fn new(outcome: &'a Outcome, exit: Exit) -> Self {
        let status = match (outcome, outcome.exit()) {
            (Outcome::Applied(_), _) => Status::Applied,
            (Outcome::Checked(_) | Outcome::Shown(_), _) => Status::Checked,
            (Outcome::Undone(_), _) => Status::Undone,
            (Outcome::Recovered(_), _) => Status::Recovered,
            (_, Exit::Refused) => Status::Refused,
            (_, _) => Status::Failed,
        };
        let diff = match outcome {
            Outcome::Shown(preview) => Some(String::from_utf8_lossy(&preview.diff).into_owned()),
            _ => None,
        };
        let mut document = Self {
            version: VERSION,
            status,
            exit_code: exit.code(),
            changes: Vec::new(),
            hunks: Vec::new(),
            notes: Vec::new(),
            errors: errors(outcome),
            diff,
        };
        if let Some(report) = outcome.report() {
            document.tell(report);
        }
        document
    }

    fn tell(&mut self, report: &'a Report) {
        self.changes = report
            .changes
            .iter()
            .map(|change| Change {
                kind: change.kind.name(),
                path: &change.path,
            })
            .collect();
        self.hunks = report.landed.iter().map(Hunks::from).collect();
        self.notes = report.notes.iter().map(NoteEntry::from).collect();
    }
}

impl<'a> From<&'a Landed> for Hunks<'a> {
    fn from(landed: &'a Landed) -> Self {
        let place = |landing: &edit::Landing| Place {
            chunk: landing.chunk + 1,
            line: landing.first_line,
            r#match: landing.kind.name(),
        };
        Self {
            operation: landed.operation + 1,
            line: landed.line,
            path: &landed.path,
            chunks: landed.landings.iter().map(place).collect(),
        }
    }
}

impl<'a> From<&'a Note> for NoteEntry<'a> {
    fn from(note: &'a Note) -> Self {
        let (chunk, candidates) = match note {
            Note::Ambiguous { ambiguity, .. } => (
                Some(ambiguity.chunk + 1),
                Some(&*ambiguity.candidates.lines),
            ),
            Note::Loose { landing, .. } => (Some(landing.chunk + 1), None),
            _ => (None, None),
        };
        Self {
            kind: note.name(),
            path: note.path().display().to_string(),
            message: words::sentence(note),
            chunk,
            candidates,
        }
    }
}

fn plain(kind: &'static str, message: String) -> ErrorEntry<'static> {
    ErrorEntry {
        kind,
        message,
        ..ErrorEntry::default()
    }
}

fn errors(outcome: &Outcome) -> Vec<ErrorEntry<'_>> {
    match outcome {
        Outcome::Applied(_)
        | Outcome::Checked(_)
        | Outcome::Shown(_)
        | Outcome::Undone(_)
        | Outcome::Recovered(_) => Vec::new(),
        Outcome::NothingTaken(_) | Outcome::NotUndone(_) | Outcome::NotARecord(_) => {
            undo_errors(outcome)
        }
        Outcome::NotAPatch(problem) => vec![ErrorEntry::from(problem)],
        Outcome::NoSignalMask(problem) => vec![plain("signals-not-held", problem.to_string())],
        Outcome::NoRoots(problem) => vec![plain("roots-not-opened", problem.to_string())],
        Outcome::NotApplied(ApplyError::Failed(failures)) => {
            failures.iter().map(ErrorEntry::from).collect()
        }
        Outcome::NotApplied(problem @ ApplyError::NotRolledBack { failure, .. }) => {
            vec![ErrorEntry {
                kind: "not-rolled-back",
                message: problem.to_string(),
                ..ErrorEntry::from(&**failure)
            }]
        }
        Outcome::NotApplied(problem @ ApplyError::NotRecovered(error)) => vec![ErrorEntry {
            hint: Some(words::recovery_hint(error).to_owned()),
            errno: error.errno(),
            ..plain("not-recovered", problem.to_string())
        }],
        Outcome::NotApplied(problem @ ApplyError::Pending) => vec![ErrorEntry {
            hint: Some(words::PENDING_HINT.to_owned()),
            ..plain("interrupted", problem.to_string())
        }],
        Outcome::NotApplied(problem @ ApplyError::Empty) => {
            vec![plain("empty-patch", problem.to_string())]
        }
        Outcome::NotApplied(problem) => vec![plain("not-applied", problem.to_string())],
    }
}

fn undo_errors(outcome: &Outcome) -> Vec<ErrorEntry<'_>> {
    match outcome {
        Outcome::NothingTaken(refusal) => vec![ErrorEntry {
            hint: refusal.hint(),
            ..plain(refusal.name(), refusal.to_string())
        }],
        Outcome::NotUndone(UndoError::Changed(paths)) => {
            paths.iter().map(|path| changed_since(path)).collect()
        }
        Outcome::NotUndone(problem @ UndoError::Already) => {
            vec![plain("undone-already", problem.to_string())]
        }
        Outcome::NotUndone(problem) => vec![plain("not-undone", problem.to_string())],
        Outcome::NotARecord(problem) => vec![plain("not-a-record", problem.to_string())],
        _ => Vec::new(),
    }
}

/// A file that keeps a patch from being taken back.
fn changed_since(path: &Path) -> ErrorEntry<'_> {
    ErrorEntry {
        kind: "changed-since",
        path: path.to_str(),
        message: words::changed_since(path),
        ..ErrorEntry::default()
    }
}

impl<'a> From<&'a ParseError> for ErrorEntry<'a> {
    fn from(problem: &'a ParseError) -> Self {
        Self {
            kind: "parse-error",
            line: problem.line(),
            message: words::shortened(&problem.to_string()),
            hint: problem.hint().map(ToString::to_string),
            details: problem.details(),
            ..Self::default()
        }
    }
}

impl<'a> From<&'a Failure> for ErrorEntry<'a> {
    fn from(failure: &'a Failure) -> Self {
        let (step, cause) = step(&failure.kind);
        // An undo has neither.
        let has_line = failure.line > 0;
        let chunks = match &failure.kind {
            FailureKind::Edit(EditError::Chunks(chunks)) => {
                let chunk = |chunk| Chunk::new(chunk, &failure.path);
                chunks.iter().map(chunk).collect()
            }
            _ => Vec::new(),
        };
        Self {
            kind: failure.kind.name(),
            operation: has_line.then_some(failure.operation + 1),
            line: has_line.then_some(failure.line),
            path: Some(&failure.path),
            message: words::shortened(&failure.to_string()),
            step,
            errno: match cause {
                Some(Cause::Os { code }) => Some(*code),
                _ => None,
            },
            hint: words::hint(&failure.kind).map(str::to_owned),
            details: words::details(failure),
            chunks,
        }
    }
}

/// Names the step that failed, and its cause.
fn step(kind: &FailureKind) -> (Option<&'static str>, Option<&Cause>) {
    let (name, cause) = match kind {
        FailureKind::Read(cause) => ("read", cause),
        FailureKind::Write(cause) => ("write", cause),
        FailureKind::CreateParents(cause) => ("create-parents", cause),
        FailureKind::Delete(cause) => ("delete", cause),
        FailureKind::RemoveOriginal(cause) => ("remove-original", cause),
        FailureKind::Edit(_) => return (Some("edit"), None),
        _ => return (None, None),
    };
    (Some(name), Some(cause))
}

impl<'a> Chunk<'a> {
    fn new(failure: &'a ChunkFailure, path: &str) -> Self {
        use locate::FailureKind as Kind;
        let (expected, found_line): (&[String], _) = match &failure.kind {
            Kind::HeaderNotFound { header } => (std::slice::from_ref(header), None),
            Kind::NotFound { expected } | Kind::Ambiguous { expected, .. } => (expected, None),
            Kind::NotAtEnd { expected, found } => (expected, *found),
            Kind::OutOfOrder {
                expected, found, ..
            }
            | Kind::AlreadyApplied { expected, found } => (expected, Some(*found)),
        };
        let candidates = match &failure.kind {
            Kind::Ambiguous { candidates, .. } => Some(&*candidates.lines),
            _ => None,
        };
        let nearest = failure.nearest.as_deref();
        Self {
            chunk: failure.chunk + 1,
            line: failure.line,
            kind: failure.kind.name(),
            message: words::shortened(&failure.message(path)),
            expected: expected.iter().map(String::as_str).collect(),
            nearest_line: nearest.map(|nearest| nearest.line),
            difference: nearest.map(Differing::from),
            found_line,
            candidates,
        }
    }
}

impl<'a> From<&'a Nearest> for Differing<'a> {
    fn from(nearest: &'a Nearest) -> Self {
        let differing = &nearest.differing;
        Self {
            line: differing.line,
            kind: differing.difference.name(),
            expected: &differing.expected,
            found: differing.actual.as_deref(),
        }
    }
}
