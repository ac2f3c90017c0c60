//! Where the fixtures lie, and how their lists of exceptions are looked up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The folder `tests/fixtures/NAME`.
#[must_use]
pub fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

/// The case folders in `dir` (those that hold a `patch.txt`), sorted by name.
#[must_use]
pub fn case_folders(dir: &Path) -> Vec<PathBuf> {
    entries(dir, |path| path.join("patch.txt").is_file())
}

/// The entries of `dir` that `keep` accepts, sorted by name.
#[must_use]
pub fn entries(dir: &Path, keep: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let listing =
        fs::read_dir(dir).unwrap_or_else(|error| panic!("read {}: {error}", dir.display()));
    let mut found: Vec<PathBuf> = listing
        .map(|entry| entry.expect("directory entry").path())
        .filter(|path| keep(path))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no fixture in {}", dir.display());
    found
}

/// The last component of `path` as text; fixture names are ASCII.
#[must_use]
pub fn name_of(path: &Path) -> String {
    path.file_name()
        .and_then(|name| name.to_str())
        .expect("fixture names are ASCII")
        .to_owned()
}

/// The trimmed text of an optional fixture file.
#[must_use]
pub fn optional_text(path: &Path) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// Copies the tree `from` to the new directory `to` with plain modes: 0755 for
/// directories and executables, 0644 for other files; links stay links.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("create");
    set_mode(to, 0o755);
    for source in fs::read_dir(from)
        .expect("list")
        .map(|entry| entry.expect("entry").path())
    {
        let target = to.join(source.file_name().expect("a name"));
        let meta = fs::symlink_metadata(&source).expect("lstat");
        if meta.is_symlink() {
            let text = fs::read_link(&source).expect("readlink");
            std::os::unix::fs::symlink(text, &target).expect("symlink");
        } else if meta.is_dir() {
            copy_tree(&source, &target);
        } else {
            fs::copy(&source, &target).expect("copy");
            set_mode(
                &target,
                if meta.permissions().mode() & 0o111 == 0 {
                    0o644
                } else {
                    0o755
                },
            );
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}
