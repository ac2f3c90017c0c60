//! A signal in the middle of a patch: the tree ends old or new, never between.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sandpatch_tests::{Identity, Place};

const FILES: usize = 600;

fn patch() -> String {
    let update = |index| format!("*** Update File: f{index}\n@@\n-a\n+b\n");
    let updates: String = (0..FILES).map(update).collect();
    format!("*** Begin Patch\n{updates}*** End Patch\n")
}

/// How many files have the new content; anything but a file of ours is litter.
fn changed(place: &Place) -> usize {
    let mut changed = 0;
    for entry in fs::read_dir(place.ws()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        assert!(name.starts_with('f'), "{name} was left behind");
        match fs::read(entry.path()).unwrap().as_slice() {
            b"b\n" => changed += 1,
            other => assert_eq!(other, b"a\n", "{name}"),
        }
    }
    changed
}

fn interrupted(place: &Place, door: &[&str], signal: &str) {
    for index in 0..FILES {
        place.write(&format!("ws/f{index}"), "a\n");
    }
    let file = place.top().join("patch");
    fs::write(&file, patch()).unwrap();
    let mut command: Command = place.command(place.exe());
    command.args(door).stdin(fs::File::open(&file).unwrap());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let first = place.ws().join("f0");
    let begun = Instant::now();
    while fs::read(&first).unwrap() == b"a\n" && begun.elapsed() < Duration::from_secs(10) {}
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
    assert!(sent.success(), "control: it was still running");
    child.wait().unwrap();
    let changed = changed(place);
    assert!(
        changed == 0 || changed == FILES,
        "{door:?} {signal}: {changed} of {FILES}"
    );
    assert!(
        changed > 0,
        "control: the signal came after the first change"
    );
}

#[test]
fn leaves_all_changes_or_none() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        for door in [&["apply", "-"][..], &["--codex-run-as-apply-patch", "-"]] {
            interrupted(&Place::new(Identity::Caller), door, signal);
        }
    }
}
