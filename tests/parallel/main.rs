//! Several patches to one file at once, and readers beside them.
//!
//! Patches to one workspace take turns, so parallel edits of different lines
//! all arrive. A name is swapped for a complete file, so whoever reads it sees
//! one version, whole.
//!
//! `PARALLEL_PATCHES` is the number of patches under the reader (1,000 when it
//! is not set).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail the test that called them"
)]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use sandpatch_tests::limited::{self, Outcome};
use sandpatch_tests::{Identity, Place, Tree};

const LIMIT: Duration = Duration::from_secs(100);
const INNER: &str = "--codex-run-as-apply-patch";
const SANDBOXED: &str = "--run-as-apply-patch";

fn apply(place: &Place, form: &str, patch: &str) -> Outcome {
    let mut command = place.command(place.exe());
    command.args([form, "-"]);
    limited::run(command, patch.as_bytes(), LIMIT)
}

/// Twenty processes, started together, each edit their own line of one file.
fn twenty_at_once(form: &str, identity: Identity) {
    const LINES: usize = 200_000;
    const PATCHES: usize = 20;
    let line_of = |n: usize| (2 * n + 1) * LINES / (2 * PATCHES);
    let text = |changed: usize| -> String {
        let edited: Vec<usize> = (0..changed).map(line_of).collect();
        let line = |n: usize| match edited.binary_search(&n) {
            Ok(_) => format!("line {n} edited\n"),
            Err(_) => format!("line {n}\n"),
        };
        (0..LINES).map(line).collect()
    };
    let place = Place::new(identity);
    place.write("ws/large", text(0));
    place.write("ws/keep", "kept\n");
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let place = &place;
        let start = |n: usize| {
            let line = line_of(n);
            let patch = format!(
                "*** Begin Patch\n*** Update File: large\n@@\n-line {line}\n+line {line} edited\n*** End Patch\n"
            );
            scope.spawn(move || apply(place, form, &patch))
        };
        let running: Vec<_> = (0..PATCHES).map(start).collect();
        let ended = running.into_iter().map(|one| one.join().expect("a patch"));
        ended.collect()
    });
    for outcome in &outcomes {
        assert!(outcome.succeeded(), "{outcome}");
    }
    let found = fs::read_to_string(place.ws().join("large")).expect("read");
    let expected = text(PATCHES);
    let differing = found
        .lines()
        .zip(expected.lines())
        .find(|(one, other)| one != other);
    assert_eq!(differing, None);
    assert!(found == expected, "the length differs");
    assert_eq!(names(&place), ["keep", "large"]);
    assert_eq!(fs::read(place.ws().join("keep")).expect("read"), b"kept\n");
}

fn names(place: &Place) -> Vec<String> {
    let listing = fs::read_dir(place.ws()).expect("list");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry
            .expect("entry")
            .file_name()
            .into_string()
            .expect("ASCII")
    };
    let mut names: Vec<String> = listing.map(name).collect();
    names.sort();
    names
}

#[test]
fn twenty_patches_at_once_inner_form() {
    twenty_at_once(INNER, Identity::Caller);
}

#[test]
fn twenty_patches_at_once_sandboxed() {
    for identity in Identity::all() {
        twenty_at_once(SANDBOXED, identity);
    }
}

/// Every line carries the number of the version.
fn version(number: usize) -> String {
    format!("version {number}\n").repeat(500)
}

/// Replaces each line: the version before is what it looks for.
fn to_version(number: usize) -> String {
    let before = number - 1;
    let chunk =
        format!("-version {before}\n").repeat(500) + &format!("+version {number}\n").repeat(500);
    format!("*** Begin Patch\n*** Update File: f\n@@\n{chunk}*** End Patch\n")
}

/// What a reader saw.
#[derive(Debug, Default)]
struct Seen {
    snapshots: usize,
    versions: usize,
}

/// Reads the file whole, over and over, until `stop`; every snapshot must be
/// one version, not older than the snapshot before, nor newer than `applied`
/// and the patch that is under way.
fn poll(path: &PathBuf, applied: &AtomicUsize, stop: &AtomicBool) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let mut last = None;
    while !stop.load(Ordering::Relaxed) {
        let text = fs::read_to_string(path).map_err(|error| format!("missing: {error}"))?;
        let newest = applied.load(Ordering::SeqCst) + 1;
        let first = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("version "));
        let number: usize = first
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| format!("no version in {} bytes", text.len()))?;
        if text != version(number) {
            return Err(format!(
                "version {number}, but {} bytes or mixed lines",
                text.len()
            ));
        }
        if last.is_some_and(|last| number < last) || number > newest {
            return Err(format!("version {number} after {last:?}, newest {newest}"));
        }
        seen.snapshots += 1;
        seen.versions += usize::from(last != Some(number));
        last = Some(number);
    }
    Ok(seen)
}

fn patches() -> usize {
    std::env::var("PARALLEL_PATCHES").map_or(1000, |text| {
        text.parse().expect("PARALLEL_PATCHES is a number")
    })
}

fn under_a_reader(form: &str, count: usize) {
    let place = Place::new(Identity::Caller);
    place.write("ws/f", version(0));
    let (applied, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let path = place.ws().join("f");
    let seen = thread::scope(|scope| {
        let reader = scope.spawn(|| poll(&path, &applied, &stop));
        for number in 1..=count {
            let outcome = apply(&place, form, &to_version(number));
            if !outcome.succeeded() || reader.is_finished() {
                stop.store(true, Ordering::Relaxed);
                assert!(outcome.succeeded(), "patch {number}: {outcome}");
                break;
            }
            applied.store(number, Ordering::SeqCst);
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("the reader")
    });
    let seen = seen.expect("every snapshot is one version");
    assert!(
        seen.versions > count / 10,
        "the reader was too slow: {seen:?}"
    );
    assert_eq!(fs::read_to_string(&path).expect("read"), version(count));
    assert!(Tree::of(&place.ws()).litter().is_empty());
}

#[test]
fn a_reader_sees_whole_versions_inner_form() {
    under_a_reader(INNER, patches());
}

#[test]
fn a_reader_sees_whole_versions_sandboxed() {
    under_a_reader(SANDBOXED, patches() / 5);
}

/// The control: an editor that truncates and writes is seen by the reader.
#[test]
fn a_reader_sees_a_file_that_is_written_in_place() {
    let place = Place::new(Identity::Caller);
    place.write("ws/f", version(0));
    let (applied, stop) = (AtomicUsize::new(usize::MAX / 2), AtomicBool::new(false));
    let path = place.ws().join("f");
    let seen = thread::scope(|scope| {
        let reader = scope.spawn(|| poll(&path, &applied, &stop));
        let mut number = 0;
        while !reader.is_finished() {
            number += 1;
            fs::write(&path, version(number)).expect("write");
        }
        reader.join().expect("the reader")
    });
    assert!(seen.is_err(), "{seen:?}");
}
