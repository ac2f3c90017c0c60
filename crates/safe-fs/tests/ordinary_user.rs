//! What only shows without root's rights: permissions, owners that cannot be
//! given away, directories that may not be written. Run by root, each test
//! starts itself again as another user.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use safe_fs::{
    Attributes, Entry, ErrorKind, LostAttribute, Pinned, Resolver, Roots, create, remove, rename,
    replace, rewrite, stage,
};
use support::is_root;

/// `nobody` on most systems; any user that is not root will do.
const USER: u32 = 65534;
const TREE: &str = "SAFE_FS_TEST_TREE";

/// Runs `prepare` as whoever we are, then `check` as an ordinary user.
fn as_ordinary_user(name: &str, prepare: fn(&Path), check: fn(&Path)) {
    if let Some(tree) = std::env::var_os(TREE) {
        assert!(!is_root());
        return check(Path::new(&tree));
    }
    let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let tree = temp.path().join("tree");
    fs::create_dir(&tree).unwrap();
    prepare(&tree);
    if !is_root() {
        return check(&tree);
    }
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = temp.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let ids = [format!("--reuid={USER}"), format!("--regid={USER}")];
    let child = Command::new("setpriv")
        .args(ids)
        .args(["--clear-groups", "--"])
        .arg(&program)
        .args(["--exact", name, "--nocapture"])
        .env(TREE, &tree)
        .output();
    match child {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.success() && text.contains("1 passed"),
                "{text}{errors}"
            );
        }
        Err(error) => println!("skipped: setpriv cannot be run ({error})"),
    }
}

/// Makes a file that the ordinary user owns, when we may give it away.
fn own(path: PathBuf, content: &str, mode: u32) {
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&path, Some(USER), Some(USER)).unwrap();
    }
}

fn give(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    if is_root() {
        std::os::unix::fs::chown(path, Some(USER), Some(USER)).unwrap();
    }
}

fn open(tree: &Path) -> Roots {
    Roots::open(tree, &[tree.to_path_buf()], &[], Resolver::detect()).unwrap()
}

fn pin(roots: &Roots, name: &str) -> (safe_fs::Location, Pinned) {
    let at = roots.resolve(Path::new(name)).unwrap();
    let Entry::File(pinned) = roots.entry(&at).unwrap() else {
        panic!("no file {name}")
    };
    (at, pinned)
}

#[test]
fn every_operation_works_without_capabilities() {
    let prepare = |tree: &Path| {
        give(tree, 0o755);
        own(tree.join("file"), "old", 0o640);
    };
    let check = |tree: &Path| {
        let roots = open(tree);
        let new = roots.resolve(Path::new("new")).unwrap();
        let staged = stage(new.dir(), b"new", Attributes::New { mode: 0o666 }).unwrap();
        create(staged, &new).unwrap().finish().unwrap();
        let (at, old) = pin(&roots, "file");
        let staged = stage(at.dir(), b"new", Attributes::Like(&old)).unwrap();
        assert!(staged.lost().is_empty());
        replace(staged, &at, &old).unwrap().finish().unwrap();
        let (at, old) = pin(&roots, "file");
        assert_eq!((old.read().unwrap(), old.mode()), (b"new".to_vec(), 0o640));
        rename(&at, &roots.resolve(Path::new("moved")).unwrap(), &old)
            .unwrap()
            .undo()
            .unwrap();
        remove(&at, &old).unwrap().finish().unwrap();
        let names: Vec<_> = fs::read_dir(tree)
            .unwrap()
            .map(|entry| entry.unwrap())
            .collect();
        assert_eq!(names.len(), 1);
    };
    as_ordinary_user("every_operation_works_without_capabilities", prepare, check);
}

#[test]
fn a_read_only_file_is_not_writable_but_may_be_removed() {
    let prepare = |tree: &Path| {
        give(tree, 0o755);
        own(tree.join("locked"), "old", 0o444);
        own(tree.join("open"), "old", 0o644);
        own(tree.join("secret"), "old", 0o200);
    };
    let check = |tree: &Path| {
        let roots = open(tree);
        let (at, locked) = pin(&roots, "locked");
        let error = locked.check_writable().unwrap_err();
        assert_eq!(
            (error.kind(), error.path()),
            (&ErrorKind::PermissionDenied, at.path())
        );
        pin(&roots, "open").1.check_writable().unwrap();
        let secret = pin(&roots, "secret").1;
        secret.check_writable().unwrap();
        assert_eq!(
            secret.read().unwrap_err().kind(),
            &ErrorKind::PermissionDenied
        );
        remove(&at, &locked).unwrap().finish().unwrap();
    };
    as_ordinary_user(
        "a_read_only_file_is_not_writable_but_may_be_removed",
        prepare,
        check,
    );
}

#[test]
fn a_directory_without_write_permission_is_rewritten_in() {
    let prepare = |tree: &Path| {
        own(tree.join("file"), "old", 0o644);
        give(tree, 0o555);
    };
    let check = |tree: &Path| {
        let roots = open(tree);
        let (at, old) = pin(&roots, "file");
        let error = stage(at.dir(), b"new", Attributes::Like(&old)).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::PermissionDenied);
        rewrite(&at, &old, b"new").unwrap().undo().unwrap();
        assert_eq!(fs::read(tree.join("file")).unwrap(), b"old");
        rewrite(&at, &pin(&roots, "file").1, b"new")
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!(fs::read(tree.join("file")).unwrap(), b"new");
        fs::set_permissions(tree, fs::Permissions::from_mode(0o755)).unwrap();
    };
    as_ordinary_user(
        "a_directory_without_write_permission_is_rewritten_in",
        prepare,
        check,
    );
}

#[test]
fn an_owner_that_cannot_be_kept_is_reported() {
    let prepare = |tree: &Path| {
        give(tree, 0o777);
        fs::write(tree.join("file"), "old").unwrap();
        fs::set_permissions(tree.join("file"), fs::Permissions::from_mode(0o6666)).unwrap();
    };
    let check = |tree: &Path| {
        let roots = open(tree);
        let (at, old) = pin(&roots, "file");
        let staged = stage(at.dir(), b"new", Attributes::Like(&old)).unwrap();
        if old.uid() == nix::unistd::geteuid().as_raw() {
            println!("skipped: the file is ours, since root did not make it");
            return;
        }
        assert_eq!(staged.lost(), [LostAttribute::Group, LostAttribute::Owner]);
        let step = replace(staged, &at, &old).unwrap();
        let now = fs::metadata(tree.join("file")).unwrap();
        assert_eq!(
            now.mode() & 0o7777,
            0o666,
            "no set-user-ID for another owner"
        );
        step.undo().unwrap();
        assert_eq!(fs::metadata(tree.join("file")).unwrap().uid(), old.uid());
    };
    as_ordinary_user("an_owner_that_cannot_be_kept_is_reported", prepare, check);
}

#[test]
fn a_directory_that_may_not_be_searched_is_said_or_left() {
    let prepare = |tree: &Path| {
        give(tree, 0o755);
        fs::create_dir(tree.join("closed")).unwrap();
        fs::create_dir(tree.join("closed/deep")).unwrap();
        give(&tree.join("closed"), 0o600);
    };
    let check = |tree: &Path| {
        for resolver in [Resolver::detect(), Resolver::Walk] {
            let roots = Roots::open(tree, &[tree.to_path_buf()], &[], resolver).unwrap();
            let error = roots.resolve(Path::new("closed/deep/x")).unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::PermissionDenied);
            assert!(roots.resolve(Path::new("closed/../x")).is_ok());
        }
        fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    };
    as_ordinary_user(
        "a_directory_that_may_not_be_searched_is_said_or_left",
        prepare,
        check,
    );
}
