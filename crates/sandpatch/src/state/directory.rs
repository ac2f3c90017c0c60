//! Opens the state's directories: nobody else's, closed to others, and out of
//! reach of every writable root.
//!
//! Links are followed on the way to the base, which is the user's to arrange,
//! and nowhere from `sandpatch` on.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, StatxFlags, mkdirat, openat, readlinkat, statat, statx,
};
use rustix::io::Errno;
use sandbox_policy::facts::FileId;

use super::base::NAME;
use super::{Base, NoState};

const PRIVATE: Mode = Mode::RWXU;

const OTHERS: u32 = 0o077;

/// How far up a directory is followed; the kernel's paths are not deeper.
const DEEPEST: usize = 2048;

/// A writable root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its path without symbolic links.
    pub real: PathBuf,
    /// What is there.
    pub id: FileId,
}

/// What to do about directories that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Make them.
    Make,
    /// Say so.
    Report,
}

/// Opens `sandpatch/name` below the base for listing; all of it must belong to `uid`.
pub fn open(
    base: &Base,
    name: &str,
    roots: &[Root],
    missing: Missing,
    uid: u32,
) -> Result<OwnedFd, NoState> {
    let path = base.directory();
    let make = missing == Missing::Make;
    let state = match open_at(CWD, &path, OFlags::PATH) {
        Err(Errno::NOENT) if make => create(base, roots)?,
        other => other.map_err(|errno| failed(&path, errno))?,
    };
    check_owner(&state, &path, uid)?;
    let path = path.join(name);
    let opened = match open_at(&state, name, OFlags::RDONLY) {
        Err(Errno::NOENT) if make => {
            outside(&state, roots, Holding::Refused)?;
            make_at(&state, name.as_ref(), &path)?;
            open_at(&state, name, OFlags::RDONLY)
        }
        other => other,
    };
    let opened = opened.map_err(|errno| failed(&path, errno))?;
    check_owner(&opened, &path, uid)?;
    outside(&opened, roots, Holding::Refused)?;
    Ok(opened)
}

fn open_at(
    dir: impl rustix::fd::AsFd,
    path: impl rustix::path::Arg,
    how: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, path, flags, Mode::empty())
}

fn failed(path: &Path, errno: Errno) -> NoState {
    match errno {
        Errno::NOENT => NoState::Missing { path: path.into() },
        errno => NoState::os("open the directory", path, errno),
    }
}

/// Makes the state directory and what is missing above it, once it is clear
/// that it will lie outside of every root.
fn create(base: &Base, roots: &[Root]) -> Result<OwnedFd, NoState> {
    let mut path = base.path.as_path();
    let mut missing: Vec<&OsStr> = vec![NAME.as_ref()];
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = loop {
        match openat(CWD, path, flags, Mode::empty()) {
            Err(Errno::NOENT) if path != base.floor => {
                let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                    return Err(failed(path, Errno::NOENT));
                };
                missing.push(name);
                path = parent;
            }
            other => break other.map_err(|errno| failed(path, errno))?,
        }
    };
    // It may hold a root, as a home does: what is made in it will not.
    outside(&dir, roots, Holding::Allowed)?;
    let mut path = path.to_path_buf();
    for name in missing.into_iter().rev() {
        path.push(name);
        make_at(&dir, name, &path)?;
        dir = open_at(&dir, name, OFlags::PATH).map_err(|errno| failed(&path, errno))?;
    }
    Ok(dir)
}

fn make_at(dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), NoState> {
    match mkdirat(dir, name, PRIVATE) {
        // Another process was faster; it is checked like any other.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(NoState::os("make the directory", path, errno)),
    }
}

fn check_owner(dir: &OwnedFd, path: &Path, uid: u32) -> Result<(), NoState> {
    let stat = rustix::fs::fstat(dir).map_err(|errno| failed(path, errno))?;
    if stat.st_uid != uid {
        return Err(NoState::ForeignOwner {
            path: path.into(),
            owner: stat.st_uid,
            uid,
        });
    }
    match stat.st_mode & OTHERS {
        0 => Ok(()),
        _ => Err(NoState::OpenToOthers {
            path: path.into(),
            mode: stat.st_mode & 0o7777,
        }),
    }
}

/// Whether a directory may hold a root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holding {
    Allowed,
    Refused,
}

/// Makes sure that no root holds the directory, and perhaps that it holds no root.
///
/// Paths say it where both lie on one mount. Across mounts one directory has
/// several paths, so the parents are compared as well.
fn outside(dir: &OwnedFd, roots: &[Root], holding: Holding) -> Result<(), NoState> {
    let real = real_path(dir)?;
    let overlap = |root: &Root| NoState::Writable {
        path: real.clone(),
        root: root.real.clone(),
    };
    let is_holder = |root: &Root| holding == Holding::Refused && root.real.starts_with(&real);
    let overlaps = |root: &&Root| real.starts_with(&root.real) || is_holder(root);
    if let Some(root) = roots.iter().find(overlaps) {
        return Err(overlap(root));
    }
    let mount = mount_of(dir, "").map(|(mount, _)| mount);
    let elsewhere: Vec<&Root> = roots
        .iter()
        .filter(|root| {
            mount.is_none() || mount_of(CWD, &root.real) != mount.map(|it| (it, root.id))
        })
        .collect();
    if elsewhere.is_empty() {
        return Ok(());
    }
    let parents = parents(dir, &real)?;
    match elsewhere.iter().find(|root| parents.contains(&root.id)) {
        Some(root) => Err(overlap(root)),
        None => Ok(()),
    }
}

fn real_path(dir: &OwnedFd) -> Result<PathBuf, NoState> {
    use std::os::unix::ffi::OsStringExt;
    let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
    let text = readlinkat(CWD, &link, Vec::with_capacity(256))
        .map_err(|errno| NoState::os("read the link", &link, errno))?;
    Ok(std::ffi::OsString::from_vec(text.into_bytes()).into())
}

/// Returns the mount that a file lies on, and the file; nothing where the
/// kernel does not tell (before Linux 5.8).
fn mount_of(dir: impl rustix::fd::AsFd, path: impl rustix::path::Arg) -> Option<(u64, FileId)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let stat = statx(dir, path, flags, StatxFlags::INO | StatxFlags::MNT_ID).ok()?;
    if stat.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return None;
    }
    let id = FileId {
        dev: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        ino: stat.stx_ino,
    };
    Some((stat.stx_mnt_id, id))
}

/// Returns the directory itself and everything above it.
fn parents(dir: &OwnedFd, real: &Path) -> Result<Vec<FileId>, NoState> {
    let mut found: Vec<FileId> = Vec::new();
    let mut path = String::from(".");
    while found.len() < DEEPEST {
        let stat = statat(dir, path.as_str(), AtFlags::empty())
            .map_err(|errno| NoState::os("look at the parents of", real, errno))?;
        let id = FileId {
            dev: stat.st_dev,
            ino: stat.st_ino,
        };
        if found.last() == Some(&id) {
            return Ok(found);
        }
        found.push(id);
        path.push_str("/..");
    }
    Err(NoState::os(
        "look at the parents of",
        real,
        Errno::NAMETOOLONG,
    ))
}
