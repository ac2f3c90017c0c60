//! What the caller wants, before anything is known about the host.

use crate::path::AbsolutePath;
pub use crate::rule::Access;

/// Names directly below a writable root that stay read-only: they hold code or
/// settings that run outside the sandbox later.
pub const PROTECTED_NAMES: [&str; 3] = [".git", ".codex", ".agents"];

/// Which network the sandboxed program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// Its own, with nothing but a loopback interface.
    #[default]
    None,
    /// The host's.
    Host,
}

/// Which `/tmp` the sandboxed program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tmp {
    /// An empty writable one that is thrown away after the run.
    #[default]
    Private,
    /// The host's, writable.
    Host,
    /// The host's, read-only.
    None,
}

/// What the sandbox is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Any program that the caller names.
    Command,
    /// The patch stage: our own code, which refuses protected names itself.
    Patch,
}

/// Whether the protected names below a root are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    /// [`PROTECTED_NAMES`] stay read-only.
    ProtectedNames,
    /// Nothing below the root is held.
    Nothing,
}

/// One place that the sandboxed program may change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WritableRoot {
    path: AbsolutePath,
    protection: Protection,
}

impl WritableRoot {
    /// Returns the logical path.
    pub fn path(&self) -> &AbsolutePath {
        &self.path
    }

    /// Returns what is held below the root.
    pub fn protection(&self) -> Protection {
        self.protection
    }
}

/// Everything that a caller may decide about a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    roots: Vec<WritableRoot>,
    network: Network,
    tmp: Tmp,
}

impl Policy {
    /// Makes the default policy: everything readable, `cwd` writable, no
    /// network, a private `/tmp`.
    pub fn workspace(cwd: AbsolutePath) -> Self {
        Self::read_only().with_writable(cwd)
    }

    /// Makes a policy without any writable root.
    pub fn read_only() -> Self {
        Self {
            roots: Vec::new(),
            network: Network::None,
            tmp: Tmp::Private,
        }
    }

    /// Adds a writable root; naming one twice changes nothing.
    #[must_use]
    pub fn with_writable(mut self, path: AbsolutePath) -> Self {
        if !self.roots.iter().any(|root| root.path == path) {
            self.roots.push(WritableRoot {
                path,
                protection: Protection::ProtectedNames,
            });
        }
        self
    }

    /// Replaces the network.
    #[must_use]
    pub fn with_network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Replaces the `/tmp`.
    #[must_use]
    pub fn with_tmp(mut self, tmp: Tmp) -> Self {
        self.tmp = tmp;
        self
    }

    /// Returns the network.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Returns the `/tmp`.
    pub fn tmp(&self) -> Tmp {
        self.tmp
    }

    /// Returns the writable roots, with the host's `/tmp` when that is one.
    ///
    /// Nothing is held directly in `/tmp`: a `.git` there would change how
    /// tools of other programs behave.
    pub fn writable_roots(&self) -> Vec<WritableRoot> {
        let mut roots = self.roots.clone();
        let tmp = AbsolutePath::of_kernel("/tmp");
        if self.tmp == Tmp::Host && !roots.iter().any(|root| root.path == tmp) {
            roots.push(WritableRoot {
                path: tmp,
                protection: Protection::Nothing,
            });
        }
        roots
    }
}
