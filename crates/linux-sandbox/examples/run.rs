//! Runs a command in the default sandbox: `run [--writable DIR]… -- CMD…`.
//!
//! A developer's aid and the subject of the integration tests; the real command
//! line is another crate.

use std::error::Error;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use linux_sandbox::{Command, Environment, Outcome, Program, Stdin};
use sandbox_policy::{AbsolutePath, Network, Policy, Purpose, Tmp};

#[allow(clippy::print_stderr)]
fn main() -> ExitCode {
    match run() {
        Ok(Outcome::Exited(code)) => ExitCode::from(code),
        Ok(Outcome::Signaled(signal)) => ExitCode::from(128u8.wrapping_add(signal as u8)),
        Ok(Outcome::NotFound) => ExitCode::from(127),
        Ok(Outcome::NotExecutable(_)) => ExitCode::from(126),
        Err(error) => {
            eprintln!("run: {error}");
            if let Some(error) = error.downcast_ref::<linux_sandbox::Error>() {
                eprintln!("run: hint: {}", error.hint());
            }
            if let Some(error) = error.downcast_ref::<sandbox_policy::PlanError>() {
                eprintln!("run: hint: {}", error.hint());
            }
            ExitCode::from(125)
        }
    }
}

fn run() -> Result<Outcome, Box<dyn Error>> {
    let cwd = std::env::current_dir()?;
    let mut policy = Policy::workspace(AbsolutePath::new(&cwd)?);
    let mut purpose = Purpose::Command;
    let mut inherit = None;
    let mut show = Show::Nothing;
    let mut words = std::env::args_os().skip(1);
    let mut program = Program::Named(OsString::new());
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--writable") => {
                let path = words.next().ok_or("--writable needs a directory")?;
                policy = policy.with_writable(AbsolutePath::new(path)?);
            }
            Some("--host-network") => policy = policy.with_network(Network::Host),
            Some("--host-tmp") => policy = policy.with_tmp(Tmp::Host),
            Some("--no-tmp") => policy = policy.with_tmp(Tmp::None),
            Some("--patch") => purpose = Purpose::Patch,
            Some("--inherit") => {
                let path = words.next().ok_or("--inherit needs a file")?;
                // Not the lowest free number, so that it has to be moved.
                let gap = std::fs::File::open("/dev/null")?;
                let opened = std::fs::OpenOptions::new().append(true).open(path)?;
                inherit = Some(OwnedFd::from(opened));
                drop(gap);
            }
            Some("--self") => program = Program::SelfExe,
            Some("--plan") => show = Show::Plan,
            Some("--report") => show = Show::Report,
            Some("--") => break,
            _ => return Err("usage: run [--writable DIR]... -- CMD...".into()),
        }
    }
    let args: Vec<OsString> = words.collect();
    if let (Program::Named(name), Some(first)) = (&mut program, args.first()) {
        name.clone_from(first);
    }
    let facts = linux_sandbox::gather(&policy, purpose)?;
    let plan = sandbox_policy::plan(&policy, &facts, purpose)?;
    let vars = sandbox_policy::environment::with_usable_tmp(std::env::vars_os().collect(), &plan);
    let environment = Environment {
        path: std::env::var_os("PATH"),
        vars,
    };
    let command = Command {
        program,
        args,
        environment,
        stdin: Stdin::Inherit,
        inherit: inherit.map(std::sync::Arc::new),
        cwd,
    };
    show.run(&plan, command)
}

/// What is shown beside the command's own output.
enum Show {
    Nothing,
    Plan,
    Report,
}

impl Show {
    #[allow(clippy::print_stderr)]
    fn run(self, plan: &sandbox_policy::Plan, command: Command) -> Result<Outcome, Box<dyn Error>> {
        if let Self::Plan = self {
            eprintln!("{plan:#?}");
        }
        let report = linux_sandbox::run_reported(plan, command, linux_sandbox::Launcher::Native)?;
        if let Self::Report = self {
            eprintln!("{report:#?}");
        }
        Ok(report.outcome)
    }
}
