//! Starting this executable again inside the sandbox, and what it is told there;
//! or doing the same without one.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linux_sandbox::{Command, Environment, Outcome, Program, Stdin};
use sandbox_policy::Plan;

use super::inner::{self, HERE, Input};
use crate::arg0::INNER_STAGE;
use crate::cli::switches::argument;
use crate::cli::{Backend, Codes, Dialect, HAND_OFF, OutputSwitches, PatchSwitches, PolicyFlags};
use crate::exit::Exit;
use crate::state::Root;
use crate::{launch, render, workspace};

/// What the inner stage is to do.
pub struct Job<'a> {
    /// How far to go, and how to say what came of it.
    pub output: OutputSwitches,
    /// Where results may differ.
    pub switches: PatchSwitches,
    /// Whose exit codes to use.
    pub codes: Codes,
    /// How the sandbox is built.
    pub backend: Backend,
    /// The writable roots.
    pub roots: &'a [Root],
    /// What it reads, which says what it is to do.
    pub input: &'a Input,
    /// Whether to say nothing but what is noteworthy.
    pub quiet: bool,
    /// Why nothing is kept for an undo.
    pub no_undo: Option<&'a str>,
}

impl Job<'_> {
    /// Does the job, in the sandbox when there is a plan for one; what it replaces
    /// goes to `record`.
    pub fn run(&self, plan: Option<&Plan>, directory: &Path, record: Option<Arc<OwnedFd>>) -> Exit {
        match plan {
            Some(plan) => self.run_in(plan, directory, record),
            None => self.run_here(record),
        }
    }

    /// Does the job in this process, and says that there is no sandbox.
    fn run_here(&self, record: Option<Arc<OwnedFd>>) -> Exit {
        if !self.quiet {
            render::note("no sandbox: the patch is applied with the rights of this process");
        }
        // The current directory is what it is, whatever its path leads to by now.
        let others = self.roots.iter().skip(1).map(|root| root.real.clone());
        let job = inner::Job {
            task: self.input.task(),
            output: self.output,
            switches: self.switches,
            roots: [PathBuf::from(HERE)].into_iter().chain(others).collect(),
            codes: self.codes,
            record: record.and_then(|fd| fd.try_clone().ok()).map(File::from),
            quiet: self.quiet,
            no_undo: self.no_undo.map(str::to_owned),
        };
        inner::run(job, self.input)
    }

    fn run_in(&self, plan: &Plan, directory: &Path, record: Option<Arc<OwnedFd>>) -> Exit {
        let stdin = match linux_sandbox::carry(self.input.bytes()) {
            Ok(stdin) => stdin,
            Err(error) => {
                render::error(&format!("Error: cannot hand the patch on: {error}"));
                return Exit::NoSandbox;
            }
        };
        let command = Command {
            program: Program::SelfExe,
            args: self.arguments(directory, record.is_some()),
            environment: Environment {
                path: None,
                vars: Vec::new(),
            },
            stdin: Stdin::Descriptor(stdin),
            inherit: record,
            cwd: directory.to_path_buf(),
        };
        match launch::run(plan, command, self.backend, directory) {
            Ok(Outcome::Exited(code)) => Exit::Command(code),
            Ok(Outcome::Signaled(number)) => killed(number),
            Ok(Outcome::NotFound | Outcome::NotExecutable(_)) => {
                render::error("Error: this executable cannot be started again in the sandbox");
                Exit::NoSandbox
            }
            Err(error) => render::no_sandbox(&error),
        }
    }

    fn arguments(&self, directory: &Path, records: bool) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            "sandpatch".into(),
            INNER_STAGE.into(),
            "-".into(),
            HAND_OFF.into(),
            argument("task", self.input.task()),
        ];
        arguments.extend(self.output.arguments());
        arguments.extend(self.switches.arguments());
        arguments.push(argument("codes", self.codes));
        arguments.extend(records.then(|| "--record".into()));
        arguments.extend(self.quiet.then(|| "--quiet".into()));
        arguments.extend(self.no_undo.map(|why| format!("--no-undo={why}").into()));
        for root in self.roots {
            let mut text = OsString::from("--root=");
            // The stage starts there: it needs no second way to its own directory.
            match root.real == directory {
                true => text.push(HERE),
                false => text.push(&root.real),
            }
            arguments.push(text);
        }
        arguments
    }
}

/// Ends what an interrupted patch began in this directory, so that a command
/// meets neither half of it nor its journal; says so on standard error only.
pub fn recover_quietly(directory: &Path, policy: &PolicyFlags) -> Result<(), Exit> {
    if !is_interrupted(directory) {
        return Ok(());
    }
    let confinement = workspace::confinement(directory, policy)?;
    let job = Job {
        output: OutputSwitches::default(),
        switches: PatchSwitches::of(Dialect::Safe),
        codes: Codes::Own,
        backend: policy.backend,
        roots: &confinement.roots,
        input: &Input::Nothing,
        quiet: true,
        no_undo: None,
    };
    // What cannot be ended has been said; the command is not the one to blame.
    job.run(confinement.plan.as_ref(), directory, None);
    Ok(())
}

/// Tells whether a patch is at work in a directory, or was interrupted there.
///
/// A directory that takes no names has its journal anywhere below; looking for
/// it would cost every command more than the sandbox does.
pub fn is_interrupted(directory: &Path) -> bool {
    directory
        .join(safe_fs::JOURNAL_NAME)
        .symlink_metadata()
        .is_ok()
}

fn killed(number: i32) -> Exit {
    render::error(&format!(
        "Error: signal {number} ended the patch stage\n  \
        hint: what it had begun the next patch ends, or 'sandpatch undo --recover'"
    ));
    u8::try_from(number).map_or(Exit::DoesNotApply, Exit::Signal)
}
