//! What is below a directory, as a value to be compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Kind and mode of each name, and its content or target.
pub type Listing = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Lists everything below a directory; links are not followed.
pub fn listing(top: &Path) -> Listing {
    let mut found = Listing::new();
    walk(top, top, &mut found);
    found
}

fn walk(top: &Path, directory: &Path, found: &mut Listing) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = match meta.file_type() {
            kind if kind.is_file() => fs::read(&path).unwrap(),
            kind if kind.is_symlink() => fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes(),
            _ => Vec::new(),
        };
        let name = path.strip_prefix(top).unwrap().to_path_buf();
        found.insert(name, (meta.mode(), content));
        if meta.is_dir() {
            walk(top, &path, found);
        }
    }
}
