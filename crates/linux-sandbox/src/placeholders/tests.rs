#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock, fstat};

use super::*;
use crate::error::{Errno, Error, Step};

/// A directory whose time is long ago.
struct Ground(tempfile::TempDir);

impl Ground {
    fn new() -> Self {
        let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let ground = Self(dir);
        ground.age();
        ground
    }

    fn path(&self, name: &str) -> AbsolutePath {
        AbsolutePath::new(self.0.path().join(name)).unwrap()
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn age(&self) {
        set_modified(self.0.path(), long_ago());
    }

    fn modified(&self) -> SystemTime {
        fs::metadata(self.0.path()).unwrap().modified().unwrap()
    }

    fn take(&self, names: &[&str]) -> Result<Placeholders, Error> {
        let paths: Vec<AbsolutePath> = names.iter().map(|name| self.path(name)).collect();
        Placeholders::take(&paths)
    }

    /// Makes what a killed run leaves behind.
    fn leave_behind(&self, name: &str) {
        fs::create_dir(self.at(name)).unwrap();
        set_mode(&self.at(name), 0o1755);
    }
}

fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

fn set_modified(path: &Path, time: SystemTime) {
    File::open(path).unwrap().set_modified(time).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn errno(result: Result<Placeholders, Error>) -> i32 {
    let error = result.err().unwrap();
    assert_eq!(error.step, Step::HoldMissing);
    error.errno.0
}

#[test]
fn a_name_is_held_and_goes_without_a_trace() {
    let ground = Ground::new();
    let mut held = ground.take(&[".git"]).unwrap();
    let made = fs::symlink_metadata(ground.at(".git")).unwrap();
    assert!(made.is_dir());
    assert_eq!(made.mode() & 0o7777, 0o1755);
    let id = FileId {
        dev: made.dev(),
        ino: made.ino(),
    };
    assert_eq!(held.id_at(&ground.path(".git")), Some(id));
    assert_eq!(ground.modified(), long_ago());
    assert!(held.give_back().is_empty());
    assert!(!ground.at(".git").exists());
    assert_eq!(ground.modified(), long_ago());
}

#[test]
fn the_last_of_several_runs_removes_it() {
    let ground = Ground::new();
    let first = ground.take(&[".git"]).unwrap();
    let second = ground.take(&[".git"]).unwrap();
    drop(first);
    assert!(ground.at(".git").exists());
    drop(second);
    assert!(!ground.at(".git").exists());
}

#[test]
fn what_a_killed_run_left_is_used_and_removed() {
    let ground = Ground::new();
    ground.leave_behind(".git");
    drop(ground.take(&[".git"]).unwrap());
    assert!(!ground.at(".git").exists());
}

#[test]
fn an_empty_directory_of_somebody_else_stays() {
    let ground = Ground::new();
    fs::create_dir(ground.at(".git")).unwrap();
    let mut held = ground.take(&[".git"]).unwrap();
    assert!(held.id_at(&ground.path(".git")).is_some());
    assert!(held.give_back().is_empty());
    assert!(ground.at(".git").exists());
}

#[test]
fn a_placeholder_without_its_mark_is_somebody_elses_by_now() {
    let ground = Ground::new();
    let held = ground.take(&[".git"]).unwrap();
    set_mode(&ground.at(".git"), 0o755);
    drop(held);
    assert!(ground.at(".git").exists());
}

#[test]
fn what_somebody_put_into_it_stays_and_is_told() {
    let ground = Ground::new();
    let mut held = ground.take(&[".codex"]).unwrap();
    fs::write(ground.at(".codex/f"), "mine").unwrap();
    assert_eq!(held.give_back(), [ground.at(".codex")]);
    assert_eq!(fs::read(ground.at(".codex/f")).unwrap(), b"mine");
    let mode = fs::metadata(ground.at(".codex")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn another_directory_at_the_name_stays() {
    let ground = Ground::new();
    let held = ground.take(&[".git"]).unwrap();
    fs::remove_dir(ground.at(".git")).unwrap();
    ground.leave_behind(".git");
    drop(held);
    assert!(ground.at(".git").exists());
}

#[test]
fn what_is_not_missing_any_more_is_refused() {
    let ground = Ground::new();
    fs::write(ground.at("file"), "").unwrap();
    symlink("nowhere", ground.at("link")).unwrap();
    ground.leave_behind("full");
    fs::write(ground.at("full/f"), "").unwrap();
    for name in ["file", "link", "full"] {
        assert_eq!(errno(ground.take(&[name])), libc::ESTALE, "{name}");
    }
}

#[test]
fn a_parent_that_became_a_link_is_refused() {
    let ground = Ground::new();
    fs::create_dir(ground.at("real")).unwrap();
    symlink("real", ground.at("way")).unwrap();
    assert_eq!(errno(ground.take(&["way/.git"])), libc::ESTALE);
    assert!(!ground.at("real/.git").exists());
    // The same name without the link is taken.
    assert!(ground.take(&["real/.git"]).is_ok());
}

#[test]
fn a_failure_gives_back_what_was_taken() {
    let ground = Ground::new();
    fs::write(ground.at(".codex"), "").unwrap();
    assert_eq!(errno(ground.take(&[".agents", ".codex"])), libc::ESTALE);
    assert!(!ground.at(".agents").exists());
}

#[test]
fn a_lock_that_never_goes_is_an_error() {
    let ground = Ground::new();
    ground.leave_behind(".git");
    let locked = File::open(ground.at(".git")).unwrap();
    flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(errno(ground.take(&[".git"])), libc::EWOULDBLOCK);
    assert!(ground.at(".git").exists());
}

#[test]
fn a_name_too_long_is_an_error_and_not_a_gap() {
    let ground = Ground::new();
    let name = "n".repeat(300);
    assert_eq!(errno(ground.take(&[&name])), libc::ENAMETOOLONG);
}

#[test]
fn the_time_of_somebody_elses_change_stays() {
    let ground = Ground::new();
    let parent = OwnedFd::from(File::open(ground.0.path()).unwrap());
    let before = fstat(&parent).unwrap();
    fs::create_dir(ground.at("made")).unwrap();
    let made = fstat(File::open(ground.at("made")).unwrap()).unwrap();
    let later = SystemTime::now() + Duration::from_secs(10);
    set_modified(ground.0.path(), later);
    times::put_back(&parent, &before, &made);
    assert_eq!(ground.modified(), later);
}

#[test]
fn the_root_of_the_file_system_is_no_name() {
    let result = Placeholders::take([&AbsolutePath::filesystem_root()]);
    assert_eq!(errno(result), Errno(libc::EINVAL).0);
}
