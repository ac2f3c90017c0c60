//! `sandpatch run`: one command in a sandbox.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

use linux_sandbox::{Command, Environment, Outcome, Program, Stdin};
use sandbox_policy::environment::with_usable_tmp;

use crate::cli::{Backend, Run};
use crate::exit::Exit;
use crate::patch::inner::current_directory;
use crate::patch::stage;
use crate::user::{self, User};
use crate::workspace::Planned;
use crate::{launch, policy, render, workspace};

/// Runs the command, and returns how it ended.
pub fn command(arguments: Run) -> Exit {
    let user = match user::assume(arguments.policy.as_user.as_deref()) {
        Ok(user) => user,
        Err(exit) => return exit,
    };
    if let Err(exit) = workspace::enter(arguments.policy.directory.as_deref()) {
        return exit;
    }
    let Ok(directory) = current_directory() else {
        return Exit::NoSandbox;
    };
    if let Err(exit) = stage::recover_quietly(&directory, &arguments.policy) {
        return exit;
    }
    if arguments.policy.backend == Backend::None {
        return unconfined(&arguments.command);
    }
    let planned = match planned(&arguments, &directory, &user) {
        Ok(planned) => planned,
        Err(exit) => return exit,
    };
    // To a program standard error is the command's alone.
    let is_heard = arguments.verbose || std::io::stderr().is_terminal();
    if is_heard {
        render::not_covered(&planned.plan);
    }
    let Some(name) = arguments.command.first().cloned() else {
        return Exit::Usage;
    };
    let command = Command {
        program: Program::Named(name.clone()),
        args: arguments.command,
        environment: environment(&planned.plan),
        stdin: Stdin::Inherit,
        inherit: None,
        cwd: directory.clone(),
    };
    let backend = arguments.policy.backend;
    match launch::run_reported(&planned.plan, command, backend, &directory) {
        Ok(report) => {
            if is_heard {
                render::placeholders(&planned.plan, &report);
            }
            ended(&name, report.outcome)
        }
        Err(error) => render::no_sandbox(&error),
    }
}

/// Completes a sandbox that bubblewrap has built around this process.
pub fn sandbox_stage(arguments: &[OsString]) -> Exit {
    let argument = arguments.first().cloned().unwrap_or_default();
    match linux_sandbox::bubblewrap::inner_stage(&argument) {
        Ok(()) => Exit::Success,
        Err(error) => render::no_sandbox(&error),
    }
}

fn planned(arguments: &Run, directory: &Path, user: &User) -> Result<Planned, Exit> {
    let policy = policy::of_command(directory, &arguments.policy, &arguments.flags, user)?;
    workspace::plan_command(&policy, directory, user)
}

/// Returns this process's environment, with the temporary directory corrected.
fn environment(plan: &sandbox_policy::Plan) -> Environment {
    let vars: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    Environment {
        path: std::env::var_os("PATH"),
        vars: with_usable_tmp(vars, plan),
    }
}

fn ended(name: &OsString, outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Exited(code) => Exit::Command(code),
        Outcome::Signaled(number) => u8::try_from(number).map_or(Exit::DoesNotApply, Exit::Signal),
        Outcome::NotFound => {
            render::error(&format!("Error: {}: command not found", name.display()));
            Exit::NotFound
        }
        Outcome::NotExecutable(error) => {
            let why = std::io::Error::from_raw_os_error(error.0);
            render::error(&format!(
                "Error: {}: cannot be executed: {why}",
                name.display()
            ));
            Exit::NotExecutable
        }
    }
}

/// Becomes the command, without any sandbox, and says so.
fn unconfined(command: &[OsString]) -> Exit {
    use std::os::unix::process::CommandExt;
    render::note("no sandbox: the command runs with all rights of this process");
    let Some((name, rest)) = command.split_first() else {
        return Exit::Usage;
    };
    let error = std::process::Command::new(name).args(rest).exec();
    match error.kind() {
        std::io::ErrorKind::NotFound => ended(name, Outcome::NotFound),
        _ => ended(
            name,
            Outcome::NotExecutable(linux_sandbox::Errno(error.raw_os_error().unwrap_or(0))),
        ),
    }
}
