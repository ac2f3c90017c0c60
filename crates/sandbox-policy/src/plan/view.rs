//! Reads a plan back: who may do what, as the mounts decide it.

use crate::path::AbsolutePath;
use crate::plan::Plan;
use crate::plan::mount::{MountOp, ViewMode};
use crate::plan::order::decide;
use crate::policy::Access;

impl Plan {
    /// Returns what the planned mounts allow for a real path.
    pub fn access(&self, path: &AbsolutePath) -> Access {
        let shm = AbsolutePath::of_kernel("/dev/shm");
        let mut rules: Vec<(AbsolutePath, Access)> = Vec::new();
        for operation in &self.mounts {
            match operation {
                MountOp::View(ViewMode::Writable) => {
                    rules.push((AbsolutePath::filesystem_root(), Access::Write));
                }
                MountOp::PrivateTmp(path) => rules.push((path.clone(), Access::Write)),
                MountOp::PrivateDev => {
                    rules.push((AbsolutePath::of_kernel("/dev"), Access::Read));
                    rules.push((shm.clone(), Access::Write));
                }
                MountOp::FreshProc => rules.push((AbsolutePath::of_kernel("/proc"), Access::Read)),
                MountOp::AttachRoot { root, .. } => {
                    rules.extend(
                        self.roots
                            .get(root.0)
                            .map(|r| (r.real.clone(), Access::Write)),
                    );
                }
                MountOp::Protect { path, .. } => {
                    rules.retain(|(other, _)| other != path);
                    rules.push((path.clone(), Access::Read));
                }
                _ => {}
            }
        }
        decide(rules.iter().map(|(path, access)| (path, *access)), path)
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
