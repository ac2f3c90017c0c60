//! `sandpatch apply --json`: the documented object (docs/report.md), alone.

use std::fs;
use std::path::Path;

use sandpatch_tests::{Identity, Place};
use serde_json::{Value, json};

use crate::sandpatch;

fn place() -> Place {
    let place = Place::new(Identity::Caller);
    place.write("ws/f", "one\ntwo\nthree\ntwo\n");
    place.write("ws/gone", "1\n");
    place
}

/// Runs `apply --json`, and checks what holds for every answer.
fn answer(place: &Place, switches: &[&str], patch: &str) -> Value {
    let mut arguments = vec!["apply", "--json"];
    arguments.extend(switches);
    let mut command = sandpatch(place, &arguments);
    let output = command.write_stdin(patch.to_owned()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "", "standard error stays empty");
    assert_eq!(output.stdout.last(), Some(&b'\n'));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["version"], 1);
    assert_eq!(value["exit_code"], json!(output.status.code()));
    for list in ["changes", "hunks", "notes", "errors"] {
        assert!(value[list].is_array(), "{list}: {value}");
    }
    value
}

fn wrapped(operations: &str) -> String {
    format!("*** Begin Patch\n{operations}*** End Patch\n")
}

#[test]
fn success_tells_changes_places_and_notes() {
    let place = place();
    let patch = wrapped(
        "*** Update File: f\n@@\n one\n-two \n+2\n*** Delete File: gone\n*** Add File: new\n+x\n",
    );
    let value = answer(&place, &[], &patch);
    assert_eq!(value["status"], "applied");
    let changes = json!([
        {"kind": "modified", "path": "f"},
        {"kind": "deleted", "path": "gone"},
        {"kind": "added", "path": "new"},
    ]);
    assert_eq!(value["changes"], changes);
    let place_of_chunk = json!({"chunk": 1, "line": 1, "match": "trailing-space"});
    let hunks = json!([{"operation": 1, "line": 2, "path": "f", "chunks": [place_of_chunk]}]);
    assert_eq!(value["hunks"], hunks);
    assert_eq!(value["notes"][0]["kind"], "loose-match");
    assert_eq!(value["notes"][0]["path"], "f");
    assert_eq!(value["errors"], json!([]));
    assert_eq!(value.get("diff"), None);
    assert_eq!(
        fs::read(place.ws().join("f")).unwrap(),
        b"one\n2\nthree\ntwo\n"
    );
}

#[test]
fn check_and_diff_combine_with_it() {
    let place = place();
    let patch = wrapped("*** Update File: f\n@@\n one\n-two\n+2\n");
    let checked = answer(&place, &["--check"], &patch);
    assert_eq!(checked["status"], "checked");
    assert_eq!(
        checked["changes"],
        json!([{"kind": "modified", "path": "f"}])
    );
    assert_eq!(checked.get("diff"), None);
    for switches in [&["--diff"][..], &["--check", "--diff"]] {
        let shown = answer(&place, switches, &patch);
        assert_eq!(shown["status"], "checked");
        let diff = shown["diff"].as_str().unwrap();
        assert!(
            diff.starts_with("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,4"),
            "{diff}"
        );
    }
    assert_eq!(
        fs::read(place.ws().join("f")).unwrap(),
        b"one\ntwo\nthree\ntwo\n"
    );
}

#[test]
fn every_failing_chunk_is_told_with_its_place() {
    let place = place();
    let patch = wrapped(
        "*** Update File: f\n@@\n one\n-twO\n+2\n@@\n-two\n+2\n@@ nowhere\n-x\n*** Delete File: none\n",
    );
    let value = answer(&place, &[], &patch);
    assert_eq!(value["status"], "failed");
    assert_eq!(value["exit_code"], 1);
    let error = &value["errors"][0];
    assert_eq!(error["kind"], "no-match");
    assert_eq!(
        (&error["operation"], &error["line"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(error["path"], "f");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("Failed to find expected lines in "),
        "{message}"
    );
    let chunk = &error["chunks"][0];
    assert_eq!((&chunk["chunk"], &chunk["line"]), (&json!(1), &json!(3)));
    assert_eq!(chunk["kind"], "not-found");
    assert_eq!(chunk["expected"], json!(["one", "twO"]));
    assert_eq!(chunk["nearest_line"], 1);
    let difference = json!({"line": 2, "kind": "case", "expected": "twO", "found": "two"});
    assert_eq!(chunk["difference"], difference);
    let chunks = error["chunks"].as_array().unwrap();
    let header = chunks.last().unwrap();
    assert_eq!(header["kind"], "header-not-found");
    assert_eq!(header["expected"], json!(["nowhere"]));
    let missing = &value["errors"][1];
    assert_eq!(
        (&missing["kind"], &missing["errno"]),
        (&json!("os-error"), &json!(2))
    );
    assert_eq!(missing["step"], "delete");
}

#[test]
fn ambiguous_and_applied_already_are_told_apart() {
    let place = place();
    let ambiguous = answer(&place, &[], &wrapped("*** Update File: f\n@@\n-two\n+2\n"));
    let chunk = &ambiguous["errors"][0]["chunks"][0];
    assert_eq!(
        (&chunk["kind"], &chunk["candidates"]),
        (&json!("ambiguous"), &json!([2, 4]))
    );
    let patch = wrapped("*** Update File: f\n@@\n-zero\n+one\n+two\n+three\n");
    let applied = answer(&place, &["--check"], &patch);
    let chunk = &applied["errors"][0]["chunks"][0];
    assert_eq!(
        (&chunk["kind"], &chunk["found_line"]),
        (&json!("already-applied"), &json!(1))
    );
    let first = wrapped("*** Update File: f\n@@\n-two\n+2\n");
    let taken = answer(&place, &["--on-ambiguous", "first"], &first);
    let note = &taken["notes"][0];
    assert_eq!(
        (&note["kind"], &note["candidates"]),
        (&json!("ambiguous"), &json!([2, 4]))
    );
}

#[test]
fn refusals_keep_code_3_and_name_the_rule() {
    let place = place();
    place.link("ws/out", "../out");
    let cases = [
        ("../out/x", "outside-roots"),
        ("out/x", "outside-roots"),
        (".git/x", "protected"),
    ];
    for (path, kind) in cases {
        let patch = wrapped(&format!("*** Add File: {path}\n+x\n"));
        for switches in [&[][..], &["--check"], &["--diff"]] {
            let value = answer(&place, switches, &patch);
            assert_eq!(value["status"], "refused", "{path}");
            assert_eq!(value["exit_code"], 3, "{path}");
            assert_eq!(value["errors"][0]["kind"], kind, "{path}");
        }
    }
}

#[test]
fn text_that_is_no_patch_is_told_too() {
    let place = place();
    let value = answer(&place, &[], &wrapped("*** Update File: f\n@@\n?\n"));
    assert_eq!(value["status"], "failed");
    assert_eq!(value["errors"][0]["kind"], "parse-error");
    assert_eq!(value["errors"][0]["line"], 4);
    assert_eq!(
        answer(&place, &[], "hello\n")["errors"][0]["kind"],
        "parse-error"
    );
    assert_eq!(
        answer(&place, &[], &wrapped(""))["errors"][0]["kind"],
        "empty-patch"
    );
}

#[test]
fn every_kind_is_documented() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| fs::read_to_string(top.join(path)).unwrap();
    let page = read("docs/report.md");
    let kinds = read("crates/apply-patch/src/kinds.rs");
    let arms = kinds.lines().filter(|line| line.contains("=> \""));
    let names: Vec<&str> = arms.filter_map(|line| line.split('"').nth(1)).collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/report.md"
        );
    }
}
