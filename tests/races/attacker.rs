//! An attacker that replaces whatever a patch touches, at random: parents,
//! leaves and the root itself, by links to the outside, FIFOs, directories and
//! hard links of files outside, and puts them back.
//!
//! Nothing outside changes, no application hangs, none panics.
//!
//! A tenth of `RACE_APPLICATIONS` is run with each of the two resolvers, and 3 %
//! of it sandboxed by each identity.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use sandpatch_tests::limited::{self, Ended, Outcome};
use sandpatch_tests::{Identity, Place, Snapshot, degrade, mounts};

const LIMIT: Duration = Duration::from_secs(20);

/// What is put in the place of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lure {
    LinkToDirectory,
    LinkToFile,
    LinkToLink,
    Fifo,
    Directory,
    HardLink,
}

const LURES: [Lure; 6] = [
    Lure::LinkToDirectory,
    Lure::LinkToFile,
    Lure::LinkToLink,
    Lure::Fifo,
    Lure::Directory,
    Lure::HardLink,
];

impl Lure {
    /// Makes it at `at`; `out` is the outside.
    fn make(self, at: &Path, out: &Path) {
        match self {
            Self::LinkToDirectory => std::os::unix::fs::symlink(out, at).expect("symlink"),
            Self::LinkToFile => std::os::unix::fs::symlink(out.join("f"), at).expect("symlink"),
            Self::LinkToLink => std::os::unix::fs::symlink(out.join("l"), at).expect("symlink"),
            Self::Fifo => mkfifo(at, Mode::from_bits_truncate(0o666)).expect("mkfifo"),
            Self::Directory => fs::create_dir(at).expect("mkdir"),
            Self::HardLink => fs::hard_link(out.join("f"), at).expect("link"),
        }
    }
}

/// Small, seeded, and good enough to be unpredictable to the patch.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("small")
    }
}

/// A thread that swaps lures in and out until it is dropped.
struct Attacker {
    stop: Arc<AtomicBool>,
    /// Held while a lure is in the place of its victim.
    turn: Arc<Mutex<()>>,
    thread: Option<JoinHandle<[usize; LURES.len()]>>,
}

impl Attacker {
    fn start(place: &Place, names: &[&str]) -> Self {
        let (spare, out) = (place.top().join("spare"), place.out());
        let victims: Vec<PathBuf> = names.iter().map(|name| place.top().join(name)).collect();
        fs::create_dir(&spare).expect("mkdir");
        let stop = Arc::new(AtomicBool::new(false));
        let turn = Arc::new(Mutex::new(()));
        let (seen, mine) = (Arc::clone(&stop), Arc::clone(&turn));
        let thread = thread::spawn(move || {
            let mut random = Random(0x9e37_79b9_7f4a_7c15);
            let mut swaps = [0; LURES.len()];
            while !seen.load(Ordering::Relaxed) {
                let victim = &victims[random.below(victims.len())];
                let kind = random.below(LURES.len());
                let lure = spare.join(format!("{kind}"));
                let pauses = random.below(12);
                let _held = mine.lock().expect("the turn");
                swaps[kind] += usize::from(swap(victim, &lure, LURES[kind], &out, pauses));
            }
            swaps
        });
        Self {
            stop,
            turn,
            thread: Some(thread),
        }
    }

    /// Ends it; returns how often each lure was in the way.
    fn stop(mut self) -> [usize; LURES.len()] {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("still running");
        thread.join().expect("the attacking thread")
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Puts a new lure in the place of a victim for a moment; false when the
/// victim is not there just now.
fn swap(victim: &Path, lure: &Path, kind: Lure, out: &Path, pauses: usize) -> bool {
    discard(lure);
    kind.make(lure, out);
    if !exchange(victim, lure) {
        return false;
    }
    for _ in 0..pauses {
        thread::yield_now();
    }
    // The patch may have removed the lure: then the victim only moves back.
    if !exchange(victim, lure) {
        // One of the two that follow is a refusal, and both are harmless.
        let _ = renameat2(
            AT_FDCWD,
            lure,
            AT_FDCWD,
            victim,
            RenameFlags::RENAME_NOREPLACE,
        );
    }
    true
}

fn exchange(one: &Path, other: &Path) -> bool {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).is_ok()
}

/// Removes a lure, or whatever came in its place, with all that is in it; a
/// patch that holds the directory may add to it meanwhile.
fn discard(path: &Path) {
    const ATTEMPTS: usize = 1000;
    for _ in 0..ATTEMPTS {
        let Ok(meta) = fs::symlink_metadata(path) else {
            return;
        };
        let removed = match meta.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        };
        if removed.is_err() {
            thread::yield_now();
        }
    }
    panic!("{} cannot be removed", path.display());
}

const PATCHES: [&str; 8] = [
    "*** Add File: d/f\n+inside\n",
    "*** Update File: f\n@@\n-inside\n+inside\n+more\n",
    "*** Update File: f\n@@\n inside\n-more\n*** Add File: d/e/g\n+inside\n",
    "*** Add File: d/new/deep/h\n+inside\n*** Add File: f\n+inside\n",
    "*** Delete File: d/new/deep/h\n*** Update File: d/f\n@@\n-inside\n+inside\n",
    "*** Update File: d/f\n*** Move to: moved\n",
    "*** Update File: moved\n*** Move to: d/f\n@@\n-inside\n+inside\n",
    "*** Delete File: d/e/g\n*** Add File: d/e/g\n+inside\n*** Add File: d/f\n+inside\n",
];

#[derive(Debug, Default)]
struct Tally {
    applied: usize,
    refused: usize,
}

/// Applies patches `count` times under attack, in the real root whatever its
/// name leads to in that moment.
fn under_attack(place: &Place, form: &str, victims: &[&str], count: usize) {
    let root = File::open(place.ws()).expect("the root");
    let inode = root.metadata().expect("stat").ino();
    let pinned = format!("/proc/self/fd/{}", root.as_raw_fd());
    let outside = Snapshot::of(&place.out());
    let attacker = Attacker::start(place, victims);
    let mut tally = Tally::default();
    for round in 0..count {
        let patch = PATCHES[round % PATCHES.len()];
        let mut command = place.command(place.exe());
        command.current_dir(&pinned).args([form, "-"]);
        let text = format!("*** Begin Patch\n{patch}*** End Patch\n");
        let outcome = limited::run(command, text.as_bytes(), LIMIT);
        judge(form, &outcome, round, &mut tally);
        // Looking at each round would slow the race down.
        if round % 32 == 0 {
            let _held = attacker.turn.lock().expect("the turn");
            unchanged(&outside, place, round);
            refill(place);
        }
    }
    let swaps = attacker.stop();
    unchanged(&outside, place, count);
    assert_eq!(fs::metadata(place.ws()).expect("stat").ino(), inode);
    assert!(tally.applied > 0, "nothing was ever applied: {tally:?}");
    assert!(tally.refused > 0, "the race never happened: {tally:?}");
    assert!(
        swaps.iter().sum::<usize>() > 0,
        "no lure was ever in the way"
    );
    // On a busy machine the attacker gets few turns in a short race.
    let is_long = count >= 500;
    assert!(
        !is_long || swaps.iter().all(|swaps| *swaps > 0),
        "{swaps:?}"
    );
    eprintln!("race totals: {form}: {count} applications: {tally:?}, lures: {LURES:?} {swaps:?}");
}

fn judge(form: &str, outcome: &Outcome, round: usize, tally: &mut Tally) {
    match outcome.ended {
        Ended::Code(0) => tally.applied += 1,
        Ended::Code(1 | 3) => tally.refused += 1,
        // No sandbox is built on a root that is another one meanwhile.
        Ended::Code(125) if form == SANDBOXED => tally.refused += 1,
        _ => panic!("round {round}: {outcome}"),
    }
    assert!(
        !outcome.stderr_text().contains("panicked"),
        "round {round}: {outcome}"
    );
}

fn unchanged(outside: &Snapshot, place: &Place, round: usize) {
    let difference = outside.difference(&Snapshot::of(&place.out()));
    assert_eq!(difference, "", "written outside by round {round}");
}

/// Every name that a patch may hit by mistake exists outside.
fn place(identity: Identity) -> Place {
    let place = Place::new(identity);
    for name in ["f", "moved", "g", "h", "d/f", "d/e/g", "e/g", "new/deep/h"] {
        place.write(&format!("out/{name}"), "inside\n");
    }
    place.link("out/l", "f");
    refill(&place);
    place
}

/// Puts the files back that the patches are for; an attack may have cost some.
fn refill(place: &Place) {
    for entry in fs::read_dir(place.ws()).expect("list") {
        discard(&entry.expect("entry").path());
    }
    for name in ["f", "d/f", "d/e/g"] {
        place.write(&format!("ws/{name}"), "inside\n");
    }
}

const BELOW: [&str; 5] = ["ws/d", "ws/f", "ws/d/f", "ws/d/e", "ws/d/e/g"];
const WITH_ROOT: [&str; 6] = ["ws/d", "ws/f", "ws/d/f", "ws/d/e", "ws/d/e/g", "ws"];
const INNER: &str = "--codex-run-as-apply-patch";
const SANDBOXED: &str = "--run-as-apply-patch";

fn share() -> usize {
    // A shorter race may be over before the attacker has had a turn.
    (super::applications() / 10).max(400)
}

#[test]
fn inner_form_attacked() {
    under_attack(&place(Identity::Caller), INNER, &BELOW, share() / 2);
    under_attack(&place(Identity::Caller), INNER, &WITH_ROOT, share() / 2);
}

#[test]
fn inner_form_attacked_without_openat2() {
    degrade::without_openat2();
    under_attack(&place(Identity::Caller), INNER, &BELOW, share() / 2);
    under_attack(&place(Identity::Caller), INNER, &WITH_ROOT, share() / 2);
}

#[test]
fn sandboxed_form_attacked() {
    for identity in Identity::all() {
        let count = (share() * 3 / 10).max(100);
        under_attack(&place(identity), SANDBOXED, &WITH_ROOT, count);
    }
}

/// The path of the current directory leads to another one all the time, which
/// is the moment that the root's attacker waits for.
#[test]
fn a_current_directory_that_is_covered() {
    let name = "a covered current directory";
    let Some(_own) = mounts::own(name) else {
        return;
    };
    let place = place(Identity::Caller);
    let root = File::open(place.ws()).expect("the root");
    let pinned = format!("/proc/self/fd/{}", root.as_raw_fd());
    let cover = mounts::tmpfs(&place.ws(), "mode=755");
    fs::write(place.ws().join("f"), "inside\n").expect("write");
    let covering = Snapshot::of(&place.ws());
    let apply = |form: &str| {
        let mut command = place.command(place.exe());
        command.current_dir(&pinned).args([form, "-"]);
        let patch = "*** Begin Patch\n*** Update File: f\n@@\n-inside\n+patched\n*** End Patch\n";
        limited::run(command, patch.as_bytes(), LIMIT)
    };
    let refused = apply(SANDBOXED);
    assert_eq!(refused.ended, Ended::Code(125), "{refused}");
    assert!(
        refused
            .stderr_text()
            .contains("is not the current directory any more")
    );
    let applied = apply(INNER);
    assert!(applied.succeeded(), "{applied}");
    assert_eq!(covering.difference(&Snapshot::of(&place.ws())), "");
    drop(cover);
    assert_eq!(fs::read(place.ws().join("f")).expect("read"), b"patched\n");
    assert!(
        apply(SANDBOXED)
            .stderr_text()
            .contains("Failed to find expected lines")
    );
}

/// The control: a program that is not careful is seen by the same check.
#[test]
fn a_careless_writer_is_caught() {
    let place = place(Identity::Caller);
    let outside = Snapshot::of(&place.out());
    let attacker = Attacker::start(&place, &BELOW);
    let is_changed = || outside != Snapshot::of(&place.out());
    let careless = |_| {
        let options = fs::OpenOptions::new()
            .write(true)
            .open(place.ws().join("d/f"));
        // A FIFO or a directory may be there: that is the attack.
        let written =
            options.and_then(|mut file| std::io::Write::write_all(&mut file, b"careless"));
        written.is_ok() && is_changed()
    };
    assert!((0..200_000).any(careless), "never changed outside");
    attacker.stop();
}
