//! Placeholders together with the guardian that outlives their run.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use sandbox_policy::AbsolutePath;

use super::Placeholders;
use super::guardian::Guardian;
use crate::error::Error;

/// What one run holds; while it is alive, dropping it gives everything back, so
/// no process of the sandbox may be left by then.
pub(crate) struct Held {
    placeholders: Placeholders,
    /// There is none where there is nothing to clean up.
    guardian: Option<Guardian>,
}

/// What is known at the end.
pub(crate) struct GivenBack {
    /// Placeholders into which somebody outside put something.
    pub(crate) filled: Vec<PathBuf>,
    /// Names that the command could have made.
    pub(crate) open: Vec<AbsolutePath>,
}

impl Held {
    /// Makes the placeholders and starts their guardian.
    ///
    /// # Errors
    ///
    /// Those of [`Placeholders::take`], and when the guardian cannot be started;
    /// nothing is left then.
    pub(crate) fn take<'a>(
        paths: impl IntoIterator<Item = &'a AbsolutePath>,
    ) -> Result<Self, Error> {
        let mut placeholders = Placeholders::take(paths)?;
        let guardian = match placeholders.held.is_empty() {
            true => None,
            false => Some(Guardian::start(&mut placeholders)?),
        };
        Ok(Self {
            placeholders,
            guardian,
        })
    }

    /// Returns what stands in for missing names.
    pub(crate) fn placeholders(&self) -> &Placeholders {
        &self.placeholders
    }

    /// Returns what process 1 must keep open as long as it lives.
    pub(crate) fn watched(&self) -> Option<&OwnedFd> {
        self.guardian.as_ref().and_then(Guardian::watched)
    }

    /// Gives everything back, once process 1 is dead.
    pub(crate) fn give_back(mut self) -> GivenBack {
        GivenBack {
            filled: self.placeholders.give_back(),
            open: std::mem::take(&mut self.placeholders.open),
        }
    }

    /// Leaves everything to the guardian: process 1 may still be alive.
    pub(crate) fn leave_to_guardian(mut self) {
        self.placeholders.held.clear();
        if let Some(guardian) = self.guardian.take() {
            guardian.leave();
        }
    }
}

impl Drop for Held {
    /// The guardian finds nothing to do, so it is not waited for long.
    fn drop(&mut self) {
        self.placeholders.give_back();
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
    }
}
