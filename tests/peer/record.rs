//! What one run left behind, and how it is stored.
//!
//! A record folder holds `stdout`, `stderr`, `code`, `manifest.txt` and
//! `tree/` (copies of the regular files). A manifest line is
//! `KIND MODE SIZE [xattr=NAMES] PATH[ -> TARGET]`, or `d MODE PATH/`. The
//! recorded lines of the reference also carry link count, hash, inode and time,
//! which a file that is replaced as a whole changes by design; they are dropped
//! (the bytes are compared with `tree/`).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sandpatch_tests::snapshot::{Entry, Node};
use sandpatch_tests::{Outcome, Snapshot};

/// One run's result.
#[derive(Debug, Default)]
pub struct Record {
    /// Standard output, with the run's directories taken out.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
    /// `0`…`255`, `-N` for a signal, or `timeout`.
    pub code: String,
    /// One line for each name, sorted.
    pub manifest: Vec<Vec<u8>>,
    /// The regular files, by path.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Record {
    /// The record of a run whose tree is `root`.
    pub fn of(root: &Path, normalise: impl Fn(&[u8]) -> Vec<u8>, outcome: &Outcome) -> Self {
        let snapshot = Snapshot::of(root);
        let mut manifest: Vec<Vec<u8>> = snapshot
            .0
            .iter()
            .map(|(path, entry)| normalise(&manifest_line(root, path, entry)))
            .collect();
        manifest.sort();
        let files = snapshot
            .0
            .into_iter()
            .filter_map(|(path, entry)| match entry.node {
                Node::File(bytes) => Some((path, bytes)),
                _ => None,
            });
        Self {
            stdout: normalise(&outcome.stdout),
            stderr: normalise(&outcome.stderr),
            code: outcome.ended.to_string(),
            manifest,
            files: files.collect(),
        }
    }

    /// Reads a record folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let part = |name: &str| {
            fs::read(folder.join(name))
                .map_err(|error| format!("no record {}/{name}: {error}", folder.display()))
        };
        let mut manifest: Vec<Vec<u8>> = part("manifest.txt")?
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(without_identity)
            .collect();
        manifest.sort();
        let tree = folder.join("tree");
        Ok(Self {
            stdout: part("stdout")?,
            stderr: part("stderr")?,
            code: String::from_utf8_lossy(&part("code")?).trim().to_owned(),
            manifest,
            files: if tree.is_dir() {
                files_below(&tree)
            } else {
                BTreeMap::new()
            },
        })
    }

    /// Writes the record folder anew.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        if self.code == "timeout" {
            return Err("a run that hangs is not worth recording".to_owned());
        }
        let io = |error: std::io::Error| format!("write {}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(io)?;
        }
        fs::create_dir_all(folder).map_err(io)?;
        let mut manifest = self.manifest.join(&b'\n');
        manifest.push(b'\n');
        fs::write(folder.join("stdout"), &self.stdout).map_err(io)?;
        fs::write(folder.join("stderr"), &self.stderr).map_err(io)?;
        fs::write(folder.join("code"), format!("{}\n", self.code)).map_err(io)?;
        fs::write(folder.join("manifest.txt"), manifest).map_err(io)?;
        for (path, bytes) in &self.files {
            let target = folder.join("tree").join(path);
            fs::create_dir_all(target.parent().expect("below tree")).map_err(io)?;
            fs::write(target, bytes).map_err(io)?;
        }
        Ok(())
    }
}

fn files_below(tree: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = Snapshot::of(tree).0.into_iter();
    entries
        .filter_map(|(path, entry)| match entry.node {
            Node::File(bytes) => Some((path, bytes)),
            _ => None,
        })
        .collect()
}

fn manifest_line(root: &Path, path: &Path, entry: &Entry) -> Vec<u8> {
    let size = match &entry.node {
        Node::File(bytes) => bytes.len().to_string(),
        Node::Dir => {
            let head = format!("d {:04o} ", entry.mode);
            return [head.as_bytes(), path.as_os_str().as_bytes(), b"/"].concat();
        }
        _ => "-".to_owned(),
    };
    let letter = entry.node.letter();
    let head = format!(
        "{letter} {:04o} {size} {}",
        entry.mode,
        user_xattrs(&root.join(path))
    );
    let mut line = [head.as_bytes(), path.as_os_str().as_bytes()].concat();
    if let Node::Link(target) = &entry.node {
        line.extend_from_slice(b" -> ");
        line.extend_from_slice(target.as_os_str().as_bytes());
    }
    line
}

/// `xattr=NAMES ` for the `user.` attributes of `path`, or nothing.
fn user_xattrs(path: &Path) -> String {
    let mut names = vec![0_u8; 4096];
    // Links and special files cannot have them, and some file systems neither.
    let size = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let list = names[..size]
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .filter(|name| name.starts_with("user."))
        .collect::<Vec<_>>()
        .join(",");
    if list.is_empty() {
        list
    } else {
        format!("xattr={list} ")
    }
}

/// Drops link count, hash, inode and time from a line that carries them.
fn without_identity(line: &[u8]) -> Vec<u8> {
    let fields: Vec<&[u8]> = line.splitn(8, |byte| *byte == b' ').collect();
    match fields[..] {
        [kind, mode, links, size, _, _, _, rest] if links.starts_with(b"n=") => {
            [kind, mode, size, rest].join(&b' ')
        }
        _ => line.to_vec(),
    }
}
