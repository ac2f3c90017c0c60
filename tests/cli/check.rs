//! `sandpatch apply --check`: the answer of `apply`, and nothing touched.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use sandpatch_tests::{Identity, Place, Snapshot};

use crate::sandpatch;

fn said(place: &Place, switches: &[&str], operations: &str) -> (Option<i32>, String, String) {
    let mut arguments = vec!["apply"];
    arguments.extend(switches);
    let patch = format!("*** Begin Patch\n{operations}*** End Patch\n");
    let output = sandpatch(place, &arguments)
        .write_stdin(patch)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn it_answers_as_apply_does_and_touches_nothing() {
    let cases = [
        "*** Update File: f\n@@\n-old \n+new\n*** Add File: d/e\n+x\n*** Delete File: g\n",
        "*** Update File: f\n@@\n-old\n+old\n",
        "*** Update File: f\n@@\n-other\n+new\n*** Delete File: none\n",
        "*** Add File: ../out/x\n+x\n",
        "*** Add File: f\n+x\n",
        "",
    ];
    for identity in Identity::all() {
        for operations in cases {
            let place = Place::new(identity);
            place.write("ws/f", "old\n");
            place.write("ws/g", "g\n");
            let times = || {
                let directory = fs::metadata(place.ws()).unwrap();
                (directory.ctime_nsec(), directory.mtime_nsec())
            };
            let before = (Snapshot::of(&place.ws()), times());
            let (code, stdout, stderr) = said(&place, &["--check"], operations);
            assert_eq!((Snapshot::of(&place.ws()), times()), before, "{operations}");
            let applied = said(&place, &[], operations);
            assert_eq!(code, applied.0, "{operations}: {stderr}");
            assert_eq!(stderr, applied.2, "{operations}");
            let expected = applied
                .1
                .replace("Success. Updated the", "Would update the")
                .replace("Success. No file needed", "No file would need");
            assert_eq!(stdout, expected, "{operations}");
        }
    }
}

#[test]
fn it_works_where_nothing_may_be_written() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/f", "old\n");
        fs::set_permissions(place.ws(), fs::Permissions::from_mode(0o555)).unwrap();
        let operations = "*** Update File: f\n@@\n-old\n+new\n";
        let (code, stdout, stderr) = said(&place, &["--check"], operations);
        assert_eq!(
            (code, &*stdout),
            (Some(0), "Would update the following files:\nM f\n"),
            "{stderr}"
        );
    }
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_that_claims_nothing() {
    let place = Place::new(Identity::Caller);
    place.write("ws/f", "old\n");
    let good = "*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** End Patch\n";
    let outside = "*** Begin Patch\n*** Add File: ../out/x\n+x\n*** End Patch\n";
    let cases = [
        (
            &["--check"][..],
            good,
            1,
            "Error: the report could not be written",
        ),
        (
            &["--diff"],
            good,
            1,
            "Error: the report could not be written",
        ),
        (
            &["--json"],
            outside,
            3,
            "Error: the report could not be written",
        ),
        (
            &["--json"],
            good,
            1,
            "Error: done, but the report could not be written",
        ),
    ];
    for (switches, patch, code, begin) in cases {
        let mut command = place.command(place.exe());
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        command.arg("apply").args(switches).arg(patch).stdout(full);
        let output = command
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = output.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{switches:?}: {stderr}");
        assert!(stderr.starts_with(begin), "{switches:?}: {stderr}");
    }
}

#[test]
fn the_reference_doors_have_no_such_switch() {
    let place = Place::new(Identity::Caller);
    place.write("ws/f", "old\n");
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** End Patch\n";
    let mut alias = place.command(place.alias());
    alias.args(["--check", patch]);
    assert_cmd::Command::from_std(alias).assert().code(2);
    sandpatch(&place, &["--codex-run-as-apply-patch", patch, "--check"])
        .assert()
        .code(0);
    assert_eq!(fs::read(place.ws().join("f")).unwrap(), b"new\n");
}
