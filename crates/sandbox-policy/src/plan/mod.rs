//! Turns a policy and facts into a plan: a value that says everything a backend
//! will do, in order.

mod effective;
mod error;
mod grants;
mod layout;
mod mount;
mod order;
mod roots;
#[cfg(test)]
mod tests;
mod view;

pub use error::PlanError;
pub use grants::Grant;
pub use mount::{AttachTarget, MaskForm, MountOp, PinnedRoot, RootIndex, ViewMode};
pub(crate) use order::decide;

use serde::{Deserialize, Serialize};

use crate::facts::{CallerFacts, HostFacts, LandlockFacts, UserNamespaceFacts};
use crate::path::AbsolutePath;
use crate::policy::{Network, Policy, Protection, Purpose};

/// Number of the capability that mounting needs.
const CAP_SYS_ADMIN: u32 = 21;

/// A capability that a run may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Capability {
    /// Gives files away.
    Chown,
    /// Passes over file permissions.
    DacOverride,
    /// Acts on files of other owners.
    Fowner,
    /// Keeps set-id bits when a file changes.
    Fsetid,
}

impl Capability {
    /// Returns the kernel's number.
    pub fn number(self) -> u32 {
        match self {
            Self::Chown => 0,
            Self::DacOverride => 1,
            Self::Fowner => 3,
            Self::Fsetid => 4,
        }
    }
}

/// Who the sandboxed program is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// The caller, alone in a user namespace of its own.
    UserNamespace {
        /// The user id, the same inside and outside.
        uid: u32,
        /// The group id, the same inside and outside.
        gid: u32,
    },
    /// The caller is root: no user namespace, so that owners stay what they
    /// are.
    Privileged {
        /// The capabilities that the program keeps.
        kept: Vec<Capability>,
    },
}

/// A kernel feature without which the plan cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Requirement {
    /// A mount namespace.
    MountNamespace,
    /// A process id namespace.
    PidNamespace,
    /// A System V IPC namespace.
    IpcNamespace,
    /// A network namespace.
    NetworkNamespace,
    /// A user namespace.
    UserNamespace,
    /// Landlock.
    Landlock,
    /// Seccomp filters.
    Seccomp,
}

/// A wish that the plan does not meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NotCovered {
    /// A protected name that does not exist yet can be created inside.
    MissingProtectedName(AbsolutePath),
    /// Repositories in this directory are not held: nobody looked there.
    NestedRepositories(AbsolutePath),
    /// Files below the root that have other names outside can be changed.
    LinkedFiles(AbsolutePath),
}

/// Everything that a backend will do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What the sandbox is for.
    pub purpose: Purpose,
    /// The roots that are mounted; a covered root is not among them.
    pub roots: Vec<PinnedRoot>,
    /// The mount operations, in the order in which they must happen.
    pub mounts: Vec<MountOp>,
    /// What Landlock allows.
    pub grants: Vec<Grant>,
    /// Which network is seen.
    pub network: Network,
    /// Who the program is.
    pub identity: Identity,
    /// What the kernel must offer.
    pub requirements: Vec<Requirement>,
    /// What the plan leaves open.
    pub not_covered: Vec<NotCovered>,
    /// Logical spellings of roots, with their real paths.
    pub(crate) spellings: Vec<(AbsolutePath, AbsolutePath)>,
}

impl Plan {
    /// Tells whether the plan needs a kernel feature.
    pub fn requires(&self, requirement: Requirement) -> bool {
        self.requirements.contains(&requirement)
    }

    /// Lists the missing names that are held.
    pub fn missing_names(&self) -> impl Iterator<Item = &AbsolutePath> {
        self.mounts.iter().filter_map(|operation| match operation {
            MountOp::HoldMissing { path, .. } => Some(path),
            _ => None,
        })
    }

    /// Translates a path that is spelled through a root's logical path.
    pub fn real_path(&self, path: &AbsolutePath) -> AbsolutePath {
        let best = self
            .spellings
            .iter()
            .filter(|(logical, _)| path.is_within(logical));
        let best = best.max_by_key(|(logical, _)| logical.depth());
        let translated = best.and_then(|(logical, real)| {
            let rest = path.as_path().strip_prefix(logical.as_path()).ok()?;
            AbsolutePath::new(real.as_path().join(rest)).ok()
        });
        translated.unwrap_or_else(|| path.clone())
    }
}

/// Plans a sandbox.
pub fn plan(policy: &Policy, facts: &HostFacts, purpose: Purpose) -> Result<Plan, PlanError> {
    if let LandlockFacts::Missing { errno } = facts.landlock {
        return Err(PlanError::LandlockMissing { errno });
    }
    let resolved = roots::resolved(facts)?;
    let owners = Owners::of(&resolved);
    let identity = identity(facts.caller, facts.user_namespaces, purpose, owners)?;
    let collected = effective::collect(policy, facts, &resolved, purpose)?;
    let layout = layout::lay_out(policy, facts, purpose, &collected.entries);
    let requirements = requirements(policy.network(), &identity);
    let spellings = resolved
        .iter()
        .map(|root| (root.logical.clone(), root.facts.real.clone()));
    Ok(Plan {
        purpose,
        mounts: layout.mounts,
        grants: layout.grants,
        spellings: spellings.collect(),
        roots: layout.roots,
        network: policy.network(),
        identity,
        requirements,
        not_covered: not_covered(collected.open, facts, &resolved, purpose),
    })
}

/// Lists what a command could do against the policy.
fn not_covered(
    open: Vec<AbsolutePath>,
    facts: &HostFacts,
    roots: &[roots::Root<'_>],
    purpose: Purpose,
) -> Vec<NotCovered> {
    if purpose == Purpose::Patch {
        return Vec::new();
    }
    let unseen = facts.survey.unseen.iter().cloned();
    let linked = roots
        .iter()
        .filter(|root| root.protection != Protection::Nothing)
        .map(|root| NotCovered::LinkedFiles(root.facts.real.clone()));
    let open = open.into_iter().map(NotCovered::MissingProtectedName);
    open.chain(unseen.map(NotCovered::NestedRepositories))
        .chain(linked)
        .collect()
}

/// Whose the roots are, seen from user id 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owners {
    /// Its own.
    Root,
    /// Some root belongs to another user.
    Others,
}

impl Owners {
    fn of(roots: &[roots::Root<'_>]) -> Self {
        match roots.iter().any(|root| root.facts.owner_uid != 0) {
            true => Self::Others,
            false => Self::Root,
        }
    }
}

/// Decides who the program is.
fn identity(
    caller: CallerFacts,
    user_namespaces: UserNamespaceFacts,
    purpose: Purpose,
    owners: Owners,
) -> Result<Identity, PlanError> {
    if caller.euid == 0 {
        if caller.capabilities & (1 << CAP_SYS_ADMIN) == 0 {
            return Err(PlanError::RootWithoutSysAdmin);
        }
        let kept = match (purpose, owners) {
            (Purpose::Command, Owners::Root) => Vec::new(),
            // Root works in other people's directories, as in many containers.
            (Purpose::Command, Owners::Others) => {
                vec![Capability::DacOverride, Capability::Fowner]
            }
            (Purpose::Patch, _) => vec![
                Capability::Chown,
                Capability::DacOverride,
                Capability::Fowner,
                Capability::Fsetid,
            ],
        };
        return Ok(Identity::Privileged { kept });
    }
    match user_namespaces {
        UserNamespaceFacts::Untried => Ok(Identity::UserNamespace {
            uid: caller.euid,
            gid: caller.egid,
        }),
        UserNamespaceFacts::Unavailable { errno } => Err(PlanError::NoUserNamespaces { errno }),
    }
}

/// Lists what the kernel must offer.
fn requirements(network: Network, identity: &Identity) -> Vec<Requirement> {
    let mut needed = vec![
        Requirement::MountNamespace,
        Requirement::PidNamespace,
        Requirement::IpcNamespace,
        Requirement::Landlock,
        Requirement::Seccomp,
    ];
    if network == Network::None {
        needed.push(Requirement::NetworkNamespace);
    }
    if matches!(identity, Identity::UserNamespace { .. }) {
        needed.push(Requirement::UserNamespace);
    }
    needed
}
