//! The only module that prints.
//!
//! Results go to standard output; diagnosis, notes and hints to standard
//! error. The first line of every failure is the reference's, since programs
//! match on it.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

use apply_patch::failure::Failure;
use apply_patch::report::Report;
use apply_patch::syntax::ParseError;
use apply_patch::{ApplyError, UndoError};
use sandbox_policy::plan::NotCovered;

use crate::cli::Action;
use crate::exit::Exit;
use crate::json;
use crate::patch::input::InputError;
use crate::patch::outcome::Outcome;
use crate::words::{self, shortened};

/// Prints a finished message, and returns the code of a failure.
pub fn error(message: &str) -> Exit {
    stderr(&format!("{message}\n"));
    Exit::DoesNotApply
}

/// Prints a note.
pub fn note(message: &str) {
    stderr(&format!("note: {message}\n"));
}

/// Prints a warning.
pub fn warning(message: &str) {
    stderr(&format!("warning: {message}\n"));
}

/// Prints an answer to a question; one that nobody can read is a failure.
pub fn answer(text: &str) -> Exit {
    printed(text.as_bytes(), Exit::Success, NOT_DONE)
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

/// Prints what came of a patch in words, and returns the code: the given one, or
/// that of a failure when nobody can read a success.
pub fn outcome(outcome: &Outcome, exit: Exit) -> Exit {
    if let Some(report) = outcome.report() {
        notes(report);
    }
    let (result, lost): (Cow<'_, [u8]>, _) = match outcome {
        Outcome::Applied(report) => (text(words::summary(report, Action::Apply)), DONE),
        Outcome::Undone(report) => (text(words::undone(report)), DONE),
        Outcome::Recovered(report) => (text(words::recovered(report)), DONE),
        Outcome::Checked(report) => (text(words::summary(report, Action::Check)), NOT_DONE),
        Outcome::Shown(preview) => (Cow::Borrowed(&preview.diff), NOT_DONE),
        failed => {
            failure(failed);
            return exit;
        }
    };
    printed(&result, exit, lost)
}

fn text(text: impl Into<String>) -> Cow<'static, [u8]> {
    Cow::Owned(text.into().into_bytes())
}

/// Prints why nothing came of a patch.
fn failure(outcome: &Outcome) {
    match outcome {
        Outcome::NotAPatch(problem) => parse_error(problem),
        Outcome::NothingTaken(refusal) => hinted(&format!("Error: {refusal}"), refusal.hint()),
        Outcome::NotUndone(problem) => not_undone(problem),
        Outcome::NotARecord(problem) => {
            stderr(&format!("Error: what was kept is damaged: {problem}\n"))
        }
        Outcome::NoSignalMask(problem) => {
            stderr(&format!("Error: signals cannot be held back: {problem}\n"));
        }
        Outcome::NoRoots(problem) => stderr(&format!("Error: {problem}\n")),
        Outcome::NotApplied(ApplyError::Failed(problems)) => failures(problems),
        Outcome::NotApplied(problem @ ApplyError::NotRecovered(error)) => {
            hinted(&problem.to_string(), Some(words::recovery_hint(error)));
        }
        Outcome::NotApplied(problem @ ApplyError::Pending) => {
            stderr(&format!("{problem}\n  hint: {}\n", words::PENDING_HINT));
        }
        Outcome::NotApplied(problem) => stderr(&format!("{problem}\n")),
        _ => {}
    }
}

fn hinted(message: &str, hint: Option<impl Display>) {
    let hint = hint.map(|hint| format!("  hint: {hint}\n"));
    stderr(&format!("{message}\n{}", hint.unwrap_or_default()));
}

/// Prints why a patch was not taken back; the paths are the patch's.
fn not_undone(problem: &UndoError) {
    let mut text = "Error: not undone, since this would be lost:\n".to_owned();
    match problem {
        UndoError::Changed(paths) => {
            for path in paths {
                text.push_str(&format!("  {}\n", words::changed_since(path)));
            }
        }
        UndoError::Already => {
            text = format!(
                "Error: {problem}\n  hint: it is not listed any more; undo again for the one before\n"
            );
        }
        other => text = format!("Error: {other}\n"),
    }
    text.push_str("note: nothing was changed\n");
    stderr(&text);
}

/// Prints what came of a patch as one JSON object, and returns the code as [`outcome`] does.
pub fn json(outcome: &Outcome, exit: Exit) -> Exit {
    let lost = match outcome {
        Outcome::Applied(_) | Outcome::Undone(_) | Outcome::Recovered(_) => DONE,
        _ => NOT_DONE,
    };
    match json::document(outcome, exit) {
        Ok(text) => printed(text.as_bytes(), exit, lost),
        Err(problem) => error(&format!("Error: {lost} could not be made: {problem}")),
    }
}

fn parse_error(problem: &ParseError) {
    let mut text = format!("{}\n", shortened(&problem.to_string()));
    for line in problem.details() {
        text.push_str(&format!("  {line}\n"));
    }
    stderr(&text);
}

/// How many failing operations are explained: enough to see what is wrong.
const MOST_FAILURES: usize = 50;

/// Prints the operations that cannot be done.
fn failures(failures: &[Failure]) {
    let mut text = String::new();
    for failure in failures.iter().take(MOST_FAILURES) {
        text.push_str(&shortened(&failure.to_string()));
        text.push('\n');
        for line in words::details(failure) {
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
}

/// Prints that something interrupted could not be ended, to one who asked for something else.
pub fn not_ended(problem: &safe_fs::Error) {
    warning(&format!(
        "an interrupted patch is here and could not be ended: {problem}\n  hint: {}",
        words::recovery_hint(problem)
    ));
}

/// Prints what the reader of a report should know.
pub fn notes(report: &Report) {
    let mut text = String::new();
    for note in &report.notes {
        text.push_str(&format!(
            "{}: {}\n",
            words::weight(note),
            words::sentence(note)
        ));
    }
    stderr(&text);
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
    stderr(&format!("  hint: {}\n", problem.hint()));
    Exit::NoSandbox
}

/// Prints the parts of the policy that are not covered.
pub fn not_covered(plan: &sandbox_policy::Plan) {
    not_protected(&missing_names(&plan.not_covered));
}

/// Prints what became of the names that were to be held: which could not be, and
/// into which somebody put something.
pub fn placeholders(plan: &sandbox_policy::Plan, report: &linux_sandbox::RunReport) {
    let known = missing_names(&plan.not_covered);
    let mut names = missing_names(&report.enforcement.not_covered);
    names.retain(|name| !known.contains(name));
    not_protected(&names);
    for path in &report.filled_placeholders {
        note(&format!(
            "{} came up outside of the sandbox while the command ran; it was left as it is",
            path.display()
        ));
    }
}

fn not_protected(names: &[String]) {
    if !names.is_empty() {
        note(&format!(
            "not protected, since it does not exist yet: {}",
            names.join(", ")
        ));
    }
}

fn missing_names(gaps: &[NotCovered]) -> Vec<String> {
    let names = gaps.iter().filter_map(|gap| match gap {
        NotCovered::MissingProtectedName(path) => Some(path.as_path().display().to_string()),
        _ => None,
    });
    names.collect()
}

fn stderr(text: &str) {
    let text = words::plain_message(text);
    // There is nowhere left to complain to.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn stdout(text: &str) -> Exit {
    printed(text.as_bytes(), Exit::Success, DONE)
}

/// How the message begins when the report of something done is lost.
const DONE: &str = "done, but the report";

/// The same where nothing was to be done, or nothing could be.
const NOT_DONE: &str = "the report";

/// Writes a result; a success that nobody can read is a failure.
fn printed(bytes: &[u8], exit: Exit, lost: &str) -> Exit {
    let mut out = std::io::stdout().lock();
    let Err(problem) = out.write_all(bytes).and_then(|()| out.flush()) else {
        return exit;
    };
    let failed = error(&format!(
        "Error: {lost} could not be written to standard output: {problem}"
    ));
    match exit {
        Exit::Success => failed,
        other => other,
    }
}
