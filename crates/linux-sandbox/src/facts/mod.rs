//! Gathers the facts that planning needs, with as few calls as it can: most
//! runs have one root and plain directories.

mod denials;
mod names;
mod rules;
mod survey;

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Stat, StatVfsMountFlags, fstat, fstatvfs, readlinkat, statat,
};
use sandbox_policy::facts::{
    CallerFacts, Denial, FileId, HostFacts, LandlockFacts, MountMode, ResolvedRoot, RootFacts,
    RootKind, SurveyFacts, UserNamespaceFacts,
};
use sandbox_policy::policy::{GUARDED_NAMES, Protection, Purpose, WritableRoot};
use sandbox_policy::{AbsolutePath, Policy};

use crate::error::{Context, Errno, Error, Step};
use crate::resolve::{Links, id_of, open_path, walk};
use crate::sys;

/// Looks at the host for everything that a policy is about.
///
/// The roots are walked through only for a command: the patch stage refuses the
/// protected names of every repository itself.
pub fn gather(policy: &Policy, purpose: Purpose) -> Result<HostFacts, Error> {
    gather_with(policy, purpose, &[])
}

/// Looks at the host like [`gather`], and for what earlier runs hid: it stays
/// hidden where it has been moved below the roots since.
pub fn gather_with(
    policy: &Policy,
    purpose: Purpose,
    known: &[Denial],
) -> Result<HostFacts, Error> {
    let wanted = policy.writable_roots();
    let mut roots = Vec::with_capacity(wanted.len());
    for root in &wanted {
        roots.push(look_at_root(root, policy)?);
    }
    if roots.len() > 1 {
        for root in &roots {
            refuse_inner_links(root, &roots)?;
        }
    }
    let mut found = rules::look_at_rules(policy, &roots)?;
    let sought = denials::Sought::new(policy, &found.rules, known);
    let survey = match purpose {
        Purpose::Patch if sought.is_empty() && policy.denied_globs().is_empty() => {
            SurveyFacts::default()
        }
        _ => {
            let surveyed = survey::survey(policy, &roots, &sought);
            found.rules.extend(surveyed.rules);
            // What a pattern denies must be found, not nearly all of it.
            if let (Some(unseen), false) = (
                surveyed.facts.unseen.first(),
                policy.denied_globs().is_empty(),
            ) {
                return Err(Errno(libc::E2BIG)).during_on(Step::ResolveRule, unseen.as_path());
            }
            surveyed.facts
        }
    };
    found.rules.extend(denials::second_mounts(&found.rules));
    Ok(HostFacts {
        denials: denials::below_roots(&found.rules, &roots),
        roots,
        rules: found.rules,
        survey,
        links: found.links,
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

fn look_at_root(root: &WritableRoot, policy: &Policy) -> Result<RootFacts, Error> {
    let logical = root.path().clone();
    let protection = root.protection();
    let subject = logical.as_path();
    let resolved = match open_path(subject) {
        Err(Errno(libc::ENOENT | libc::ENOTDIR)) => None,
        Err(errno) => return Err(errno).during_on(Step::ResolveRoot, subject),
        Ok(fd) => {
            let mut found = look_at_file(&fd).during_on(Step::ResolveRoot, subject)?;
            if found.kind == RootKind::Directory {
                let real = found.real.clone();
                found.protected = match protection {
                    Protection::ProtectedNames => {
                        names::look_at(&fd, &real, policy.protected_names())?
                    }
                    Protection::GitDirectory => names::look_at(&fd, &real, &GUARDED_NAMES)?,
                    Protection::Nothing => Vec::new(),
                };
            }
            Some(found)
        }
    };
    Ok(RootFacts {
        logical,
        protection,
        origin: root.origin(),
        resolved,
    })
}

/// Returns what kind of thing a `stat` is about.
fn kind_of(stat: &Stat) -> RootKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => RootKind::Directory,
        FileType::RegularFile => RootKind::File,
        _ => RootKind::Special,
    }
}

fn look_at_file(fd: &OwnedFd) -> Result<ResolvedRoot, Errno> {
    let stat = fstat(fd)?;
    let read_only = fstatvfs(fd)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    Ok(ResolvedRoot {
        real: absolute(shown_path(fd)?)?,
        id: id_of(&stat),
        owner_uid: stat.st_uid,
        kind: kind_of(&stat),
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
