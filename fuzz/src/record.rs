//! An undo record is data, whoever wrote it: it is taken back as a whole or not
//! at all, and reaches nothing outside the root.
//!
//! The input is a record without its first line.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use apply_patch::undo::Recorded;
use apply_patch::{Options, undo};
use safe_fs::{Resolver, Roots};

const FIRST_LINE: &[u8] = b"sandpatch undo 1\n";

/// Content or target of each name; nothing of a directory.
type Listing = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Checks one input.
pub fn check(input: &[u8]) {
    drop(Recorded::parse(input));
    let Ok(record) = Recorded::parse(&[FIRST_LINE, input].concat()) else {
        return;
    };
    let top = scratch();
    lay_out(&top);
    let before = listing(&top);
    let root = top.join("ws");
    let roots = Roots::open(&root, std::slice::from_ref(&root), &[], Resolver::detect());
    let undone = undo(&record, &roots.expect("roots"), &Options::safe());
    let after = listing(&top);
    match undone {
        Ok(_) => assert_eq!(outside(&after), outside(&before), "it reaches outside"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(after, before, "{error}: not undone, but something changed");
        }
    }
    fs::remove_dir_all(&top).expect("remove");
}

/// A directory of this process, in memory where there is such a place.
fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let above = match memory.is_dir() {
        true => memory.to_path_buf(),
        false => std::env::temp_dir(),
    };
    let top = above.join(format!("sandpatch-fuzz.{}", std::process::id()));
    if top.exists() {
        fs::remove_dir_all(&top).expect("remove what a finding left");
    }
    top
}

fn lay_out(top: &Path) {
    fs::create_dir_all(top.join("ws/d/e")).expect("create");
    for name in ["f", "ws/a", "ws/b", "ws/d/c"] {
        fs::write(top.join(name), "text\n").expect("write");
    }
    symlink("a", top.join("ws/l")).expect("link");
    symlink("../f", top.join("ws/out")).expect("link");
}

fn listing(directory: &Path) -> Listing {
    let mut found = Listing::new();
    for entry in fs::read_dir(directory).expect("list") {
        let path = entry.expect("entry").path();
        if path.is_symlink() {
            let target = fs::read_link(&path).expect("target");
            found.insert(path, Some(target.into_os_string().into_encoded_bytes()));
        } else if path.is_dir() {
            found.extend(listing(&path));
            found.insert(path, None);
        } else {
            let content = fs::read(&path).expect("read");
            found.insert(path, Some(content));
        }
    }
    found
}

fn outside(listing: &Listing) -> Listing {
    let is_outside = |path: &Path| !path.components().any(|part| part.as_os_str() == "ws");
    let others = listing.iter().filter(|(path, _)| is_outside(path));
    others
        .map(|(path, what)| (path.clone(), what.clone()))
        .collect()
}
