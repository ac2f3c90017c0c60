//! Checks and previews: the report of an application, and nothing touched.
//!
//! Every test runs with both resolvers of the file layer. What the diffs are
//! worth is tested with `git apply` (`tests/cli/diff.rs` of the workspace).
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use apply_patch::report::{NotShown, Note};
use apply_patch::{Options, Preview, apply, check, parse, preview};
use safe_fs::{Resolver, Roots};
use tempfile::TempDir;

fn each(test: impl Fn(&TempDir, Resolver)) {
    for resolver in [Resolver::Openat2, Resolver::Walk] {
        let ws = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        test(&ws, resolver);
    }
}

fn roots(ws: &Path, resolver: Resolver) -> Roots {
    Roots::open(ws, &[ws.to_path_buf()], &[], resolver).unwrap()
}

fn shown(ws: &Path, resolver: Resolver, operations: &str) -> Preview {
    let text = format!("*** Begin Patch\n{operations}*** End Patch\n");
    let parsed = parse(&text).unwrap();
    preview(&parsed.patch, &roots(ws, resolver), &Options::safe()).unwrap()
}

#[test]
fn the_reports_are_those_of_an_application_and_nothing_is_touched() {
    each(|ws, resolver| {
        let ws = ws.path();
        fs::write(ws.join("f"), "old\n").unwrap();
        fs::hard_link(ws.join("f"), ws.join("g")).unwrap();
        let text = "*** Begin Patch\n*** Update File: f\n@@\n-old \n+new\n\
                    *** Add File: n/x\n+1\n*** End Patch\n";
        let parsed = parse(text).unwrap();
        let (roots, options) = (roots(ws, resolver), Options::safe());
        let times = |name: &str| {
            let meta = fs::metadata(ws.join(name)).unwrap();
            (meta.ino(), meta.ctime(), meta.ctime_nsec())
        };
        let before = (times("."), times("f"));
        let checked = check(&parsed.patch, &roots, &options).unwrap();
        let shown = preview(&parsed.patch, &roots, &options).unwrap();
        assert_eq!((times("."), times("f")), before);
        let applied = apply(&parsed.patch, &roots, &options, None).unwrap();
        assert_eq!(checked, applied);
        assert_eq!(shown.report, applied);
        assert_eq!(applied.notes.len(), 2, "{applied:?}");
    });
}

#[test]
fn paths_are_real_so_that_no_link_is_passed() {
    each(|ws, resolver| {
        let ws = ws.path();
        fs::create_dir(ws.join("real")).unwrap();
        symlink("real", ws.join("way")).unwrap();
        let text = "*** Add File: way/new/x\n+1\n";
        let diff = String::from_utf8(shown(ws, resolver, text).diff).unwrap();
        assert!(
            diff.starts_with("diff --git a/real/new/x b/real/new/x\n"),
            "{diff}"
        );
    });
}

#[test]
fn what_a_diff_cannot_show_is_noted() {
    each(|ws, resolver| {
        let ws = ws.path();
        let fifo = std::process::Command::new("mkfifo")
            .arg(ws.join("fifo"))
            .status();
        assert!(fifo.unwrap().success());
        fs::write(ws.join("b"), "1\0\n2\n").unwrap();
        let text = "*** Delete File: fifo\n*** Update File: b\n@@\n-2\n+3\n";
        let shown = shown(ws, resolver, text);
        let note = |path: &str, why| Note::NotShown {
            path: path.into(),
            why,
        };
        let expected = [note("fifo", NotShown::Special), note("b", NotShown::Binary)];
        assert_eq!(shown.report.notes, expected);
        let diff = String::from_utf8(shown.diff).unwrap();
        assert_eq!(
            diff,
            "diff --git a/b b/b\nBinary files a/b and b/b differ\n"
        );
    });
}
