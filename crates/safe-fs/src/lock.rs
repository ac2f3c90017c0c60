//! The lock that makes patches to one workspace take turns. It is advisory:
//! whoever does not get it goes on, and the comparison before each swap
//! still protects the files.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{Error, Operation};
use crate::roots::Roots;

/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// Holds the workspace; dropping it, or the end of the process, lets go.
///
/// The kernel unlocks when the descriptor is closed (`flock(2)`): there is no
/// call to unlock, whose failure nobody could answer after the patch is done.
#[derive(Debug)]
pub struct WorkspaceLock(#[allow(dead_code, reason = "held for its drop")] OwnedFd);

impl Roots {
    /// Locks the workspace's directory (`flock(2)`, `LOCK_EX`), waiting at
    /// most `timeout_ms`; `None` when another holds it for so long, or when
    /// the directory cannot be read or locked.
    pub fn lock(&self, timeout_ms: u64) -> Result<Option<WorkspaceLock>, Error> {
        let Some((opened, path)) = self.open_workspace() else {
            return Ok(None);
        };
        let fd = match opened {
            Ok(fd) => fd,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(Error::io(Operation::Lock, path, error)),
        };
        let start = Instant::now();
        let limit = Duration::from_millis(timeout_ms);
        loop {
            match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(WorkspaceLock(fd))),
                Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if start.elapsed() < limit => {
                    sleep(PAUSE.min(limit.saturating_sub(start.elapsed())));
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(Error::io(Operation::Lock, path, errno.into())),
            }
        }
    }
}
