//! The small amount of ceremony around `libtest-mimic`.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::stat::{Mode, umask};

/// Makes a trial of a check that reports its failure as text.
pub fn trial(
    name: impl Into<String>,
    check: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Trial {
    Trial::test(name, move || check().map_err(Failed::from))
}

/// Runs `trials` under the umask that the recorded results were made with.
#[must_use]
pub fn main(trials: Vec<Trial>) -> ExitCode {
    umask(Mode::from_bits_truncate(0o022));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// `Ok` when `condition` holds, else `problem`.
///
/// # Errors
/// With `problem`, when the condition does not hold.
pub fn ensure(condition: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(problem()) }
}
