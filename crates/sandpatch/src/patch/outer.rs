//! The outer stage of a patch: from a command line to a plan, and around the
//! inner stage the record for an undo.

use std::ffi::OsString;
use std::path::Path;

use super::inner::{Input, current_directory};
use super::input::{self, InputError, Source};
use super::keeping::{self, Wanted};
use super::stage;
use crate::cli::{Action, Apply, Codes, Dialect, OutputSwitches, PatchSwitches, PolicyFlags};
use crate::exit::Exit;
use crate::user::User;
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
    apply(text, &request)
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
    let user = match user::assume(arguments.policy.as_user.as_deref()) {
        Ok(user) => user,
        Err(exit) => return exit,
    };
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
        user,
    };
    sandboxed(source, &request)
}

/// What is asked of the outer stage.
struct Request {
    output: OutputSwitches,
    switches: PatchSwitches,
    policy: PolicyFlags,
    codes: Codes,
    user: User,
}

impl Request {
    fn new(switches: PatchSwitches, codes: Codes) -> Self {
        Self {
            output: OutputSwitches::default(),
            switches,
            policy: PolicyFlags::default(),
            codes,
            user: User::Caller,
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
        Ok(text) => apply(text, request),
        Err(error) => render::input_error(&error),
    }
}

fn apply(text: String, request: &Request) -> Exit {
    sys::ignore_file_size_signal();
    let exit = match current_directory() {
        Ok(directory) => apply_in(Input::Patch(text), &directory, request),
        Err(exit) => exit,
    };
    match request.codes {
        Codes::Own => exit,
        Codes::Reference => exit.as_reference(),
    }
}

fn apply_in(input: Input, directory: &Path, request: &Request) -> Exit {
    let wanted = match request.output.action() {
        Action::Apply => Wanted::Record,
        Action::Check | Action::Diff => Wanted::Nothing,
    };
    let confinement = match workspace::confinement(directory, &request.policy) {
        Ok(confinement) => confinement,
        Err(exit) => return exit,
    };
    let about = keeping::About {
        patch: &input,
        directory,
        roots: &confinement.roots,
        dialect: request.switches.dialect,
    };
    keeping::around(&request.user, wanted, &about, |record, no_undo| {
        let job = stage::Job {
            output: request.output,
            switches: request.switches,
            codes: request.codes,
            backend: request.policy.backend,
            roots: &confinement.roots,
            input: &input,
            quiet: false,
            no_undo,
        };
        job.run(confinement.plan.as_ref(), directory, record)
    })
}
