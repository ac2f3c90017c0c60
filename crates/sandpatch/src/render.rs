//! Words for people and models: the only module that prints.
//!
//! Results go to standard output; diagnosis, notes and hints to standard
//! error. The first line of every failure is the reference's, since programs
//! match on it.

use std::io::Write;
use std::path::Path;

use apply_patch::failure::{Cause, Failure, FailureKind, shown};
use apply_patch::report::{ChangeKind, Note, Report};
use apply_patch::syntax::ParseError;

use sandbox_policy::plan::NotCovered;

use crate::exit::Exit;
use crate::patch::input::InputError;

/// Prints a finished message, and returns the code of a failure.
pub fn error(message: &str) -> Exit {
    stderr(&format!("{message}\n"));
    Exit::DoesNotApply
}

/// Prints a note.
pub fn note(message: &str) {
    stderr(&format!("note: {message}\n"));
}

/// Prints what the command-line parser says.
pub fn usage(error: &clap::Error) -> Exit {
    let text = error.render().to_string();
    if error.use_stderr() {
        stderr(&text);
        return Exit::Usage;
    }
    stdout(&text)
}

/// Prints why there is no patch to apply.
pub fn input_error(problem: &InputError) -> Exit {
    match problem {
        InputError::StdinUnreadable(_) | InputError::StdinNotUtf8 => error(&format!(
            "Error: Failed to read PATCH from stdin.\n{problem}"
        )),
        _ => error(&format!("Error: {problem}")),
    };
    match problem {
        InputError::StdinEmpty => Exit::Usage,
        _ => Exit::DoesNotApply,
    }
}

/// Prints why a text is not a patch.
pub fn parse_error(problem: &ParseError) -> Exit {
    let mut text = format!("{}\n", shortened(&problem.to_string()));
    for line in problem.details() {
        text.push_str(&format!("  {line}\n"));
    }
    stderr(&text);
    Exit::DoesNotApply
}

/// How many failing operations are explained: enough to see what is wrong.
const MOST_FAILURES: usize = 50;

/// Prints the operations that cannot be done.
pub fn failures(failures: &[Failure]) -> Exit {
    let mut text = String::new();
    for failure in failures.iter().take(MOST_FAILURES) {
        text.push_str(&shortened(&failure.to_string()));
        text.push('\n');
        for line in details(failure) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    if let Some(more) = failures
        .len()
        .checked_sub(MOST_FAILURES)
        .filter(|more| *more > 0)
    {
        text.push_str(&format!("note: {more} more operations fail\n"));
    }
    text.push_str("note: nothing was changed\n");
    stderr(&text);
    match failures.iter().any(Failure::is_policy) {
        true => Exit::Refused,
        false => Exit::DoesNotApply,
    }
}

/// Returns the lines below a failure: where it is in the patch, what is near, what to do.
fn details(failure: &Failure) -> Vec<String> {
    let mut lines = match &failure.kind {
        FailureKind::Edit(error) => error.details(&shown(&failure.absolute)),
        _ => Vec::new(),
    };
    lines.push(format!(
        "in operation {} (line {} of the patch), path {}",
        failure.operation + 1,
        failure.line,
        shown(Path::new(&failure.path))
    ));
    lines.extend(hint(&failure.kind).map(|hint| format!("hint: {hint}")));
    lines
}

fn hint(kind: &FailureKind) -> Option<&'static str> {
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
            "a rename without an edit keeps it, and so does an edit without a move; file capabilities only root without a sandbox (--backend none)",
        ),
        Cause::HardLinked { .. } => Some("pass --linked-files follow or break"),
        Cause::TrailingSlash => Some("leave out the slash at the end of the path"),
        Cause::Dangling { .. } => Some("delete the link first, or name a file that exists"),
        Cause::Os { code } => os_hint(*code),
        Cause::Changed => Some("try again when nothing else writes there"),
        _ => None,
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

/// Prints the summary of an applied patch, and what the reader should know.
pub fn report(report: &Report) -> Exit {
    let mut notes = String::new();
    for note in &report.notes {
        notes.push_str(&sentence(note));
        notes.push('\n');
    }
    stderr(&notes);
    stdout(&summary(report))
}

fn summary(report: &Report) -> String {
    if report.changes.is_empty() {
        return "Success. No file needed a change.\n".to_owned();
    }
    let mut text = String::from("Success. Updated the following files:\n");
    for kind in [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted] {
        for change in report.changes.iter().filter(|change| change.kind == kind) {
            text.push_str(&format!("{} {}\n", kind.letter(), change.path));
        }
    }
    text
}

fn sentence(note: &Note) -> String {
    match note {
        Note::Unchanged { path } => {
            format!("note: {path} is unchanged: it holds the patch's result already")
        }
        Note::ThroughLink { path, target } => {
            format!(
                "note: {path} is a symbolic link; its target {} was changed",
                target.display()
            )
        }
        Note::LinkBecameFile { path, target } => format!(
            "note: the source of {path} was a symbolic link to {}, which stays; {path} is a regular file",
            target.display()
        ),
        Note::LinkReplaced { path } => {
            format!("note: {path} was a symbolic link, and was replaced; its target stays")
        }
        Note::LinksFollowed { path, others } => {
            format!("note: {path} has {others} other name(s) (hard links), which changed with it")
        }
        Note::LinksBroken { path, others } => {
            format!("note: {others} other name(s) (hard links) of {path} keep the old content")
        }
        Note::Ambiguous { path, ambiguity } => format!(
            "warning: {path}: chunk {} (line {} of the patch) fits several places (lines {}); the first was taken",
            ambiguity.chunk + 1,
            ambiguity.line,
            ambiguity.candidates
        ),
        Note::Loose { path, landing } => format!(
            "note: {path}: chunk {} was matched at line {}, ignoring {}",
            landing.chunk + 1,
            landing.first_line,
            landing.kind.ignores()
        ),
        Note::InPlace { path } => {
            format!("note: {path} was written in place, since a new file cannot take its place")
        }
        Note::AttributesLost { path, what } => {
            format!("warning: {path} could not keep its {}", what.join(", "))
        }
        Note::LeftBehind { path } => {
            format!(
                "warning: the temporary file {} could not be removed",
                path.display()
            )
        }
        other => format!("note: {other:?}"),
    }
}

/// Prints what the sandbox could not enforce and why.
pub fn no_sandbox(problem: &linux_sandbox::Error) -> Exit {
    stderr(&format!(
        "Error: the sandbox could not be set up: {problem}\n"
    ));
    stderr(&format!("  hint: {}\n", problem.hint()));
    Exit::NoSandbox
}

/// Prints what the policy asks for and this host cannot give.
pub fn refused_plan(problem: &sandbox_policy::PlanError) -> Exit {
    stderr(&format!(
        "Error: the sandbox could not be set up: {problem}\n"
    ));
    Exit::NoSandbox
}

/// Prints the parts of the policy that are not covered.
pub fn not_covered(plan: &sandbox_policy::Plan) {
    let names: Vec<String> = missing_names(plan);
    if !names.is_empty() {
        note(&format!(
            "not protected, since it does not exist yet: {}",
            names.join(", ")
        ));
    }
}

fn missing_names(plan: &sandbox_policy::Plan) -> Vec<String> {
    let names = plan.not_covered.iter().filter_map(|gap| match gap {
        NotCovered::MissingProtectedName(path) => Some(path.as_path().display().to_string()),
        _ => None,
    });
    names.collect()
}

/// Cuts a message that quotes an unreasonable amount of text.
fn shortened(message: &str) -> String {
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

fn stderr(text: &str) {
    // There is nowhere left to complain to.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn stdout(text: &str) -> Exit {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Exit::Success,
        Err(problem) => error(&format!(
            "Error: done, but the report could not be written to standard output: {problem}"
        )),
    }
}
