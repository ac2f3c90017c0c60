//! Starting this executable again inside the sandbox, and what it is told there.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use linux_sandbox::{Command, Environment, Outcome, Program, Stdin};
use sandbox_policy::Plan;

use super::carrier;
use super::inner::Task;
use crate::arg0::INNER_STAGE;
use crate::cli::switches::argument;
use crate::cli::{Codes, HAND_OFF, OutputSwitches, PatchSwitches};
use crate::exit::Exit;
use crate::render;
use crate::state::Root;

/// What the inner stage is to do.
pub struct Job<'a> {
    /// What.
    pub task: Task,
    /// How far to go, and how to say what came of it.
    pub output: OutputSwitches,
    /// Where results may differ.
    pub switches: PatchSwitches,
    /// Whose exit codes to use.
    pub codes: Codes,
    /// The writable roots.
    pub roots: &'a [Root],
    /// What it reads.
    pub input: &'a [u8],
    /// Why nothing is kept for an undo.
    pub no_undo: Option<&'a str>,
}

impl Job<'_> {
    /// Builds the sandbox and does the job in it; what it replaces goes to `record`.
    pub fn run_in(&self, plan: &Plan, directory: &Path, record: Option<OwnedFd>) -> Exit {
        let stdin = match carrier::carry(self.input) {
            Ok(stdin) => stdin,
            Err(error) => {
                render::error(&format!("Error: cannot hand the patch on: {error}"));
                return Exit::NoSandbox;
            }
        };
        let command = Command {
            program: Program::SelfExe,
            args: self.arguments(record.is_some()),
            environment: Environment {
                path: None,
                vars: Vec::new(),
            },
            stdin: Stdin::Descriptor(stdin),
            inherit: record,
            cwd: directory.to_path_buf(),
        };
        match linux_sandbox::run(plan, command) {
            Ok(Outcome::Exited(code)) => Exit::Command(code),
            Ok(Outcome::Signaled(number)) => killed(number),
            Ok(Outcome::NotFound | Outcome::NotExecutable(_)) => {
                render::error("Error: this executable cannot be started again in the sandbox");
                Exit::NoSandbox
            }
            Err(error) => render::no_sandbox(&error),
        }
    }

    fn arguments(&self, records: bool) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            "sandpatch".into(),
            INNER_STAGE.into(),
            "-".into(),
            HAND_OFF.into(),
            argument("task", self.task),
        ];
        arguments.extend(self.output.arguments());
        arguments.extend(self.switches.arguments());
        arguments.push(argument("codes", self.codes));
        arguments.extend(records.then(|| "--record".into()));
        arguments.extend(self.no_undo.map(|why| format!("--no-undo={why}").into()));
        for root in self.roots {
            let mut text = OsString::from("--root=");
            text.push(&root.real);
            arguments.push(text);
        }
        arguments
    }
}

fn killed(number: i32) -> Exit {
    render::error(&format!("Error: signal {number} ended the patch stage"));
    u8::try_from(number).map_or(Exit::DoesNotApply, Exit::Signal)
}
