//! Making or sharing a placeholder.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Gid, Mode, OFlags, ResolveFlags, Stat, Uid, fchown, flock, fstat,
    mkdirat, openat, openat2, unlinkat,
};
use rustix::io::Errno as Os;
use rustix::process::{geteuid, umask};
use sandbox_policy::AbsolutePath;

use super::{Kind, MARK, Placeholder, Placeholders, is_marked, times};
use crate::error::{Context, Errno, Error, Step};
use crate::list;
use crate::resolve::id_of;

/// How long a run waits for one that is about to remove the same placeholder.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long it waits between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// What became of one attempt.
enum Attempt {
    Held(Placeholder),
    /// The caller may not make names there.
    NotCreatable {
        /// It could, after a `chmod`.
        is_own: bool,
    },
    /// Another run is removing it at this moment.
    Again,
}

impl Placeholders {
    /// Makes a placeholder at each missing name, or shares the one of another run.
    ///
    /// A path is a real one; a link that has come up on the way is refused. The
    /// process's umask is cleared meanwhile: everybody's runs share a placeholder.
    ///
    /// # Errors
    ///
    /// When a name is not missing any more (`ESTALE`: the facts are old), is
    /// locked by somebody for longer than a removal takes (`EWOULDBLOCK`), or
    /// cannot be made for a reason other than missing permission. What was made
    /// until then is given back.
    pub(super) fn take<'a>(
        paths: impl IntoIterator<Item = &'a AbsolutePath>,
    ) -> Result<Self, Error> {
        let _cleared = ClearedUmask::new();
        let mut placeholders = Self::default();
        for path in paths {
            match take(path).during_on(Step::HoldMissing, path.as_path())? {
                Attempt::Held(placeholder) => placeholders.held.push(placeholder),
                Attempt::NotCreatable { is_own: true } => placeholders.open.push(path.clone()),
                Attempt::NotCreatable { is_own: false } | Attempt::Again => {}
            }
        }
        Ok(placeholders)
    }
}

/// Puts the umask back when dropped.
struct ClearedUmask(Mode);

impl ClearedUmask {
    fn new() -> Self {
        Self(umask(Mode::empty()))
    }
}

impl Drop for ClearedUmask {
    fn drop(&mut self) {
        umask(self.0);
    }
}

/// Tries until there is a result other than [`Attempt::Again`].
fn take(path: &AbsolutePath) -> Result<Attempt, Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno(libc::EINVAL));
    };
    let end = Instant::now() + LONGEST_WAIT;
    loop {
        let parent = open_parent(parent.as_path())?;
        match attempt(path, parent, name)? {
            Attempt::Again if Instant::now() < end => std::thread::sleep(PAUSE),
            Attempt::Again => return Err(Errno(libc::EWOULDBLOCK)),
            done => return Ok(done),
        }
    }
}

fn open_parent(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |how| openat2(CWD, path, flags | how, Mode::empty(), resolve);
    match open(OFlags::RDONLY) {
        // One that cannot be listed can still hold names.
        Err(Os::ACCESS) => Ok(open(OFlags::PATH)?),
        Err(Os::NOENT | Os::NOTDIR | Os::LOOP) => Err(Errno(libc::ESTALE)),
        other => Ok(other?),
    }
}

fn attempt(path: &AbsolutePath, parent: OwnedFd, name: &OsStr) -> Result<Attempt, Errno> {
    let before = fstat(&parent)?;
    let is_new = match mkdirat(&parent, name, Mode::from_raw_mode(0o755 | MARK)) {
        Ok(()) => true,
        Err(Os::EXIST) => false,
        Err(Os::ACCESS) => {
            let is_own = before.st_uid == geteuid().as_raw();
            return Ok(Attempt::NotCreatable { is_own });
        }
        // Nothing that the command could change.
        Err(Os::PERM | Os::ROFS) => return Ok(Attempt::NotCreatable { is_own: false }),
        Err(errno) => return Err(errno.into()),
    };
    let placeholder = match open(path, parent, name, is_new, &before) {
        Err(Errno(libc::ENOENT)) => return Ok(Attempt::Again),
        other => other?,
    };
    share(placeholder, is_new)
}

/// Opens what is at the name now.
fn open(
    path: &AbsolutePath,
    parent: OwnedFd,
    name: &OsStr,
    is_new: bool,
    before: &Stat,
) -> Result<Placeholder, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(&parent, name, flags, Mode::empty()) {
        Ok(directory) => directory,
        // Somebody made something else of the name meanwhile.
        Err(Os::NOTDIR | Os::LOOP) => return Err(Errno(libc::ESTALE)),
        Err(errno) => {
            if is_new {
                let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
            }
            return Err(errno.into());
        }
    };
    let stat = fstat(&directory)?;
    if is_new {
        times::put_back(&parent, before, &stat);
        hand_over(&directory, before);
    }
    let kind = match (is_marked(&stat), is_new) {
        (true, _) => Kind::Marked,
        (false, true) => Kind::Unmarkable,
        (false, false) => Kind::Foreign,
    };
    Ok(Placeholder {
        path: path.clone(),
        parent,
        name: name.to_owned(),
        directory,
        id: id_of(&stat),
        kind,
    })
}

/// Gives a placeholder that root made to whom the directory around it belongs,
/// so that they can fill it.
fn hand_over(directory: &OwnedFd, around: &Stat) {
    if geteuid().is_root() && around.st_uid != 0 {
        let (uid, gid) = (Uid::from_raw(around.st_uid), Gid::from_raw(around.st_gid));
        let _ = fchown(directory, Some(uid), Some(gid));
    }
}

/// Makes sure that no other run removes the directory before this one ends.
fn share(placeholder: Placeholder, is_new: bool) -> Result<Attempt, Errno> {
    let shared = FlockOperation::NonBlockingLockShared;
    match flock(&placeholder.directory, shared) {
        Err(Os::WOULDBLOCK) => return Ok(Attempt::Again),
        other => other?,
    }
    if !placeholder.is_in_place() {
        return Ok(Attempt::Again);
    }
    // What was filled meanwhile is something to protect as it is.
    if !is_new && !list::is_empty(&placeholder.directory)? {
        return Err(Errno(libc::ESTALE));
    }
    Ok(Attempt::Held(placeholder))
}
