//! Which bubblewrap is started: the first on `PATH` that no sandboxed program
//! can have written, and that works.
//!
//! What is known about a candidate is gathered first, and judged as a value.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, accessat};
use sandbox_policy::Plan;

use crate::bubblewrap::features::Features;
use crate::error::Errno;
use crate::resolve::{Links, walk};

/// The name that is looked for.
const NAME: &str = "bwrap";

/// Bits by which others than the owner may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A bubblewrap that was found, and what is thought of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The path, as `PATH` leads to it.
    pub path: PathBuf,
    /// Whether it can be used.
    pub verdict: Verdict,
}

/// What is thought of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Verdict {
    /// It can be used.
    #[error("it can be used (version {})", .0.version)]
    Usable(Features),
    /// It was not looked at: an earlier one is used.
    #[error("an earlier one is used")]
    NotNeeded,
    /// The entry of `PATH` depends on the current directory.
    #[error("its entry of PATH is relative")]
    Relative,
    /// A sandboxed program may write it, or a link that leads to it.
    #[error("it is reached through {}, where sandboxed programs may write", .0.display())]
    Writable(PathBuf),
    /// Somebody else may have written it.
    #[error("users other than root and this one may write it")]
    OthersWrite,
    /// It cannot be executed.
    #[error("it cannot be executed: {0}")]
    NotExecutable(Errno),
    /// It is too old.
    #[error("it has no {0}")]
    Lacks(&'static str),
    /// It was started, and failed.
    #[error("it does not work: {0}")]
    DoesNotWork(String),
}

/// What was found out about a path without starting anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The path, as `PATH` leads to it.
    pub(crate) spelled: PathBuf,
    /// The path without links.
    pub(crate) real: PathBuf,
    /// The links on the way, by their real paths.
    pub(crate) crossed: Vec<PathBuf>,
    /// Whose it is.
    pub(crate) owner: u32,
    /// Its permission bits.
    pub(crate) mode: u32,
    /// Why it cannot be executed.
    pub(crate) execution: Result<(), Errno>,
}

/// Returns what must not hold a candidate: the places that a program may write,
/// and the working directory.
pub(crate) fn forbidden(plan: &Plan, directory: &Path) -> Vec<PathBuf> {
    let written = |access| access == sandbox_policy::Access::Write;
    let roots = plan.roots.iter().filter(|root| written(root.access));
    let roots = roots.map(|root| root.real.as_path().to_path_buf());
    let real = directory.canonicalize().ok();
    // Who only stands at `/` may write no more than the roots.
    let here = [Some(directory.to_path_buf()), real];
    let here = here.into_iter().flatten();
    roots
        .chain(here.filter(|path| path != Path::new("/")))
        .collect()
}

/// Judges a candidate by what it is.
pub(crate) fn judge(found: &Found, forbidden: &[PathBuf], uid: u32) -> Result<(), Verdict> {
    if found.spelled.is_relative() {
        return Err(Verdict::Relative);
    }
    let mut ways = [&found.spelled, &found.real]
        .into_iter()
        .chain(&found.crossed);
    let written = ways.find_map(|way| forbidden.iter().find(|place| way.starts_with(place)));
    if let Some(place) = written {
        return Err(Verdict::Writable(place.clone()));
    }
    let has_other_owner = found.owner != 0 && found.owner != uid;
    if has_other_owner || found.mode & WRITABLE_BY_OTHERS != 0 {
        return Err(Verdict::OthersWrite);
    }
    found.execution.map_err(Verdict::NotExecutable)
}

/// Lists the bubblewraps on a `PATH`, in its order, each once.
pub(crate) fn look(path: &OsStr) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    for directory in path.as_bytes().split(|byte| *byte == b':') {
        let directory = match directory {
            b"" => Path::new("."),
            other => Path::new(OsStr::from_bytes(other)),
        };
        let Some(found) = look_at(&directory.join(NAME)) else {
            continue;
        };
        if all.iter().all(|known| known.spelled != found.spelled) {
            all.push(found);
        }
    }
    all
}

/// Returns nothing where nothing is.
fn look_at(spelled: &Path) -> Option<Found> {
    if spelled.is_relative() {
        // It is reported, not looked at; most entries lead to none.
        return spelled.exists().then(|| Found {
            spelled: spelled.to_path_buf(),
            real: spelled.to_path_buf(),
            crossed: Vec::new(),
            owner: 0,
            mode: 0,
            execution: Ok(()),
        });
    }
    let walked = walk(spelled, Links::Follow).ok()?;
    let end = walked.end.ok()?;
    let is_file = FileType::from_raw_mode(end.stat.st_mode) == FileType::RegularFile;
    let execution = match is_file {
        true => accessat(CWD, &end.real, Access::EXEC_OK, AtFlags::EACCESS).map_err(Errno::from),
        false => Err(Errno(libc::EACCES)),
    };
    Some(Found {
        spelled: spelled.to_path_buf(),
        real: end.real,
        crossed: walked.crossed.into_iter().map(|(path, _)| path).collect(),
        owner: end.stat.st_uid,
        mode: end.stat.st_mode,
        execution,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn found(real: &str) -> Found {
        Found {
            spelled: "/usr/bin/bwrap".into(),
            real: real.into(),
            crossed: Vec::new(),
            owner: 0,
            mode: 0o755,
            execution: Ok(()),
        }
    }

    #[test]
    fn what_may_have_been_written_is_not_started() {
        let forbidden = ["/w".into(), "/home/u/p".into()];
        let judge = |found: &Found| judge(found, &forbidden, 7);
        assert_eq!(judge(&found("/opt/bwrap")), Ok(()));
        assert_eq!(judge(&found("/wide/bwrap")), Ok(()));
        let in_root = Err(Verdict::Writable("/w".into()));
        assert_eq!(judge(&found("/w/bin/bwrap")), in_root);
        let spelled = Found {
            spelled: "/w/bwrap".into(),
            ..found("/opt/bwrap")
        };
        assert_eq!(judge(&spelled), in_root);
        let linked = Found {
            crossed: vec!["/a".into(), "/w/link".into()],
            ..found("/opt/bwrap")
        };
        assert_eq!(judge(&linked), in_root);
        let relative = Found {
            spelled: "bin/bwrap".into(),
            ..found("/opt/bwrap")
        };
        assert_eq!(judge(&relative), Err(Verdict::Relative));
    }

    #[test]
    fn files_of_others_and_what_cannot_be_executed_are_not_started() {
        let of = |owner, mode| Found {
            owner,
            mode,
            ..found("/opt/bwrap")
        };
        assert_eq!(judge(&of(7, 0o755), &[], 7), Ok(()));
        assert_eq!(judge(&of(7, 0o755), &[], 0), Err(Verdict::OthersWrite));
        assert_eq!(judge(&of(0, 0o775), &[], 7), Err(Verdict::OthersWrite));
        let refused = Found {
            execution: Err(Errno(libc::EACCES)),
            ..found("/opt/bwrap")
        };
        let verdict = Verdict::NotExecutable(Errno(libc::EACCES));
        assert_eq!(judge(&refused, &[], 7), Err(verdict));
    }

    #[test]
    fn path_is_searched_in_its_order_through_links() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let real = place.path().canonicalize().unwrap();
        for name in ["a", "b", "c", "d"] {
            std::fs::create_dir(real.join(name)).unwrap();
        }
        std::fs::write(real.join("b/bwrap"), "").unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(real.join("b/bwrap"), mode).unwrap();
        symlink("../b/bwrap", real.join("c/bwrap")).unwrap();
        std::fs::create_dir(real.join("d/bwrap")).unwrap();
        let path = ["a", "c", "d", "b", "c"].map(|name| real.join(name));
        let path = std::env::join_paths(path).unwrap();
        let all = look(&path);
        let spelled: Vec<_> = all.iter().map(|it| it.spelled.clone()).collect();
        let wanted = ["c", "d", "b"].map(|name| real.join(name).join("bwrap"));
        assert_eq!(spelled, wanted);
        assert_eq!(all[0].real, real.join("b/bwrap"));
        assert_eq!(all[0].crossed, [real.join("c/bwrap")]);
        assert_eq!(all[0].execution, Ok(()));
        assert_eq!(all[1].execution, Err(Errno(libc::EACCES)));
    }
}
