//! An attacker who swaps directories for links while paths are resolved and
//! files are created. It counts what was created on both sides: nothing may
//! appear outside, and something must appear inside, or the test proves nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use safe_fs::{Attributes, Resolver, create, make_directories, stage};
use support::*;

const ROUNDS: usize = 3_000;
/// So many successes make a race worth the name; a busy machine takes longer.
const WANTED: usize = 100;
const MAX_ROUNDS: usize = 100_000;

/// The races take turns: each needs two processors.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `work` while another thread exchanges `root/dir` and a link to the
/// outside; `work` says whether it got through.
fn against_swaps(tree: &Tree, work: impl Fn(usize) -> bool) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let stop = AtomicBool::new(false);
    tree.link("root/trap", "../outside");
    thread::scope(|scope| {
        scope.spawn(|| {
            let (dir, trap) = (tree.path("root/dir"), tree.path("root/trap"));
            while !stop.load(Ordering::Relaxed) {
                let here = rustix::fs::CWD;
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(here, &dir, here, &trap, flags).unwrap();
            }
        });
        let _stop = StopAtEnd(&stop);
        let mut through = 0;
        for round in 0..MAX_ROUNDS {
            through += usize::from(work(round));
            if round >= ROUNDS && through >= WANTED {
                return;
            }
        }
        panic!("only {through} of {MAX_ROUNDS} got through: the test shows nothing");
    });
}

/// Ends the attack also when the work panics.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn inside(tree: &Tree) -> usize {
    let real = |name: &str| !tree.path(name).is_symlink();
    let name = if real("root/dir") {
        "root/dir"
    } else {
        "root/trap"
    };
    tree.names(name).len()
}

both_resolvers! {
    fn no_file_is_created_outside(resolver) {
        let tree = Tree::new(resolver);
        against_swaps(&tree, |round| {
            let Ok(at) = tree.roots.resolve(Path::new(&format!("dir/{round}"))) else {
                return false;
            };
            let staged = stage(at.dir(), b"x", Attributes::New { mode: 0o644 }).unwrap();
            create(staged, &at).unwrap().finish().unwrap();
            true
        });
        assert_eq!(tree.names("outside"), ["secret"]);
        assert!(inside(&tree) >= WANTED);
    }

    fn no_directory_is_made_outside(resolver) {
        let tree = Tree::new(resolver);
        against_swaps(&tree, |round| {
            let path = format!("dir/{round}/deep/file");
            let Ok(at) = tree.roots.resolve(Path::new(&path)) else { return false };
            let Ok((at, _step)) = make_directories(&at) else { return false };
            create(tree.stage(&at, "x"), &at).unwrap().finish().unwrap();
            true
        });
        assert_eq!(tree.names("outside"), ["secret"]);
        assert!(inside(&tree) > 0, "neither in the root nor outside");
    }

    fn a_swapped_link_is_not_followed_out(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/link", "dir/target");
        against_swaps(&tree, |_round| {
            let at = tree.roots.resolve(Path::new("link")).unwrap();
            let Ok(at) = tree.roots.follow(&at) else { return false };
            create(tree.stage(&at, "x"), &at).unwrap().undo().unwrap();
            true
        });
        assert_eq!(tree.names("outside"), ["secret"]);
    }
}

/// The control of the attack itself: plain paths lose the race.
#[test]
fn plain_paths_are_led_outside() {
    let tree = Tree::new(Resolver::detect());
    against_swaps(&tree, |round| {
        let name = round.to_string();
        fs::write(tree.path(&format!("root/dir/{name}")), "x").unwrap();
        tree.path("outside").join(name).exists()
    });
    assert!(tree.names("outside").len() >= WANTED);
}

/// Two writers that compare before they replace: no update is lost.
#[test]
fn concurrent_replaces_lose_no_update() {
    const EACH: usize = 300;
    let tree = Tree::new(Resolver::detect());
    tree.write("root/file", "0");
    let work = || {
        let mut done = 0;
        while done < EACH {
            let at = tree.at("file");
            let safe_fs::Entry::File(old) = tree.roots.entry(&at).unwrap() else {
                panic!("the name was missing for an instant");
            };
            let count: usize = String::from_utf8(old.read().unwrap())
                .unwrap()
                .parse()
                .unwrap();
            let new = (count + 1).to_string();
            let staged = stage(at.dir(), new.as_bytes(), Attributes::Like(&old)).unwrap();
            if let Ok(step) = safe_fs::replace(staged, &at, &old) {
                step.finish().unwrap();
                done += 1;
            }
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(work);
        work();
        other.join().unwrap();
    });
    assert_eq!(tree.content("root/file"), (2 * EACH).to_string());
    assert_eq!(fs::read_dir(tree.path("root")).unwrap().count(), 3);
}
