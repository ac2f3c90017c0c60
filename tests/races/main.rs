//! Patches while another process replaces directories under them.
//!
//! A thread swaps `ws/d` between a real directory and a link to the outside,
//! atomically and as fast as it can, while the executable patches `d/f`. No
//! application may write outside; some must succeed inside, and some must be
//! refused, or the race did not happen.
//!
//! `RACE_APPLICATIONS` is the number of applications of the inner form (1,000
//! when it is not set; `scripts/test` asks for 10,000). The sandboxed form,
//! which is a few times dearer, runs 3 % of that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test helpers fail the test that called them, and report totals"
)]

mod attacker;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use sandpatch_tests::{Identity, Place, Snapshot};

/// Swaps two names until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                exchange(&one, &other);
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the swapping thread");
        }
    }
}

fn exchange(one: &Path, other: &Path) {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).expect("exchange");
}

/// How many applications succeeded and how many were refused.
#[derive(Debug, Default)]
struct Tally {
    applied: usize,
    refused: usize,
}

fn applications() -> usize {
    std::env::var("RACE_APPLICATIONS").map_or(1000, |text| {
        text.parse().expect("RACE_APPLICATIONS is a number")
    })
}

/// Applies `patch` `count` times with `flag` while `swap` names two paths that
/// are exchanged; returns the tally.
fn race(place: &Place, flag: &str, patch: &str, swap: (&str, &str), count: usize) -> Tally {
    let mut tally = Tally::default();
    let outside = Snapshot::of(&place.out());
    let swapper = Swapper::start(place.top().join(swap.0), place.top().join(swap.1));
    for round in 0..count {
        let mut command: Command = place.command(place.exe());
        command.arg(flag).arg(patch);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = command.status().expect("start");
        match status.code() {
            Some(0) => tally.applied += 1,
            // 3: by policy, 1: the link or the missing text was in the way.
            Some(1 | 3) => tally.refused += 1,
            other => panic!("round {round}: code {other:?}"),
        }
        // Looking at each round would slow the race down; the end is decisive
        // for writes that stay, this finds the round for the reader.
        if round % 64 == 0 {
            unchanged(&outside, place, round);
        }
    }
    drop(swapper);
    unchanged(&outside, place, count);
    assert!(tally.applied > 0, "nothing was ever applied: {tally:?}");
    assert!(tally.refused > 0, "the race never happened: {tally:?}");
    tally
}

fn unchanged(outside: &Snapshot, place: &Place, round: usize) {
    let difference = outside.difference(&Snapshot::of(&place.out()));
    assert_eq!(difference, "", "written outside by round {round}");
}

/// A workspace with a real directory `d` and a link `l` to the outside.
fn swapped_parents(identity: Identity) -> Place {
    let place = Place::new(identity);
    place.write("out/f", "outside\n");
    place.write("ws/d/f", "before\n");
    place.link("ws/l", "../out");
    place
}

/// After the race: the real directory holds exactly `names`, with the new
/// bytes in `f`, and the workspace nothing but the two swapped names.
fn only_these_names(place: &Place, names: &[&str]) {
    let real = ["d", "l"]
        .map(|name| place.ws().join(name))
        .into_iter()
        .find(|path| !path.is_symlink())
        .expect("one of them is the directory");
    assert_eq!(fs::read(real.join("f")).expect("read"), b"inside\n");
    assert_eq!(names_in(&real), names);
    assert_eq!(names_in(&place.ws()), ["d", "l"]);
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("list")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("ASCII")
        })
        .collect();
    names.sort();
    names
}

/// Replaces `d/f` (the codex doors replace what an Add meets).
const REPLACE: &str = "*** Begin Patch\n*** Add File: d/f\n+inside\n*** End Patch\n";
/// The same, and a new file in a new directory that it then removes again.
const MAKE_DIRECTORY: &str = "*** Begin Patch\n*** Add File: d/f\n+inside\n\
    *** Add File: d/new/deep/g\n+inside\n*** End Patch\n";

#[test]
fn inner_form_parent_swapped() {
    let place = swapped_parents(Identity::Caller);
    let flag = "--codex-run-as-apply-patch";
    race(&place, flag, REPLACE, ("ws/d", "ws/l"), applications());
    only_these_names(&place, &["f"]);
}

#[test]
fn inner_form_parent_swapped_while_directories_are_made() {
    let place = swapped_parents(Identity::Caller);
    let flag = "--codex-run-as-apply-patch";
    let count = applications() / 5;
    race(&place, flag, MAKE_DIRECTORY, ("ws/d", "ws/l"), count);
    only_these_names(&place, &["f", "new"]);
}

#[test]
fn sandboxed_form_parent_swapped() {
    for identity in Identity::all() {
        let place = swapped_parents(identity);
        // The safe dialect refuses to add onto a file, so this one updates,
        // forth and back in one patch.
        let patch = "*** Begin Patch\n*** Update File: d/f\n@@\n-inside\n+inside\n+more\n\
            *** Update File: d/f\n@@\n inside\n-more\n*** End Patch\n";
        place.write("ws/d/f", "inside\n");
        let count = (applications() * 3 / 100).max(100);
        race(
            &place,
            "--run-as-apply-patch",
            patch,
            ("ws/d", "ws/l"),
            count,
        );
        only_these_names(&place, &["f"]);
    }
}

#[test]
fn inner_form_file_swapped_for_a_link() {
    let place = Place::new(Identity::Caller);
    place.write("out/f", "outside\n");
    place.write("ws/f", "inside\n");
    place.link("ws/l", "../out/f");
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-inside\n+inside\n*** End Patch\n";
    let count = applications() / 5;
    race(
        &place,
        "--codex-run-as-apply-patch",
        patch,
        ("ws/f", "ws/l"),
        count,
    );
    assert_eq!(names_in(&place.ws()), ["f", "l"]);
}
