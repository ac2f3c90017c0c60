//! The command line as a user meets it: exit codes, bad input, large input.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail the test that called them"
)]

mod apply_codes;
mod as_user;
mod bad_input;
mod bubblewrap;
mod check;
mod deny_read;
mod diff;
mod json;
mod large_input;
mod run_codes;
mod signals;
mod undo;
mod undo_kept;
mod undo_refused;
mod undo_take;

use std::time::Duration;

use assert_cmd::Command;
use sandpatch_tests::Place;

/// A command on the place's executable that may take this long.
fn sandpatch(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(place.exe());
    command.args(args);
    let mut command = Command::from_std(command);
    command.timeout(Duration::from_secs(60));
    command
}
