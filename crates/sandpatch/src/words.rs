//! Words for people and models, as pure functions: what is printed as text and
//! what a JSON report quotes are the same sentences.

use std::path::Path;

use apply_patch::failure::{Cause, Failure, FailureKind, shown};
use apply_patch::report::{ChangeKind, NotShown, Note, Report};

use safe_fs::{Direction, ErrorKind};

use crate::cli::Action;

/// Returns the lines below a failure: where it is in the patch, what is near, what to do.
pub fn details(failure: &Failure) -> Vec<String> {
    let mut lines = match &failure.kind {
        FailureKind::Edit(error) => error.details(&shown(&failure.absolute)),
        _ => Vec::new(),
    };
    let path = shown(Path::new(&failure.path));
    lines.push(match failure.line {
        0 => format!("path {path}"),
        line => format!(
            "in operation {} (line {line} of the patch), path {path}",
            failure.operation + 1
        ),
    });
    lines.extend(hint(&failure.kind).map(|hint| format!("hint: {hint}")));
    lines
}

/// Returns what the reader could do next.
pub fn hint(kind: &FailureKind) -> Option<&'static str> {
    let (FailureKind::Read(cause)
    | FailureKind::Write(cause)
    | FailureKind::CreateParents(cause)
    | FailureKind::Delete(cause)
    | FailureKind::RemoveOriginal(cause)) = kind
    else {
        return None;
    };
    match cause {
        Cause::Outside { .. } => {
            Some("only paths below the current directory, or below a --writable DIR, are patched")
        }
        Cause::Protected { .. } => Some("repository and agent settings are never patched"),
        Cause::Exists => {
            Some("edit it with '*** Update File:', delete it first, or pass --on-existing replace")
        }
        Cause::StillNeeded { .. } => Some("put that operation before this one"),
        Cause::TargetTwice { .. } => Some("give each file its own destination"),
        Cause::OntoOwnTarget => Some("delete the link, or move the file itself"),
        Cause::WouldLose { .. } => Some(
            "a rename without an edit keeps it, and so does an edit without a move; file capabilities \
             only root without a sandbox (--backend none)",
        ),
        Cause::HardLinked { .. } => Some("pass --linked-files follow or break"),
        Cause::TrailingSlash => Some("leave out the slash at the end of the path"),
        Cause::Dangling { .. } => Some("delete the link first, or name a file that exists"),
        Cause::Os { code } => os_hint(*code),
        Cause::Changed => Some("try again when nothing else writes there"),
        _ => None,
    }
}

/// What helps when an interrupted patch has to be ended first.
pub const PENDING_HINT: &str = "'sandpatch undo --recover' ends it, and so does the next patch";

/// Returns what helps when an interrupted patch cannot be ended.
pub fn recovery_hint(error: &safe_fs::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotAJournal => {
            "it may be a copy, or have been linked or edited: remove it only if no patch was interrupted here"
        }
        ErrorKind::Busy => "try again when the other patch has ended",
        ErrorKind::ForeignOwner { .. } => {
            "'sandpatch undo --recover' has to be run by that user; root can with --as-user"
        }
        ErrorKind::Outside { .. } => {
            "a journal can be forged: if you know that your own patch wrote there, name that \
             directory with --writable DIR; else remove .sandpatch-journal"
        }
        ErrorKind::Unreachable => {
            "put it back, or mount it again; to give up the way back, remove .sandpatch-journal"
        }
        ErrorKind::NoSpace => "make room first",
        _ => "see the permissions of that file, and who its owner is",
    }
}

/// Returns what helps against an error of the system, by its number (errno(3)).
fn os_hint(code: i32) -> Option<&'static str> {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    const EMFILE: i32 = 24;
    const EROFS: i32 = 30;
    match code {
        EPERM | EACCES => Some("see the permissions and flags of the file and of its directory"),
        EMFILE => Some("each file of a patch is held open: raise the limit (ulimit -n)"),
        EROFS => Some("it is read-only here: the file system is, or the sandbox holds it"),
        _ => None,
    }
}

/// Returns the summary of a patch that applies.
pub fn summary(report: &Report, action: Action) -> String {
    let (title, nothing) = match action {
        Action::Apply => (
            "Success. Updated the following files:\n",
            "Success. No file needed a change.\n",
        ),
        Action::Check | Action::Diff => (
            "Would update the following files:\n",
            "No file would need a change.\n",
        ),
    };
    if report.changes.is_empty() {
        return nothing.to_owned();
    }
    title.to_owned() + &lines(report)
}

/// Returns the summary of a patch that was taken back.
pub fn undone(report: &Report) -> String {
    let title = "Undone. Updated the following files:\n".to_owned();
    title + &lines(report)
}

/// Returns what came of a recovery.
pub fn recovered(report: &Report) -> &'static str {
    match report.notes.is_empty() {
        true => "Nothing to recover.\n",
        false => "Recovered.\n",
    }
}

/// Returns a line for each change, by kind as the reference sorts them.
fn lines(report: &Report) -> String {
    let mut text = String::new();
    for kind in [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted] {
        for change in report.changes.iter().filter(|change| change.kind == kind) {
            text.push_str(&format!("{} {}\n", kind.letter(), change.path));
        }
    }
    text
}

/// Returns the word before a note: a warning is of something that may have gone wrong.
pub const fn weight(note: &Note) -> &'static str {
    match note {
        Note::Ambiguous { .. }
        | Note::AttributesLost { .. }
        | Note::LeftBehind { .. }
        | Note::LinksParted { .. }
        | Note::NotRestored { .. }
        | Note::NotShown { .. } => "warning",
        _ => "note",
    }
}

/// Returns the sentence of a note.
pub fn sentence(note: &Note) -> String {
    match note {
        Note::Unchanged { path } => {
            format!("{path} is unchanged: it holds the patch's result already")
        }
        Note::Ambiguous { .. } | Note::Loose { .. } => of_a_chunk(note),
        Note::InPlace { path } => {
            format!("{path} was written in place, since a new file cannot take its place")
        }
        Note::AttributesLost { path, what } => {
            format!("{path} could not keep its {}", what.join(", "))
        }
        Note::LeftBehind { path } => format!(
            "the temporary file {} could not be removed; the next patch removes it",
            path.display()
        ),
        Note::Recovered { direction } => recovered_by(*direction).to_owned(),
        Note::NotRestored { path, kept } => not_restored(path, kept.as_deref()),
        Note::NotShown { path, why } => not_shown(path, *why),
        Note::NoUndo { why } => format!("this patch cannot be undone: {why}"),
        Note::NoJournal => NO_JOURNAL.to_owned(),
        other => of_links(other),
    }
}

const NO_JOURNAL: &str = "no directory takes a journal here, so a kill in the middle of this patch could not have been mended";

fn of_a_chunk(note: &Note) -> String {
    match note {
        Note::Ambiguous { path, ambiguity } => format!(
            "{path}: chunk {} (line {} of the patch) fits several places (lines {}); the first was taken",
            ambiguity.chunk + 1,
            ambiguity.line,
            ambiguity.candidates
        ),
        Note::Loose { path, landing } => format!(
            "{path}: chunk {} was matched at line {}, ignoring {}",
            landing.chunk + 1,
            landing.first_line,
            landing.kind.ignores()
        ),
        other => other.name().to_owned(),
    }
}

fn of_links(note: &Note) -> String {
    match note {
        Note::ThroughLink { path, target } => format!(
            "{path} is a symbolic link; its target {} was changed",
            target.display()
        ),
        Note::LinkBecameFile { path, target } => format!(
            "the source of {path} was a symbolic link to {}, which stays; {path} is a regular file",
            target.display()
        ),
        Note::LinkReplaced { path } => {
            format!("{path} was a symbolic link, and was replaced; its target stays")
        }
        Note::LinksFollowed { path, others } => {
            format!("{path} has {others} other name(s) (hard links), which changed with it")
        }
        Note::LinksBroken { path, others } => {
            format!("{others} other name(s) (hard links) of {path} keep the old content")
        }
        Note::LinksParted { path, others } => {
            format!("{path} had {others} other name(s) (hard links), and is a file of its own now")
        }
        other => other.name().to_owned(),
    }
}

const fn recovered_by(direction: Direction) -> &'static str {
    match direction {
        Direction::RolledBack => "an interrupted patch was taken back",
        Direction::Completed => {
            "what was interrupted at its very end was finished; that cannot be undone"
        }
    }
}

/// Returns what is said of a file that keeps a patch from being undone.
pub fn changed_since(path: &Path) -> String {
    format!("{} was changed since the patch was applied", plain(path))
}

/// Spells a path that a terminal must not act on.
pub fn plain(path: &Path) -> String {
    without_controls(&path.display().to_string(), &[])
}

/// Spells a message that a terminal must not act on: the names that it quotes
/// may be anybody's. Lines and tabs are the message's own; a NUL does
/// nothing, and is shown as the reference shows it.
pub fn plain_message(text: &str) -> String {
    without_controls(text, &['\n', '\t', '\0'])
}

fn without_controls(text: &str, but: &[char]) -> String {
    let escaped = |c: char| match c.is_control() && !but.contains(&c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

fn not_restored(path: &Path, kept: Option<&Path>) -> String {
    let path = path.display();
    let kept = kept.map(|kept| format!("; what it was before is in {}", kept.display()));
    format!(
        "{path} belonged to an interrupted patch, was changed since, and stays as it is{}",
        kept.unwrap_or_default()
    )
}

fn not_shown(path: &Path, why: NotShown) -> String {
    let why = match why {
        NotShown::Binary => {
            "it is binary (it has NUL bytes), so the diff does not show how it changes"
        }
        NotShown::Special => "it is no regular file, so the diff does not show it",
        NotShown::Unreadable => "its old content cannot be read, so the diff does not show it",
        NotShown::Elsewhere => {
            "it lies outside the current directory, so git apply cannot apply its part of the diff here"
        }
    };
    format!("{}: {why}", path.display())
}

/// Cuts a message that quotes an unreasonable amount of text.
pub fn shortened(message: &str) -> String {
    const LONGEST_BYTES: usize = 16 * 1024;
    if message.len() <= LONGEST_BYTES {
        return message.to_owned();
    }
    let mut end = LONGEST_BYTES;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} more bytes)", &message[..end], message.len() - end)
}
