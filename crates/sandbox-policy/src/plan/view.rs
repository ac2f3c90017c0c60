//! Reads a plan back: who may do what, as the mounts decide it.

use crate::path::AbsolutePath;
use crate::plan::Plan;
use crate::plan::mount::{MountOp, ViewMode};
use crate::plan::order::decide;
use crate::policy::Access;

impl Plan {
    /// Returns what the planned mounts allow for a real path.
    pub fn access(&self, path: &AbsolutePath) -> Access {
        let mut rules: Vec<(AbsolutePath, Access)> = Vec::new();
        let mut base = Access::Read;
        for operation in &self.mounts {
            let at = operation.path(&self.roots).cloned();
            match (operation, at) {
                (MountOp::View(ViewMode::Writable), _) => base = Access::Write,
                (MountOp::EmptyView { .. }, _) => base = Access::Deny,
                (MountOp::PrivateDev, _) => {
                    rules.push((AbsolutePath::of_kernel("/dev"), Access::Read));
                    rules.push((AbsolutePath::of_kernel("/dev/shm"), Access::Write));
                }
                (MountOp::FreshProc, _) => {
                    rules.push((AbsolutePath::of_kernel("/proc"), Access::Read));
                }
                (MountOp::PrivateTmp(_), Some(path)) => rules.push((path, Access::Write)),
                (MountOp::AttachRoot { root, .. }, Some(path)) => {
                    let access = self.roots.get(root.0).map(|root| root.access);
                    rules.extend(access.map(|access| (path, access)));
                }
                (MountOp::Protect { .. }, Some(path)) => rules.push((path, Access::Read)),
                (MountOp::HoldMissing { access, .. }, Some(path)) => rules.push((path, *access)),
                (MountOp::Mask { .. }, Some(path)) => rules.push((path, Access::Deny)),
                _ => {}
            }
        }
        let rules = rules.iter().map(|(path, access)| (path, *access));
        decide(rules, base, path)
    }

    /// Tells whether what the host has at a real path cannot be seen inside.
    pub fn is_hidden(&self, path: &AbsolutePath) -> bool {
        let private = self.mounts.iter().find_map(|operation| match operation {
            MountOp::PrivateTmp(tmp) if path.is_below(tmp) => Some(tmp),
            _ => None,
        });
        private.is_some_and(|tmp| {
            !self
                .roots
                .iter()
                .any(|root| root.real.is_below(tmp) && path.is_within(&root.real))
        })
    }
}
