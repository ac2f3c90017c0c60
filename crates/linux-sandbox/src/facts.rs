//! Gathers the facts that planning needs, with as few calls as it can: most
//! runs have one root and plain directories.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, StatVfsMountFlags, fstat, fstatvfs, openat,
    readlinkat, statat,
};
use sandbox_policy::facts::{
    CallerFacts, FileId, HostFacts, LandlockFacts, LinkTarget, MountMode, ProtectedFacts,
    ProtectedState, ResolvedRoot, RootFacts, RootKind, TargetEnd, UserNamespaceFacts,
};
use sandbox_policy::gitdir::{parse_commondir, parse_gitdir};
use sandbox_policy::policy::{PROTECTED_NAMES, Protection, WritableRoot};
use sandbox_policy::{AbsolutePath, Policy};

use crate::error::{Context, Errno, Error, Step};
use crate::resolve::{Links, Walk, id_of, walk};
use crate::sys;

/// The longest pointer file that is read, in bytes: a path and its prefix.
const MAX_POINTER_BYTES: usize = 8192;

/// Looks at the host for everything that a policy is about.
pub fn gather(policy: &Policy) -> Result<HostFacts, Error> {
    let wanted = policy.writable_roots();
    let mut roots = Vec::with_capacity(wanted.len());
    for root in &wanted {
        roots.push(look_at_root(root)?);
    }
    if roots.len() > 1 {
        for root in &roots {
            refuse_inner_links(root, &roots)?;
        }
    }
    Ok(HostFacts {
        roots,
        tmp: real_tmp(),
        caller: caller()?,
        landlock: match sys::landlock_abi() {
            Ok(abi) => LandlockFacts::Available { abi },
            Err(errno) => LandlockFacts::Missing { errno: errno.0 },
        },
        user_namespaces: UserNamespaceFacts::Untried,
    })
}

fn caller() -> Result<CallerFacts, Error> {
    let euid = nix::unistd::geteuid().as_raw();
    let capabilities = match euid {
        0 => sys::capabilities().during(Step::InspectProcess)?.effective,
        _ => 0,
    };
    Ok(CallerFacts {
        euid,
        egid: nix::unistd::getegid().as_raw(),
        capabilities,
    })
}

/// Opens a path without any right on its content.
fn open_path(path: &Path) -> Result<OwnedFd, Errno> {
    Ok(openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Returns the path that the kernel shows for a descriptor.
///
/// The text is a hint, not a proof: it is used as a name that must lead to the
/// same inode again inside.
pub(crate) fn shown_path(fd: impl AsFd) -> Result<PathBuf, Errno> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let text = readlinkat(CWD, link, Vec::with_capacity(256))?;
    Ok(PathBuf::from(OsString::from_vec(text.into_bytes())))
}

fn absolute(path: PathBuf) -> Result<AbsolutePath, Errno> {
    AbsolutePath::new(path).map_err(|_| Errno(libc::EINVAL))
}

fn look_at_root(root: &WritableRoot) -> Result<RootFacts, Error> {
    let logical = root.path().clone();
    let protection = root.protection();
    let subject = logical.as_path();
    let resolved = match open_path(subject) {
        Err(Errno(libc::ENOENT | libc::ENOTDIR)) => None,
        Err(errno) => return Err(errno).during_on(Step::ResolveRoot, subject),
        Ok(fd) => {
            let mut found = look_at_file(&fd).during_on(Step::ResolveRoot, subject)?;
            let holds_names = found.kind == RootKind::Directory;
            if holds_names && protection == Protection::ProtectedNames {
                found.protected = look_at_protected(&fd, found.real.as_path())?;
            }
            Some(found)
        }
    };
    Ok(RootFacts {
        logical,
        protection,
        resolved,
    })
}

fn look_at_file(fd: &OwnedFd) -> Result<ResolvedRoot, Errno> {
    let stat = fstat(fd)?;
    let read_only = fstatvfs(fd)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    Ok(ResolvedRoot {
        real: absolute(shown_path(fd)?)?,
        id: id_of(&stat),
        owner_uid: stat.st_uid,
        kind: match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => RootKind::Directory,
            FileType::RegularFile => RootKind::File,
            _ => RootKind::Special,
        },
        mount: if read_only {
            MountMode::ReadOnly
        } else {
            MountMode::Writable
        },
        protected: Vec::new(),
    })
}

/// Makes sure that a root is not found through a link inside another root,
/// which a program in an earlier or concurrent run may have made.
fn refuse_inner_links(root: &RootFacts, all: &[RootFacts]) -> Result<(), Error> {
    let Some(found) = &root.resolved else {
        return Ok(());
    };
    let ids: Vec<FileId> = all
        .iter()
        .filter_map(|root| Some(root.resolved.as_ref()?.id))
        .collect();
    let subject = root.logical.as_path();
    let again = walk(subject, Links::RefuseBelow(&ids)).during_on(Step::ResolveRoot, subject)?;
    let same = again.end.is_ok_and(|end| id_of(&end.stat) == found.id);
    let same = if same {
        Ok(())
    } else {
        Err(Errno(libc::ESTALE))
    };
    same.during_on(Step::ResolveRoot, subject)
}

fn look_at_protected(fd: &OwnedFd, dir: &Path) -> Result<Vec<ProtectedFacts>, Error> {
    let mut facts = Vec::with_capacity(PROTECTED_NAMES.len());
    for name in PROTECTED_NAMES {
        let path = dir.join(name);
        let state = match statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => Ok(ProtectedState::Missing),
            Err(errno) => Err(errno.into()),
            Ok(stat) => state_of(&path, &stat),
        };
        let state = state.during_on(Step::ResolveProtected, &path)?;
        facts.push(ProtectedFacts {
            name: OsString::from(name),
            state,
        });
    }
    Ok(facts)
}

fn state_of(path: &Path, stat: &Stat) -> Result<ProtectedState, Errno> {
    let id = id_of(stat);
    Ok(match FileType::from_raw_mode(stat.st_mode) {
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

fn link_target(walk: Walk) -> Result<LinkTarget, Errno> {
    let mut crossed = Vec::with_capacity(walk.crossed.len());
    for (path, id) in walk.crossed {
        crossed.push((absolute(path)?, id));
    }
    let end = match walk.end {
        Ok(found) => TargetEnd::Found {
            id: id_of(&found.stat),
            real: absolute(found.real)?,
        },
        Err(missing) => TargetEnd::Missing {
            real: absolute(missing)?,
        },
    };
    Ok(LinkTarget { crossed, end })
}

/// Returns the real path of `/tmp`; a missing one is nothing to replace.
fn real_tmp() -> Option<AbsolutePath> {
    let tmp = Path::new("/tmp");
    let stat = statat(CWD, tmp, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => AbsolutePath::new(tmp).ok(),
        FileType::Symlink => {
            let end = walk(tmp, Links::Follow).ok()?.end.ok()?;
            AbsolutePath::new(end.real).ok()
        }
        _ => None,
    }
}
