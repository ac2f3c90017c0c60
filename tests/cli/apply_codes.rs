//! The exit codes of `sandpatch apply` and of the codex doors.

use std::fs;

use sandpatch_tests::{Identity, Place};

use crate::sandpatch;

const GOOD: &str = "*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** End Patch\n";
const NO_MATCH: &str = "*** Begin Patch\n*** Update File: f\n@@\n-other\n+new\n*** End Patch\n";
const OUTSIDE: &str = "*** Begin Patch\n*** Add File: ../out/x\n+x\n*** End Patch\n";

fn place() -> Place {
    let place = Place::new(Identity::Caller);
    place.write("ws/f", "old\n");
    place
}

#[test]
fn applied_is_0_and_says_what_changed() {
    let place = place();
    let done = sandpatch(&place, &["apply", "-"])
        .write_stdin(GOOD)
        .assert();
    let output = done.code(0).get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("Success. Updated the following files:\nM f\n"),
        "{text}"
    );
    assert_eq!(fs::read(place.ws().join("f")).unwrap(), b"new\n");
}

#[test]
fn apply_takes_a_file_and_a_text() {
    let place = place();
    place.write("p.patch", GOOD);
    sandpatch(&place, &["apply", "../p.patch"]).assert().code(0);
    let back = GOOD.replace("-old\n+new", "-new\n+old");
    sandpatch(&place, &["apply", &back]).assert().code(0);
    assert_eq!(fs::read(place.ws().join("f")).unwrap(), b"old\n");
}

#[test]
fn does_not_apply_is_1() {
    let place = place();
    sandpatch(&place, &["apply", "-"])
        .write_stdin(NO_MATCH)
        .assert()
        .code(1);
    assert_eq!(fs::read(place.ws().join("f")).unwrap(), b"old\n");
    // The control: the same place takes a patch that fits.
    sandpatch(&place, &["apply", "-"])
        .write_stdin(GOOD)
        .assert()
        .code(0);
}

#[test]
fn usage_is_2() {
    let place = place();
    sandpatch(&place, &["apply", "--no-such-switch"])
        .assert()
        .code(2);
    sandpatch(&place, &["no-such-command"]).assert().code(2);
    sandpatch(&place, &["run"]).assert().code(2);
}

#[test]
fn refused_by_policy_is_3() {
    let place = place();
    sandpatch(&place, &["apply", "-"])
        .write_stdin(OUTSIDE)
        .assert()
        .code(3);
}

#[test]
fn the_reference_doors_answer_1_for_every_failure() {
    let flag = "--codex-run-as-apply-patch";
    let place = place();
    sandpatch(&place, &[flag, NO_MATCH]).assert().code(1);
    sandpatch(&place, &[flag, OUTSIDE]).assert().code(1);
    sandpatch(&place, &[flag, GOOD]).assert().code(0);
    let alias = |patch: &str| {
        let mut command = place.command(place.alias());
        command.arg(patch);
        assert_cmd::Command::from_std(command)
    };
    alias(NO_MATCH).assert().code(1);
    alias(OUTSIDE).assert().code(1);
}

#[test]
fn run_as_apply_patch_answers_as_apply_does() {
    let flag = "--run-as-apply-patch";
    let place = place();
    sandpatch(&place, &[flag, NO_MATCH]).assert().code(1);
    sandpatch(&place, &[flag, OUTSIDE]).assert().code(3);
    sandpatch(&place, &[flag, GOOD]).assert().code(0);
}

#[test]
fn the_alias_applies_an_argument_and_stdin() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/f", "old\n");
        let mut command = place.command(place.alias());
        command.arg(GOOD);
        assert_cmd::Command::from_std(command).assert().code(0);
        let back = GOOD.replace("-old\n+new", "-new\n+old");
        let command = place.command(place.alias());
        assert_cmd::Command::from_std(command)
            .write_stdin(back)
            .assert()
            .code(0);
        assert_eq!(fs::read(place.ws().join("f")).unwrap(), b"old\n");
    }
}
