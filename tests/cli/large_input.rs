//! A patch of one megabyte does not fit in an argument; every door that reads
//! standard input takes it, as root and as an ordinary user.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sandpatch_tests::{Identity, Place, limited};

const LIMIT: Duration = Duration::from_secs(30);
const LINES: usize = 16_384;

fn applies(door: &[&str], program: impl Fn(&Place) -> &Path) {
    let line = format!("{}\n", "x".repeat(63));
    let body = format!("+{line}").repeat(LINES);
    let patch = format!("*** Begin Patch\n*** Add File: big\n{body}*** End Patch\n");
    assert!(patch.len() > 1_000_000, "{} bytes", patch.len());
    for identity in Identity::all() {
        let place = Place::new(identity);
        let mut command = place.command(program(&place));
        command.args(door);
        let outcome = limited::run(command, patch.as_bytes(), LIMIT);
        assert!(
            outcome.succeeded(),
            "{door:?} as {}: {outcome}",
            identity.label()
        );
        let written = fs::read(place.ws().join("big")).unwrap();
        assert!(
            written == line.repeat(LINES).as_bytes(),
            "{door:?}: other bytes"
        );
    }
}

#[test]
fn apply() {
    applies(&["apply", "-"], Place::exe);
}

#[test]
fn run_as_apply_patch() {
    applies(&["--run-as-apply-patch", "-"], Place::exe);
}

#[test]
fn inner_stage() {
    applies(&["--codex-run-as-apply-patch", "-"], Place::exe);
}

#[test]
fn alias() {
    applies(&[], Place::alias);
}
