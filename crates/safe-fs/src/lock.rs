//! The lock that makes patches to one workspace take turns. It is advisory:
//! whoever does not get it goes on, and the comparison before each swap
//! still protects the files.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::{Error, Operation};
use crate::roots::Roots;

/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// Holds the workspace; dropping it, or the end of the process, lets go.
#[derive(Debug)]
pub struct WorkspaceLock(#[allow(dead_code, reason = "held for its drop")] Flock<OwnedFd>);

impl Roots {
    /// Locks the workspace's directory (`flock(2)`, `LOCK_EX`), waiting at
    /// most `timeout_ms`; `None` when another holds it for so long, or when
    /// the directory cannot be read or locked.
    pub fn lock(&self, timeout_ms: u64) -> Result<Option<WorkspaceLock>, Error> {
        let Some((opened, path)) = self.open_workspace() else {
            return Ok(None);
        };
        let mut fd = match opened {
            Ok(fd) => fd,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(Error::io(Operation::Lock, path, error)),
        };
        let start = Instant::now();
        let limit = Duration::from_millis(timeout_ms);
        loop {
            match Flock::lock(fd, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Some(WorkspaceLock(lock))),
                Err((_, Errno::ENOLCK | Errno::EOPNOTSUPP | Errno::ENOSYS)) => return Ok(None),
                Err((back, Errno::EINTR)) => fd = back,
                Err((back, Errno::EAGAIN)) if start.elapsed() < limit => {
                    fd = back;
                    sleep(PAUSE.min(limit.saturating_sub(start.elapsed())));
                }
                Err((_, Errno::EAGAIN)) => return Ok(None),
                Err((_, errno)) => return Err(Error::io(Operation::Lock, path, errno.into())),
            }
        }
    }
}
