//! The lock that makes patches to one workspace take turns. It is advisory:
//! whoever does not get it goes on, and the comparison before each swap
//! still protects the files.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::{Error, Operation};
use crate::roots::Roots;
use crate::sys;

/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// Holds the workspace; dropping it, or the end of the process, lets go.
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
            match sys::try_lock(fd.as_fd()) {
                Ok(true) => return Ok(Some(WorkspaceLock(fd))),
                Ok(false) if start.elapsed() < limit => {
                    sleep(PAUSE.min(limit.saturating_sub(start.elapsed())));
                }
                Ok(false) => return Ok(None),
                Err(error) if sys::lacks_locks(&error) => return Ok(None),
                Err(error) => return Err(Error::io(Operation::Lock, path, error)),
            }
        }
    }
}
