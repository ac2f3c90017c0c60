//! Running something in a sandbox of the backend that was asked for.

use std::path::Path;

use linux_sandbox::bubblewrap::Search;
use linux_sandbox::{Command, Error, Launcher, Outcome, RunReport};
use sandbox_policy::{Access, Plan};

use crate::cli::Backend;
use crate::state::{Base, Features, Root};
use crate::user::User;

/// Runs a command; `directory` is where the caller stands.
///
/// # Errors
///
/// What could not be set up: the command did not run.
pub fn run(
    plan: &Plan,
    command: Command,
    backend: Backend,
    directory: &Path,
) -> Result<Outcome, Error> {
    run_reported(plan, command, backend, directory).map(|report| report.outcome)
}

/// Runs a command and also returns what was enforced.
///
/// # Errors
///
/// As [`run`].
pub fn run_reported(
    plan: &Plan,
    command: Command,
    backend: Backend,
    directory: &Path,
) -> Result<RunReport, Error> {
    let run = |launcher| linux_sandbox::run_reported(plan, command, launcher);
    match backend {
        // Without a sandbox there is no plan.
        Backend::Auto | Backend::Native | Backend::None => run(Launcher::Native),
        Backend::Bubblewrap => {
            let roots = written_roots(plan);
            // A state of somebody else's is refused by its owner.
            let features = Features::new(Base::of(&User::Caller).ok(), &roots);
            run(Launcher::Bubblewrap(&Search {
                path: std::env::var_os("PATH"),
                directory: directory.to_path_buf(),
                cache: Some(&features),
            }))
        }
    }
}

fn written_roots(plan: &Plan) -> Vec<Root> {
    let written = plan
        .roots
        .iter()
        .filter(|root| root.access == Access::Write);
    written
        .map(|root| Root {
            real: root.real.as_path().to_path_buf(),
            id: root.id,
        })
        .collect()
}
