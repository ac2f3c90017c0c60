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
