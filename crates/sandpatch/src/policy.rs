//! From flags to a policy: what was typed, and the defaults around it.

use std::path::{Component, Path, PathBuf};

use sandbox_policy::globs::{self, GlobRule};
use sandbox_policy::path::PathError;
use sandbox_policy::policy::MissingNames;
use sandbox_policy::{AbsolutePath, Access, Network, Origin, Policy, Rule, Tmp, secrets};

use crate::accounts;
use crate::cli::{CommandFlags, MissingNamesMode, NetworkMode, PolicyFlags, Secrets, TmpMode};
use crate::exit::Exit;
use crate::render;
use crate::state::Base;
use crate::user::User;

/// Builds the default policy with the flags' additions.
pub fn of_flags(directory: &Path, flags: &PolicyFlags) -> Result<Policy, Exit> {
    let mut policy = Policy::workspace(AbsolutePath::new(directory).map_err(bad_path)?);
    for writable in &flags.writable {
        let path = named(directory, writable);
        if !path.exists() {
            render::error(&format!(
                "Error: --writable {}: no such directory",
                path.display()
            ));
            return Err(Exit::Usage);
        }
        policy = policy.with_writable(AbsolutePath::new(&path).map_err(bad_path)?);
    }
    let typed = [
        (&flags.readable, Access::Read, "--readable"),
        (&flags.deny_read, Access::Deny, "--deny-read"),
    ];
    for (paths, access, flag) in typed {
        for path in paths {
            let is_glob = access == Access::Deny && globs::is_pattern(path.as_os_str());
            // A file may really be called so.
            if is_glob && named(directory, path).symlink_metadata().is_err() {
                let glob = GlobRule::new(&directory.join(path)).map_err(|error| {
                    render::error(&format!("Error: --deny-read {}: {error}", path.display()));
                    Exit::Usage
                })?;
                policy = policy.with_denied_glob(glob);
                continue;
            }
            let path = AbsolutePath::new(named(directory, path)).map_err(bad_path)?;
            policy = policy.with_rule(Rule::new(path, access, Origin::Flag(flag)));
        }
    }
    with_names(policy, flags)
}

fn with_names(mut policy: Policy, flags: &PolicyFlags) -> Result<Policy, Exit> {
    let names = flags.protect.iter().chain(&flags.unprotect);
    for name in names {
        if AbsolutePath::filesystem_root().child(name).is_err() {
            render::error(&format!(
                "Error: {} is not a name: --protect and --unprotect take one entry of a directory",
                name.display()
            ));
            return Err(Exit::Usage);
        }
    }
    for name in &flags.protect {
        policy = policy.with_protected_name(name.clone());
    }
    for name in &flags.unprotect {
        policy = policy.without_protected_name(name);
    }
    Ok(policy)
}

/// Builds the policy of a command: of the flags, and without what is secret.
pub fn of_command(
    directory: &Path,
    flags: &PolicyFlags,
    command: &CommandFlags,
    user: &User,
) -> Result<Policy, Exit> {
    let policy = of_flags(directory, flags)?
        .with_network(match command.network {
            NetworkMode::None => Network::None,
            NetworkMode::Host => Network::Host,
        })
        .with_tmp(match command.tmp {
            TmpMode::Private => Tmp::Private,
            TmpMode::Host => Tmp::Host,
            TmpMode::None => Tmp::None,
        })
        .with_missing_names(match command.missing_names {
            MissingNamesMode::Placeholder => MissingNames::Placeholder,
            MissingNamesMode::Off => MissingNames::Off,
        });
    let policy = with_hidden_state(policy, user);
    Ok(match command.secrets {
        Secrets::Hide => policy.with_secrets(secret_places(user)),
        Secrets::Show => policy,
    })
}

/// Hides what is kept between runs: it holds bytes of other workspaces, and what
/// later runs believe.
fn with_hidden_state(policy: Policy, user: &User) -> Policy {
    let state = Base::of(user).ok();
    let state = state.and_then(|base| AbsolutePath::new(base.directory()).ok());
    match state {
        Some(path) => policy.with_rule(Rule::new(path, Access::Deny, Origin::Secret)),
        None => policy,
    }
}

/// Lists where secrets may lie: below the home of the environment, and below the
/// account's.
fn secret_places(user: &User) -> Vec<AbsolutePath> {
    let homes: Vec<PathBuf> = match user {
        User::Assumed { home } => home.iter().cloned().collect(),
        User::Caller => {
            let uid = rustix::process::geteuid().as_raw();
            let passwd = accounts::passwd().unwrap_or_default();
            let account = accounts::account_of_uid(&passwd, uid).map(|account| account.home);
            let home = std::env::var_os("HOME").map(PathBuf::from);
            home.into_iter().chain(account).collect()
        }
    };
    let mut homes: Vec<AbsolutePath> = homes
        .into_iter()
        .filter_map(|home| AbsolutePath::new(home).ok())
        .filter(|home| *home != AbsolutePath::filesystem_root())
        .collect();
    homes.dedup();
    homes.iter().flat_map(secrets::below).collect()
}

fn bad_path(error: PathError) -> Exit {
    render::error(&format!("Error: {error}"));
    Exit::Usage
}

/// Joins a path of the command line; `..` means what the kernel means by it.
pub fn named(directory: &Path, path: &Path) -> PathBuf {
    let joined = directory.join(path);
    let climbs = joined.components().any(|part| part == Component::ParentDir);
    match climbs {
        // What cannot be found is reported by its own spelling.
        true => joined.canonicalize().unwrap_or(joined),
        false => joined,
    }
}
