//! What stands at a protected name, and where it leads: a git directory may be
//! a link, or a file that points to the real one and to the common one.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use sandbox_policy::AbsolutePath;
use sandbox_policy::facts::{LinkTarget, ProtectedFacts, ProtectedState, TargetEnd};
use sandbox_policy::gitdir::{parse_commondir, parse_gitdir};

use super::{absolute, kind_of};
use crate::error::{Context, Errno, Error, Step};
use crate::resolve::{Links, Walk, id_of, walk};
use crate::{list, placeholders};

/// The longest pointer file that is read, in bytes: a path and its prefix.
const MAX_POINTER_BYTES: usize = 8192;

/// Looks at some names in a directory.
pub(super) fn look_at<N: AsRef<OsStr>>(
    dir: impl AsFd,
    real: &AbsolutePath,
    names: &[N],
) -> Result<Vec<ProtectedFacts>, Error> {
    let mut facts = Vec::with_capacity(names.len());
    for name in names {
        let name = name.as_ref();
        let path = real.as_path().join(name);
        let state = look_at_name(&dir, &path, name).during_on(Step::ResolveProtected, &path)?;
        facts.push(ProtectedFacts {
            name: name.to_owned(),
            state,
        });
    }
    Ok(facts)
}

/// Looks at one name in a directory.
pub(super) fn look_at_name(
    dir: impl AsFd,
    path: &Path,
    name: &OsStr,
) -> Result<ProtectedState, Errno> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => Ok(ProtectedState::Missing),
        Err(errno) => Err(errno.into()),
        Ok(stat) => state_of(path, &stat),
    }
}

fn state_of(path: &Path, stat: &Stat) -> Result<ProtectedState, Errno> {
    let id = id_of(stat);
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        // More links than two: it has subdirectories. Fewer: not counted here.
        FileType::Directory if stat.st_nlink <= 2 => match content(path)? {
            Content::Gone => ProtectedState::Missing,
            Content::Nothing if placeholders::is_marked(stat) => ProtectedState::Missing,
            Content::Nothing => ProtectedState::EmptyDirectory(id),
            Content::Something => ProtectedState::Directory(id),
        },
        FileType::Directory => ProtectedState::Directory(id),
        FileType::Symlink => {
            let text = readlinkat(CWD, path, Vec::new())?.into_bytes();
            let target = relative_to(path.parent(), Path::new(OsStr::from_bytes(&text)));
            let target = link_target(walk(&target, Links::Follow)?)?;
            ProtectedState::Link {
                id,
                text: OsString::from_vec(text),
                target,
            }
        }
        FileType::RegularFile if path.ends_with(".git") => ProtectedState::File {
            id,
            targets: git_targets(path)?,
        },
        _ => ProtectedState::File {
            id,
            targets: Vec::new(),
        },
    })
}

/// What is in a directory.
enum Content {
    /// It is not there any more: the placeholder of a run that ended.
    Gone,
    Nothing,
    /// Something, or nobody may know.
    Something,
}

fn content(path: &Path) -> Result<Content, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(CWD, path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(Content::Gone),
        Err(rustix::io::Errno::ACCESS) => return Ok(Content::Something),
        other => other?,
    };
    Ok(match list::is_empty(&directory)? {
        true => Content::Nothing,
        false => Content::Something,
    })
}

fn relative_to(base: Option<&Path>, path: &Path) -> PathBuf {
    base.unwrap_or(Path::new("/")).join(path)
}

/// Follows a `.git` file to the git directory and from there to the common one.
fn git_targets(pointer: &Path) -> Result<Vec<LinkTarget>, Errno> {
    let Some(target) = read_small(pointer)?.as_deref().and_then(parse_gitdir) else {
        return Ok(Vec::new());
    };
    let git_dir = walk(&relative_to(pointer.parent(), &target), Links::Follow)?;
    let mut targets = Vec::new();
    if let Ok(found) = &git_dir.end {
        let common = read_small(&found.real.join("commondir"))?;
        if let Some(common) = common.as_deref().and_then(parse_commondir) {
            let common = walk(&relative_to(Some(&found.real), &common), Links::Follow)?;
            targets.push(link_target(common)?);
        }
    }
    targets.insert(0, link_target(git_dir)?);
    Ok(targets)
}

/// Reads a small regular file; other kinds and missing files are nothing.
fn read_small(path: &Path) -> Result<Option<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = match openat(CWD, path, flags | OFlags::NOCTTY, Mode::empty()) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {
            return Ok(None);
        }
        other => other?,
    };
    if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let mut content = vec![0; MAX_POINTER_BYTES];
    let length = rustix::io::read(&fd, &mut content)?;
    content.truncate(length);
    Ok(Some(content))
}

/// Turns a walk into facts.
pub(super) fn link_target(walk: Walk) -> Result<LinkTarget, Errno> {
    let mut crossed = Vec::with_capacity(walk.crossed.len());
    for (path, id) in walk.crossed {
        crossed.push((absolute(path)?, id));
    }
    let end = match walk.end {
        Ok(found) => TargetEnd::Found {
            id: id_of(&found.stat),
            kind: kind_of(&found.stat),
            real: absolute(found.real)?,
        },
        Err(missing) => TargetEnd::Missing {
            real: absolute(missing)?,
        },
    };
    Ok(LinkTarget { crossed, end })
}
