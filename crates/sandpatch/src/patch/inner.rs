//! The stage that applies a patch under the confinement it finds itself in.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use apply_patch::report::{Note, Report};
use apply_patch::syntax::parse;
use apply_patch::undo::Recorded;
use apply_patch::{ApplyError, UndoError, Undone};
use clap::{Parser, ValueEnum};
use nix::sys::signal::SigSet;
use rustix::fs::OFlags;
use rustix::process::{Resource, Rlimit};
use safe_fs::{Guard, GuardDepth, Resolver, Roots};
use sandbox_policy::gitdir::{parse_commondir, parse_gitdir};

use super::input::{self, InputError, Source};
use super::outcome::Outcome;
use crate::cli::{Action, Codes, Dialect, Form, HAND_OFF, HandOff, OutputSwitches, PatchSwitches};
use crate::exit::Exit;
use crate::{render, sys};

/// The current directory, whatever its path leads to by now: whoever may write
/// above it can put a link in its place.
pub const HERE: &str = ".";

/// What the stage is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// Applies the patch that it reads
    Patch,
    /// Takes a patch back by the record that it reads
    Undo,
    /// Ends what an interrupted patch began
    Recover,
}

/// What is read for a task.
#[derive(Debug)]
pub enum Input {
    /// A patch to be applied.
    Patch(String),
    /// A record to be taken back.
    Record(Vec<u8>),
    /// Nothing: what was interrupted says it all.
    Nothing,
}

impl Input {
    /// Returns the task that it is for.
    pub const fn task(&self) -> Task {
        match self {
            Self::Patch(_) => Task::Patch,
            Self::Record(_) => Task::Undo,
            Self::Nothing => Task::Recover,
        }
    }

    /// Returns the bytes to hand on.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Patch(text) => text.as_bytes(),
            Self::Record(bytes) => bytes,
            Self::Nothing => &[],
        }
    }
}

/// What one run of the stage needs to know.
#[derive(Debug)]
pub struct Job {
    /// What to do.
    pub task: Task,
    /// How far to go, and how to say what came of it.
    pub output: OutputSwitches,
    /// Where results may differ.
    pub switches: PatchSwitches,
    /// The writable roots.
    pub roots: Vec<PathBuf>,
    /// Whose exit codes to use.
    pub codes: Codes,
    /// Where what the patch replaces is to be recorded.
    pub record: Option<File>,
    /// Whether to say nothing but what is noteworthy.
    pub quiet: bool,
    /// Why it is not recorded.
    pub no_undo: Option<String>,
}

/// Runs the inner stage from its arguments.
pub fn main(arguments: Vec<OsString>) -> Exit {
    let mut arguments = arguments.into_iter();
    let Some(patch) = arguments.next() else {
        return render::error("Error: --codex-run-as-apply-patch requires a UTF-8 PATCH argument.");
    };
    if current_directory().is_err() {
        return Exit::DoesNotApply;
    }
    let rest: Vec<OsString> = arguments.collect();
    let job = match rest.first() {
        Some(first) if first == HAND_OFF => match HandOff::try_parse_from(&rest[1..]) {
            Ok(hand_off) => Job::from(hand_off),
            Err(error) => return render::error(&format!("Error: bad hand-off: {error}")),
        },
        _ => Job::by_hand(),
    };
    let source = Source::of_patch_argument(patch);
    let input = match job.task {
        Task::Patch => input::read(source).map(Input::Patch),
        Task::Undo => input::bytes(source).map(Input::Record),
        Task::Recover => Ok(Input::Nothing),
    };
    match input {
        Ok(input) => run(job, &input),
        Err(InputError::ArgumentNotUtf8) => {
            render::error("Error: --codex-run-as-apply-patch requires a UTF-8 PATCH argument.")
        }
        Err(error) => render::input_error(&error),
    }
}

/// Does a job with what was read for it, and prints what came of it.
pub fn run(mut job: Job, input: &Input) -> Exit {
    sys::ignore_file_size_signal();
    raise_descriptor_limit();
    let outcome = match input {
        Input::Patch(text) => apply(text, &mut job),
        Input::Record(bytes) => undo(bytes, &mut job),
        Input::Nothing => recover(&mut job),
    };
    let exit = match job.codes {
        Codes::Own => outcome.exit(),
        Codes::Reference => outcome.exit().as_reference(),
    };
    match (&outcome, job.output.form()) {
        (Outcome::Recovered(report), _) if job.quiet => {
            render::notes(report);
            exit
        }
        (Outcome::NotApplied(ApplyError::NotRecovered(problem)), _) if job.quiet => {
            render::not_ended(problem);
            exit
        }
        (_, Form::Text) => render::outcome(&outcome, exit),
        (_, Form::Json) => render::json(&outcome, exit),
    }
}

impl From<HandOff> for Job {
    fn from(hand_off: HandOff) -> Self {
        let HandOff {
            task,
            output,
            switches,
            roots,
            codes,
            record,
            quiet,
            no_undo,
        } = hand_off;
        Self {
            task,
            output,
            switches,
            roots,
            codes,
            record: record.then(sys::inherited_file),
            quiet,
            no_undo,
        }
    }
}

impl Job {
    /// Returns what the stage does when somebody starts it directly: as the
    /// reference does, but never outside the current directory.
    fn by_hand() -> Self {
        Self {
            output: OutputSwitches::default(),
            switches: PatchSwitches::of(Dialect::Codex),
            roots: vec![PathBuf::from(HERE)],
            codes: Codes::Reference,
            task: Task::Patch,
            record: None,
            quiet: false,
            no_undo: None,
        }
    }
}

fn apply(text: &str, job: &mut Job) -> Outcome {
    let parsed = match parse(text) {
        Ok(parsed) => parsed,
        Err(error) => return Outcome::NotAPatch(error),
    };
    let options = job.switches.options();
    let roots = match ready(job) {
        Ok(roots) => roots,
        Err(outcome) => return outcome,
    };
    let done = match job.output.action() {
        Action::Apply => {
            let record = job.record.as_mut().map(|file| file as &mut dyn Write);
            let done = apply_patch::apply(&parsed.patch, &roots, &options, record);
            done.map(|report| Outcome::Applied(with_undo(report, job)))
        }
        Action::Check => apply_patch::check(&parsed.patch, &roots, &options).map(Outcome::Checked),
        Action::Diff => apply_patch::preview(&parsed.patch, &roots, &options).map(Outcome::Shown),
    };
    done.unwrap_or_else(Outcome::NotApplied)
}

/// Settles whether the patch can be undone: a record that could be written in
/// part is none. Programs are told why there is none; to people it is the usual
/// thing where there is no place for one.
fn with_undo(mut report: Report, job: &mut Job) -> Report {
    let is_partial = |note: &Note| matches!(note, Note::NoUndo { .. });
    if let (Some(file), true) = (&job.record, report.notes.iter().any(is_partial)) {
        // What stays in spite of this is told from a record when it is read.
        let _ = file.set_len(0);
    }
    if let (Some(why), Form::Json) = (job.no_undo.take(), job.output.form()) {
        report.notes.push(Note::NoUndo { why });
    }
    report
}

fn undo(record: &[u8], job: &mut Job) -> Outcome {
    let record = match Recorded::parse(record) {
        Ok(record) => record,
        Err(error) => return Outcome::NotARecord(error),
    };
    let roots = match ready(job) {
        Ok(roots) => roots,
        Err(outcome) => return outcome,
    };
    match apply_patch::undo(&record, &roots, &job.switches.options()) {
        Ok(Undone::Undone(report)) => {
            confirm(job);
            Outcome::Undone(report)
        }
        Ok(Undone::Recovered(report)) => Outcome::Recovered(report),
        Err(UndoError::Apply(error)) => Outcome::NotApplied(error),
        Err(error) => {
            if matches!(error, UndoError::Already) {
                confirm(job);
            }
            Outcome::NotUndone(error)
        }
    }
}

/// Tells the outer stage that the record has served, whether or not anybody can
/// be told the rest.
fn confirm(job: &mut Job) {
    if let Some(record) = &mut job.record {
        // Without it the record stays, and is found to be of no use.
        let _ = record.write_all(b"undone");
    }
}

fn recover(job: &mut Job) -> Outcome {
    let roots = match ready(job) {
        Ok(roots) => roots,
        Err(outcome) => return outcome,
    };
    match apply_patch::recover(&roots) {
        Ok(report) => Outcome::Recovered(report),
        Err(error) => Outcome::NotApplied(error),
    }
}

/// Opens the roots, and holds signals back: one that ended us would leave half
/// of the changes, so whoever sends it waits for the end, which is all or none.
fn ready(job: &Job) -> Result<Roots, Outcome> {
    let roots = guarded_roots(&job.roots).map_err(Outcome::NoRoots)?;
    match SigSet::all().thread_block() {
        Ok(()) => Ok(roots),
        Err(errno) => Err(Outcome::NoSignalMask(errno.into())),
    }
}

/// Allows as many descriptors as the caller may have: every file of a patch is held by one or two.
fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if limit == raised {
        return;
    }
    // A patch of ordinary size needs no more than there are.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

/// Opens the roots, with what a patch may not touch below them.
fn guarded_roots(roots: &[PathBuf]) -> Result<Roots, safe_fs::Error> {
    let mut opened = Roots::open(Path::new(HERE), roots, &guards(), Resolver::detect())?;
    for root in roots {
        for repository in git_directories(root) {
            opened.guard_directory(&repository, OsStr::new(".git"))?;
        }
    }
    Ok(opened)
}

/// Returns where a `.git` file leads (gitrepository-layout(5)): the repository
/// of a worktree or submodule, and what it shares with others.
fn git_directories(root: &Path) -> Vec<PathBuf> {
    let Some(pointer) = small_file(&root.join(".git")) else {
        return Vec::new();
    };
    let Some(target) = parse_gitdir(&pointer) else {
        return Vec::new();
    };
    let repository = root.join(target);
    let common = small_file(&repository.join("commondir")).and_then(|text| parse_commondir(&text));
    let common = common.map(|path| repository.join(path));
    std::iter::once(repository).chain(common).collect()
}

/// Reads a file of one line; anything else there is not waited for.
fn small_file(path: &Path) -> Option<Vec<u8>> {
    const LONGEST_BYTES: u64 = 8192;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(LONGEST_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The names that a patch may not touch: git's directory at every depth, the
/// agents' own settings directly below a root.
fn guards() -> Vec<Guard> {
    let guard = |name: &str| Guard {
        name: OsString::from(name),
        depth: if name == ".git" || name == safe_fs::JOURNAL_NAME {
            GuardDepth::Any
        } else {
            GuardDepth::Top
        },
    };
    let names = sandbox_policy::policy::PROTECTED_NAMES.iter().copied();
    names.chain([safe_fs::JOURNAL_NAME]).map(guard).collect()
}

/// Returns the current directory, or prints why there is none (R6).
pub fn current_directory() -> Result<PathBuf, Exit> {
    std::env::current_dir().map_err(|error| {
        render::error(&format!(
            "Error: Failed to determine current directory.\n{error}"
        ))
    })
}
