//! The executable: chooses a role, runs it, and turns the result into an exit code.

mod accounts;
mod arg0;
mod cli;
mod exit;
mod json;
mod launch;
mod patch;
mod policy;
mod render;
mod run;
mod state;
mod sys;
mod undo;
mod user;
mod utc;
mod words;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use arg0::Role;
use cli::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    let (role, arguments) = Role::of(std::env::args_os().collect());
    let exit = match role {
        Role::ApplyPatchAlias => patch::outer::alias(arguments),
        Role::RunAsApplyPatch => patch::outer::run_as_apply_patch(arguments),
        Role::SandboxStage => run::sandbox_stage(&arguments),
        Role::InnerStage => patch::inner::main(arguments),
        Role::LinuxSandboxHelper => {
            render::error("Error: the codex-linux-sandbox command line is not supported yet");
            Exit::DoesNotApply
        }
        Role::CommandLine => command_line(arguments),
    };
    exit.into()
}

fn command_line(arguments: Vec<OsString>) -> Exit {
    let argv = std::iter::once(OsString::from("sandpatch")).chain(arguments);
    match Cli::try_parse_from(argv).map(|cli| cli.command) {
        Ok(Command::Apply(arguments)) => patch::outer::command(arguments),
        Ok(Command::Run(arguments)) => run::command(arguments),
        Ok(Command::Undo(arguments)) => undo::command(&arguments),
        Err(error) => render::usage(&error),
    }
}
