//! The process that cleans up after a supervisor that was killed.
//!
//! It waits for the end of a pipe whose other end only the supervisor and
//! process 1 hold: when both are gone, however they went, nobody inside is left
//! who could use the time without a placeholder.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, chdir, pipe2, setsid};
use rustix::io::Errno as Os;

use super::Placeholders;
use crate::error::{Context, Error, Step};
use crate::native::above_inherited;
use crate::sys::{self, Fork};

/// A guardian and the end of its pipe.
pub(super) struct Guardian {
    pid: Pid,
    /// Open while there is something to wait for.
    watched: Option<OwnedFd>,
}

impl Guardian {
    /// Starts a guardian, which knows what this process knows of the placeholders.
    ///
    /// # Errors
    ///
    /// When no pipe or no process can be had.
    pub(super) fn start(placeholders: &mut Placeholders) -> Result<Self, Error> {
        let (ear, watched) = pipe2(OFlag::O_CLOEXEC).during(Step::Guardian)?;
        let watched = above_inherited(watched).during(Step::Guardian)?;
        match sys::fork_into(0).during(Step::Guardian)? {
            Fork::Child => {
                drop(watched);
                watch(&ear, placeholders);
                sys::exit_now(0)
            }
            Fork::Parent(pid) => Ok(Self {
                pid: Pid::from_raw(pid),
                watched: Some(watched),
            }),
        }
    }

    /// Returns the end of the pipe that process 1 must keep open.
    pub(super) fn watched(&self) -> Option<&OwnedFd> {
        self.watched.as_ref()
    }

    /// Lets it end and waits for that; process 1 must be dead.
    pub(super) fn dismiss(mut self) {
        self.watched = None;
        let _ = waitpid(self.pid, None);
    }

    /// Lets it end whenever process 1 does.
    pub(super) fn leave(self) {
        drop(self);
    }
}

/// Waits until both are gone, and cleans up.
///
/// It holds nothing of the caller's: no pipe that somebody reads to its end, no
/// directory, no terminal, no group whose signals it gets.
fn watch(ear: &OwnedFd, placeholders: &mut Placeholders) {
    let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), None);
    let _ = setsid();
    let _ = chdir("/");
    close_all_but(ear, placeholders);
    let mut byte = [0];
    while matches!(rustix::io::read(ear, &mut byte), Err(Os::INTR)) {}
    placeholders.give_back();
}

fn close_all_but(ear: &OwnedFd, placeholders: &Placeholders) {
    let held = placeholders.held.iter();
    let mut kept: Vec<u32> = held
        .flat_map(|it| [it.parent.as_raw_fd(), it.directory.as_raw_fd()])
        .chain([ear.as_raw_fd()])
        .filter_map(|fd| u32::try_from(fd).ok())
        .collect();
    sys::close_all_but(&mut kept);
}
