//! Skips are loud, and forbidden where the host is known to be able.

use std::io::Write;
use std::{env, fs};

/// True when this run must not skip (`SANDBOX_MUST_WORK=1`, set by CI).
#[must_use]
pub fn must_work() -> bool {
    env::var_os("SANDBOX_MUST_WORK").is_some_and(|value| value == "1")
}

/// Says that `test` did not run; fails instead when skips are forbidden.
///
/// The line also goes to the file that `SANDPATCH_SKIP_LOG` names, because a
/// test runner hides the output of tests that pass.
///
/// # Errors
/// With the reason, when this run must not skip.
pub fn skip(test: &str, reason: &str) -> Result<(), String> {
    if must_work() {
        return Err(format!("{test} was skipped where it must work: {reason}"));
    }
    skip_allowed(test, reason);
    Ok(())
}

/// Says that `test` did not run, where a list allows that.
pub fn skip_allowed(test: &str, reason: &str) {
    let line = format!("SKIP {test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = env::var_os("SANDPATCH_SKIP_LOG") {
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut log| log.write_all(line.as_bytes()))
            .expect("write the skip log");
    }
}
