//! The stage that builds the sandbox and starts this executable again inside it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use linux_sandbox::{Command, Environment, Outcome, Program, Stdin};
use sandbox_policy::Purpose;

use super::carrier;
use super::inner::{self, HERE, Job, current_directory};
use super::input::{self, InputError, Source};
use crate::arg0::INNER_STAGE;
use crate::cli::switches::argument;
use crate::cli::{
    Apply, Backend, Codes, Dialect, HAND_OFF, OutputSwitches, PatchSwitches, PolicyFlags,
};
use crate::exit::Exit;
use crate::state::Root;
use crate::{render, sys, user, workspace};

/// `apply_patch`: the reference's command line, sandboxed to the current directory.
pub fn alias(arguments: Vec<OsString>) -> Exit {
    let source = match one_patch(arguments) {
        Ok(source) => source,
        Err(()) => {
            render::error("Error: apply_patch accepts exactly one argument.");
            return Exit::Usage;
        }
    };
    let text = match input::read(source) {
        Ok(text) => text,
        Err(InputError::ArgumentNotUtf8) => {
            return render::error("Error: apply_patch requires a UTF-8 PATCH argument.");
        }
        Err(InputError::StdinEmpty) => {
            render::error("Usage: apply_patch 'PATCH'\n       echo 'PATCH' | apply_patch");
            return Exit::Usage;
        }
        Err(error) => return render::input_error(&error),
    };
    let request = Request::new(PatchSwitches::of(Dialect::Codex), Codes::Reference);
    apply(&text, &request)
}

/// `--run-as-apply-patch PATCH`: as `sandpatch apply`, with the patch as an argument.
pub fn run_as_apply_patch(arguments: Vec<OsString>) -> Exit {
    let Ok(source) = one_patch(arguments) else {
        render::error("Error: --run-as-apply-patch accepts exactly one argument.");
        return Exit::Usage;
    };
    sandboxed(
        source,
        &Request::new(PatchSwitches::of(Dialect::Safe), Codes::Own),
    )
}

/// `sandpatch apply`.
pub fn command(arguments: Apply) -> Exit {
    if let Err(exit) = user::assume(arguments.policy.as_user.as_deref()) {
        return exit;
    }
    // The patch file is named from where the caller is, not from where `-C` goes.
    let source = match Source::of_apply_argument(arguments.patch) {
        Source::File(path) => std::path::absolute(&path).map_or(Source::File(path), Source::File),
        source => source,
    };
    if let Err(exit) = workspace::enter(arguments.policy.directory.as_deref()) {
        return exit;
    }
    let request = Request {
        output: arguments.output,
        switches: arguments.switches,
        policy: arguments.policy,
        codes: Codes::Own,
    };
    sandboxed(source, &request)
}

/// What is asked of the outer stage.
struct Request {
    output: OutputSwitches,
    switches: PatchSwitches,
    policy: PolicyFlags,
    codes: Codes,
}

impl Request {
    fn new(switches: PatchSwitches, codes: Codes) -> Self {
        let policy = PolicyFlags {
            directory: None,
            writable: Vec::new(),
            as_user: None,
            backend: Backend::Auto,
        };
        Self {
            output: OutputSwitches::default(),
            switches,
            policy,
            codes,
        }
    }
}

fn one_patch(arguments: Vec<OsString>) -> Result<Source, ()> {
    let mut arguments = arguments.into_iter();
    match (arguments.next(), arguments.next()) {
        (None, _) => Ok(Source::Stdin),
        (Some(patch), None) => Ok(Source::of_patch_argument(patch)),
        (Some(_), Some(_)) => Err(()),
    }
}

fn sandboxed(source: Source, request: &Request) -> Exit {
    match input::read(source) {
        Ok(text) => apply(&text, request),
        Err(error) => render::input_error(&error),
    }
}

fn apply(text: &str, request: &Request) -> Exit {
    sys::ignore_file_size_signal();
    let exit = match current_directory() {
        Ok(directory) => apply_in(text, &directory, request),
        Err(exit) => exit,
    };
    match request.codes {
        Codes::Own => exit,
        Codes::Reference => exit.as_reference(),
    }
}

fn apply_in(text: &str, directory: &Path, request: &Request) -> Exit {
    if request.policy.backend == Backend::None {
        return unconfined(text, request);
    }
    let planned = match workspace::plan(directory, &request.policy, Purpose::Patch) {
        Ok(planned) => planned,
        Err(exit) => return exit,
    };
    let stdin = match carrier::carry(text.as_bytes()) {
        Ok(stdin) => stdin,
        Err(error) => {
            render::error(&format!("Error: cannot hand the patch on: {error}"));
            return Exit::NoSandbox;
        }
    };
    let command = Command {
        program: Program::SelfExe,
        args: hand_off(request, &planned.roots),
        environment: Environment {
            path: None,
            vars: Vec::new(),
        },
        stdin: Stdin::Descriptor(stdin),
        inherit: None,
        cwd: directory.to_path_buf(),
    };
    match linux_sandbox::run(&planned.plan, command) {
        Ok(outcome) => match outcome {
            Outcome::Exited(code) => Exit::Command(code),
            Outcome::Signaled(number) => stage_killed(number),
            Outcome::NotFound | Outcome::NotExecutable(_) => {
                render::error("Error: this executable cannot be started again in the sandbox");
                Exit::NoSandbox
            }
        },
        Err(error) => render::no_sandbox(&error),
    }
}

/// Applies the patch in this process, and says that there is no sandbox.
fn unconfined(text: &str, request: &Request) -> Exit {
    render::note("no sandbox: the patch is applied with the rights of this process");
    let mut roots = vec![PathBuf::from(HERE)];
    roots.extend(request.policy.writable.iter().cloned());
    let job = Job {
        output: request.output,
        switches: request.switches,
        roots,
        codes: request.codes,
    };
    inner::apply(text, &job)
}

fn stage_killed(number: i32) -> Exit {
    render::error(&format!("Error: signal {number} ended the patch stage"));
    u8::try_from(number).map_or(Exit::DoesNotApply, Exit::Signal)
}

fn hand_off(request: &Request, roots: &[Root]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        "sandpatch".into(),
        INNER_STAGE.into(),
        "-".into(),
        HAND_OFF.into(),
    ];
    arguments.extend(request.output.arguments());
    arguments.extend(request.switches.arguments());
    arguments.push(argument("codes", request.codes));
    for root in roots {
        let mut text = OsString::from("--root=");
        text.push(&root.real);
        arguments.push(text);
    }
    arguments
}
