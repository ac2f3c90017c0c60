//! From policy flags to a plan: what the flags mean on this host.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sandbox_policy::facts::{FileId, HostFacts, RootFacts};
use sandbox_policy::{Access, Origin, Plan, Policy, Purpose, Rule};

use crate::cli::{Backend, PolicyFlags};
use crate::exit::Exit;
use crate::state::denied::Denied;
use crate::state::{Base, Missing, Root};
use crate::user::User;
use crate::{policy, render};

/// A plan, and the writable roots that exist.
pub struct Planned {
    /// What the sandbox will be.
    pub plan: Plan,
    /// Where it may write.
    pub roots: Vec<Root>,
}

/// Changes to the directory of `-C`, if one was given.
pub fn enter(directory: Option<&Path>) -> Result<(), Exit> {
    let Some(directory) = directory else {
        return Ok(());
    };
    std::env::set_current_dir(directory).map_err(|error| {
        render::error(&format!(
            "Error: cannot enter {}: {error}",
            directory.display()
        ));
        Exit::Usage
    })
}

/// Where a patch may write, and what holds it there.
pub struct Confinement {
    /// The sandbox; without one the patch has the rights of this process.
    pub plan: Option<Plan>,
    /// Where it may write.
    pub roots: Vec<Root>,
}

/// Decides how a patch is confined.
pub fn confinement(directory: &Path, flags: &PolicyFlags) -> Result<Confinement, Exit> {
    if flags.backend == Backend::None {
        let roots = unplanned(directory, flags)?;
        return Ok(Confinement { plan: None, roots });
    }
    let planned = plan(directory, flags, Purpose::Patch)?;
    Ok(Confinement {
        plan: Some(planned.plan),
        roots: planned.roots,
    })
}

/// Returns the roots of a run without a sandbox: the current directory first.
fn unplanned(directory: &Path, flags: &PolicyFlags) -> Result<Vec<Root>, Exit> {
    let named = flags
        .writable
        .iter()
        .map(|path| policy::named(directory, path));
    let root = |path: PathBuf| {
        let found = path.canonicalize().and_then(|real| {
            let meta = std::fs::metadata(&real)?;
            let (dev, ino) = (meta.dev(), meta.ino());
            let id = FileId { dev, ino };
            Ok(Root { real, id })
        });
        found.map_err(|error| {
            render::error(&format!("Error: {}: {error}", path.display()));
            Exit::Usage
        })
    };
    std::iter::once(PathBuf::from("."))
        .chain(named)
        .map(root)
        .collect()
}

/// Gathers the facts of this host and makes the plan.
pub fn plan(directory: &Path, flags: &PolicyFlags, purpose: Purpose) -> Result<Planned, Exit> {
    plan_policy(&policy::of_flags(directory, flags)?, directory, purpose)
}

/// Makes the plan for a finished policy.
pub fn plan_policy(policy: &Policy, directory: &Path, purpose: Purpose) -> Result<Planned, Exit> {
    let facts = linux_sandbox::gather(policy, purpose);
    planned(policy, directory, purpose, facts)
}

/// Makes the plan of a command: what an earlier run hid stays hidden where it
/// was moved to, and what this one hides is remembered.
pub fn plan_command(policy: &Policy, directory: &Path, user: &User) -> Result<Planned, Exit> {
    let purpose = Purpose::Command;
    let denies = |rule: &Rule| rule.access == Access::Deny && rule.origin != Origin::Secret;
    if !policy.rules().iter().any(denies) && policy.denied_globs().is_empty() {
        return plan_policy(policy, directory, purpose);
    }
    // The record is hidden from commands, wherever the roots are.
    let open = |missing| Base::of(user).and_then(|base| Denied::open(&base, &[], missing));
    let known = open(Missing::Report).map(|record| record.read());
    let known = known.unwrap_or_default();
    let facts = linux_sandbox::gather_with(policy, purpose, &known);
    if let Ok(facts) = &facts
        && !facts.denials.is_empty()
    {
        // Without a place for it there is no memory, as doctor says.
        let _ = open(Missing::Make).map(|record| record.add(&known, &facts.denials));
    }
    planned(policy, directory, purpose, facts)
}

fn planned(
    policy: &Policy,
    directory: &Path,
    purpose: Purpose,
    facts: Result<HostFacts, linux_sandbox::Error>,
) -> Result<Planned, Exit> {
    let facts = facts.map_err(|error| render::no_sandbox(&error))?;
    refuse_moved(directory, &facts.roots)?;
    let plan = sandbox_policy::plan(policy, &facts, purpose)
        .map_err(|error| render::refused_plan(&error))?;
    let roots = facts
        .roots
        .iter()
        .filter_map(|root| root.resolved.as_ref())
        .map(|root| Root {
            real: root.real.as_path().to_path_buf(),
            id: root.id,
        })
        .collect();
    Ok(Planned { plan, roots })
}

/// Refuses when the path of the current directory leads to another one: a program
/// that may write above it could put a link there meanwhile.
fn refuse_moved(path: &Path, roots: &[RootFacts]) -> Result<(), Exit> {
    let here = std::fs::metadata(".").map_err(|error| {
        render::error(&format!(
            "Error: cannot inspect the current directory: {error}"
        ));
        Exit::NoSandbox
    })?;
    let is_elsewhere = |root: &RootFacts| {
        let named = root.logical.as_path() == path;
        let id = root
            .resolved
            .as_ref()
            .map(|root| (root.id.dev, root.id.ino));
        named && id != Some((here.dev(), here.ino()))
    };
    if !roots.iter().any(is_elsewhere) {
        return Ok(());
    }
    render::error(&format!(
        "Error: {} is not the current directory any more: it was moved, replaced or covered by a mount\n  \
        hint: enter it again",
        path.display()
    ));
    Err(Exit::NoSandbox)
}
