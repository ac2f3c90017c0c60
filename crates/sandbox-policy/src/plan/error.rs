//! Why no plan can be made.

use crate::path::AbsolutePath;

/// Says what stands in the way of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A writable root does not exist.
    #[error("writable root {0} does not exist")]
    RootMissing(AbsolutePath),
    /// A writable root is neither a directory nor a regular file.
    #[error("writable root {0} is neither a directory nor a regular file")]
    RootSpecial(AbsolutePath),
    /// A writable root lies in a tree that belongs to the kernel.
    #[error("writable root {root} lies in {tree}, which every sandbox replaces or holds")]
    RootInKernelTree {
        /// The root.
        root: AbsolutePath,
        /// The tree.
        tree: AbsolutePath,
    },
    /// Holding a protected name would hold a whole writable root.
    #[error("protected name {name} leads to {target}, which holds the writable root {root}")]
    ProtectedTargetHoldsRoot {
        /// The protected name.
        name: AbsolutePath,
        /// Where it leads.
        target: AbsolutePath,
        /// The root inside the target.
        root: AbsolutePath,
    },
    /// The caller is root but may not mount.
    #[error("user id 0 without CAP_SYS_ADMIN can make no mounts")]
    RootWithoutSysAdmin,
    /// User namespaces are refused.
    #[error("user namespaces are refused (errno {errno})")]
    NoUserNamespaces {
        /// The error of the attempt.
        errno: i32,
    },
    /// Landlock cannot be used.
    #[error("landlock is not available (errno {errno})")]
    LandlockMissing {
        /// Why.
        errno: i32,
    },
}

impl PlanError {
    /// Returns what the reader can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::RootMissing(_) => "create it, or name a directory that exists",
            Self::RootSpecial(_) => "name a directory or a regular file",
            Self::RootInKernelTree { .. } => "work in a directory of an ordinary file system",
            Self::ProtectedTargetHoldsRoot { .. } => {
                "make the link point to a directory of its own below the root"
            }
            Self::RootWithoutSysAdmin => {
                "run as an ordinary user, or outside of the container or sandbox that took \
                 CAP_SYS_ADMIN away"
            }
            Self::NoUserNamespaces { .. } => {
                "allow user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone \
                 or the AppArmor restriction)"
            }
            Self::LandlockMissing { .. } => {
                "use Linux 5.13 or newer with landlock in the lsm= boot option"
            }
        }
    }
}
