//! Who runs the executable: the caller, or an ordinary user made by root.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{Gid, Uid, chown, geteuid};

/// A user without an account: nothing on the host belongs to it.
pub const ORDINARY_UID: u32 = 12_345;

/// The identity a test runs the executable with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The user that started the tests.
    Caller,
    /// A user with this uid and gid and no other groups; only root can be it.
    Uid(u32),
}

impl Identity {
    /// The identities that this run can test: root and an ordinary user when
    /// started by root, otherwise the caller alone.
    #[must_use]
    pub fn all() -> Vec<Self> {
        if geteuid().is_root() {
            vec![Self::Caller, Self::Uid(ORDINARY_UID)]
        } else {
            vec![Self::Caller]
        }
    }

    /// `root` or `user`, for test names.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Caller if geteuid().is_root() => "root",
            Self::Caller | Self::Uid(_) => "user",
        }
    }

    /// Makes `command` run with this identity (the standard library drops the
    /// supplementary groups when root sets a uid).
    pub fn apply(self, command: &mut Command) {
        if let Self::Uid(uid) = self {
            command.uid(uid).gid(uid);
        }
    }

    /// Gives `path` itself (a link is not followed) to this identity.
    pub fn own(self, path: &Path) {
        if let Self::Uid(uid) = self {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(uid));
            if path.is_symlink() {
                std::os::unix::fs::lchown(path, Some(uid.as_raw()), Some(gid.as_raw()))
                    .expect("lchown");
            } else {
                chown(path, Some(uid), Some(gid)).expect("chown");
            }
        }
    }
}
