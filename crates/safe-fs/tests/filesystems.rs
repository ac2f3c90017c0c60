//! The operations on other file systems: each has its own idea of unnamed
//! files, exchanges and inode numbers. Needs the right to mount.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod support;

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags};
use safe_fs::{
    Attributes, Entry, Location, Pinned, Resolver, Roots, create, make_directories, relink, remove,
    rename, replace, rewrite, stage,
};

/// Unmounts also when a test fails.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, UnmountFlags::DETACH);
    }
}

fn mount<'a>(kind: &str, at: &'a Path, options: &[u8]) -> Option<Mounted<'a>> {
    let options = CString::new(options).unwrap();
    match rustix::mount::mount(kind, at, kind, MountFlags::empty(), options.as_c_str()) {
        Ok(()) => Some(Mounted(at)),
        Err(error) => {
            println!("skipped: {kind} cannot be mounted ({error})");
            None
        }
    }
}

fn pin(roots: &Roots, name: &str) -> (Location, Pinned) {
    let at = roots.resolve(Path::new(name)).unwrap();
    let Entry::File(pinned) = roots.entry(&at).unwrap() else {
        panic!("no file {name}")
    };
    (at, pinned)
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs through the operations on `file`, `gone`, `moved`, `linked` and `place`.
fn operate(path: &Path) {
    let roots = Roots::open(path, &[path.to_path_buf()], &[], Resolver::detect()).unwrap();
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    let like =
        |at: &Location, old: &Pinned| stage(at.dir(), b"new", Attributes::Like(old)).unwrap();
    let (at, old) = pin(&roots, "file");
    replace(like(&at, &old), &at, &old).unwrap().undo().unwrap();
    assert_eq!(read("file"), "file");
    let (at, old) = pin(&roots, "file");
    replace(like(&at, &old), &at, &old)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(read("file"), "new");

    let (at, old) = pin(&roots, "gone");
    remove(&at, &old).unwrap().undo().unwrap();
    assert_eq!(read("gone"), "gone");
    remove(&at, &old).unwrap().finish().unwrap();

    let (at, old) = pin(&roots, "moved");
    let to = roots.resolve(Path::new("a/b/arrived")).unwrap();
    let (to, made) = make_directories(&to).unwrap();
    rename(&at, &to, &old).unwrap().undo().unwrap();
    made.undo().unwrap();
    assert_eq!(read("moved"), "moved");
    let (to, _made) = make_directories(&roots.resolve(Path::new("a/b/arrived")).unwrap()).unwrap();
    rename(&at, &to, &old).unwrap().finish().unwrap();
    assert_eq!(read("a/b/arrived"), "moved");

    let (at, old) = pin(&roots, "place");
    rewrite(&at, &old, b"rewritten").unwrap().undo().unwrap();
    rewrite(&at, &pin(&roots, "place").1, b"rewritten")
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(read("place"), "rewritten");

    let new = roots.resolve(Path::new("new")).unwrap();
    let staged = stage(new.dir(), b"new", Attributes::New { mode: 0o666 }).unwrap();
    create(staged, &new).unwrap().finish().unwrap();
    assert_eq!(names(path), ["a", "file", "linked", "new", "place"]);
}

fn link_together(path: &Path) {
    let roots = &Roots::open(path, &[path.to_path_buf()], &[], Resolver::detect()).unwrap();
    fs::hard_link(path.join("linked"), path.join("name")).unwrap();
    let ((at, old), (name, old_name)) = (pin(roots, "linked"), pin(roots, "name"));
    assert_eq!(old.id(), old_name.id());
    let search = roots.find_links(old.id(), old.nlink(), 1000).unwrap();
    assert_eq!(search.found.len(), 2);
    let staged = stage(at.dir(), b"new", Attributes::Like(&old)).unwrap();
    let steps = [
        replace(staged, &at, &old).unwrap(),
        relink(&at, &name, &old_name).unwrap(),
    ];
    for step in steps {
        step.finish().unwrap();
    }
    assert_eq!(pin(roots, "linked").1.id(), pin(roots, "name").1.id());
}

fn fill(path: &Path) {
    for name in ["file", "gone", "moved", "linked", "place"] {
        fs::write(path.join(name), name).unwrap();
    }
}

fn overlay(lower: &Path, upper: &Path, work: &Path) -> Vec<u8> {
    let mut options = Vec::new();
    for (name, path) in [
        ("lowerdir=", lower),
        (",upperdir=", upper),
        (",workdir=", work),
    ] {
        options.extend(name.as_bytes());
        options.extend(path.as_os_str().as_bytes());
    }
    options
}

#[test]
fn the_disk() {
    let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    fill(temp.path());
    operate(temp.path());
    link_together(temp.path());
}

#[test]
fn tmpfs() {
    let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let Some(_mounted) = mount("tmpfs", temp.path(), b"size=1m") else {
        return;
    };
    fill(temp.path());
    operate(temp.path());
    link_together(temp.path());
}

#[test]
fn an_overlay_as_containers_have_it() {
    let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let dirs = ["lower", "upper", "work", "merged"].map(|name| temp.path().join(name));
    let [lower, upper, work, merged] = &dirs;
    dirs.iter().for_each(|dir| fs::create_dir(dir).unwrap());
    fill(lower);
    let options = overlay(lower, upper, work);
    let Some(_mounted) = mount("overlay", merged, &options) else {
        return;
    };
    operate(merged);
    link_together(merged);
}

/// Here the overlay itself gives the names of one file different identities
/// once it copies them up, so there is nothing to keep together.
#[test]
fn an_overlay_across_file_systems() {
    let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let dirs = ["lower", "memory", "merged"].map(|name| temp.path().join(name));
    let [lower, memory, merged] = &dirs;
    dirs.iter().for_each(|dir| fs::create_dir(dir).unwrap());
    fill(lower);
    let Some(_memory) = mount("tmpfs", memory, b"size=1m") else {
        return;
    };
    let (upper, work) = (memory.join("upper"), memory.join("work"));
    fs::create_dir(&upper).unwrap();
    fs::create_dir(&work).unwrap();
    let options = overlay(lower, &upper, &work);
    let Some(_mounted) = mount("overlay", merged, &options) else {
        return;
    };
    operate(merged);
}
