//! Becoming another user (`--as-user`), so that the kernel itself applies that
//! user's permissions and sticky directories to everything that follows.
//!
//! It happens before any path is touched. Who the user is is decided as a value;
//! the act is one-way, and is checked.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::{Gid, Uid, setgid, setgroups, setresgid, setresuid, setuid};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::accounts::{self, Account};
use crate::exit::Exit;
use crate::{render, sys};

/// Whose rights and whose state a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// The caller's own.
    Caller,
    /// Those of somebody whom the caller has become.
    Assumed {
        /// The home of the account; a bare number has none.
        home: Option<PathBuf>,
    },
}

/// Who is to be become.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    home: Option<PathBuf>,
}

/// Says why nobody can be become.
#[derive(Debug, thiserror::Error)]
enum BadUser {
    #[error("only root can become another user")]
    NotRoot,
    #[error("no user {0} in /etc/passwd")]
    Unknown(String),
    #[error("no account has the number {0}, so name its group as well ({0}:GID)")]
    NoGroup(u32),
    #[error("a group is given by its number, and {0} is none")]
    BadGroup(String),
    #[error("root is no other user")]
    Root,
}

/// Becomes the user that `--as-user` names; without it everything stays.
///
/// # Errors
///
/// Prints one line; a usage error for a name that cannot be taken on, no
/// sandbox where the system does not let go of its rights.
pub fn assume(spec: Option<&str>) -> Result<User, Exit> {
    let Some(spec) = spec else {
        return Ok(User::Caller);
    };
    let bad = |why: &dyn std::fmt::Display| {
        render::error(&format!("Error: --as-user {spec}: {why}"));
        Exit::Usage
    };
    if !Uid::effective().is_root() {
        return Err(bad(&BadUser::NotRoot));
    }
    let passwd = accounts::passwd().map_err(|error| bad(&error))?;
    let group = accounts::group().map_err(|error| bad(&error))?;
    let target = decide(spec, &passwd, &group).map_err(|error| bad(&error))?;
    become_target(&target).map_err(|error| {
        render::error(&format!("Error: cannot become user {spec}: {error}"));
        Exit::NoSandbox
    })?;
    Ok(User::Assumed { home: target.home })
}

/// Reads `NAME`, `UID`, `NAME:GID` or `UID:GID`. A name comes before a number;
/// a group that is given is the only one.
fn decide(spec: &str, passwd: &[u8], group: &[u8]) -> Result<Target, BadUser> {
    let (user, gid) = match spec.split_once(':') {
        None => (spec, None),
        Some((user, gid)) => match accounts::number(gid.as_bytes()) {
            None => return Err(BadUser::BadGroup(gid.into())),
            number => (user, number),
        },
    };
    let number = accounts::number(user.as_bytes());
    let account = accounts::account_of_name(passwd, user.as_bytes())
        .or_else(|| accounts::account_of_uid(passwd, number?));
    let target = match (account, number, gid) {
        (Some(account), _, None) => Target {
            groups: accounts::groups_of(group, &account),
            ..Target::of(account)
        },
        (Some(account), _, Some(gid)) => Target {
            gid,
            groups: vec![gid],
            ..Target::of(account)
        },
        (None, Some(uid), Some(gid)) => Target {
            uid,
            gid,
            groups: vec![gid],
            home: None,
        },
        (None, Some(uid), None) => return Err(BadUser::NoGroup(uid)),
        (None, None, _) => return Err(BadUser::Unknown(user.into())),
    };
    match target.uid {
        0 => Err(BadUser::Root),
        _ => Ok(target),
    }
}

impl Target {
    fn of(account: Account) -> Self {
        Self {
            uid: account.uid,
            gid: account.gid,
            groups: Vec::new(),
            home: Some(account.home),
        }
    }
}

/// Gives up root for good.
///
/// What the caller left open is root's, and could be opened through `/proc` by
/// the user once this process is theirs: so it is closed first. The process
/// becomes theirs again because a user namespace cannot be set up otherwise
/// (`PR_SET_DUMPABLE`).
fn become_target(target: &Target) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(target.uid), Gid::from_raw(target.gid));
    let groups: Vec<Gid> = target.groups.iter().copied().map(Gid::from_raw).collect();
    sys::close_all_above_standard()?;
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)?;
    check_no_way_back(gid)?;
    nix::sys::prctl::set_dumpable(true)?;
    Ok(())
}

/// Tries to become root again, which must fail.
fn check_no_way_back(gid: Gid) -> io::Result<()> {
    let root_group = Gid::from_raw(0);
    let regained = [
        setuid(Uid::from_raw(0)),
        setgroups(&[]),
        match gid == root_group {
            true => Err(Errno::EPERM),
            false => setgid(root_group),
        },
    ];
    match regained.iter().any(Result::is_ok) {
        true => Err(io::Error::other("root's rights can be regained")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &[u8] = b"root:x:0:0::/root:/bin/sh\nada:x:1000:100::/home/ada:/bin/sh\n\
        1000:x:7:7::/odd:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\n";
    const GROUP: &[u8] = b"users:x:100:\nwheel:x:10:bob,ada\naudio:x:11:adam\nada:x:50:ada\n";

    fn ids(spec: &str) -> Result<(u32, u32, Vec<u32>), String> {
        decide(spec, PASSWD, GROUP)
            .map(|target| (target.uid, target.gid, target.groups))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn accounts_bring_all_their_groups() {
        assert_eq!(ids("ada"), Ok((1000, 100, vec![100, 10, 50])));
        assert_eq!(ids("1001"), Ok((1001, 100, vec![100, 10])));
        assert_eq!(ids("1000").unwrap().0, 7, "a name comes before a number");
        let home = decide("ada", PASSWD, GROUP).unwrap().home;
        assert_eq!(home, Some("/home/ada".into()));
    }

    #[test]
    fn a_group_that_is_given_is_the_only_one() {
        assert_eq!(ids("ada:5"), Ok((1000, 5, vec![5])));
        assert_eq!(ids("4242:5"), Ok((4242, 5, vec![5])));
        assert_eq!(decide("4242:5", PASSWD, GROUP).unwrap().home, None);
    }

    #[test]
    fn what_cannot_be_taken_on_is_said() {
        let said = [
            ("eve", "no user eve in /etc/passwd"),
            ("", "no user  in /etc/passwd"),
            ("-1", "no user -1 in /etc/passwd"),
            ("4294967295:1", "no user 4294967295 in /etc/passwd"),
            ("4242", "name its group as well (4242:GID)"),
            ("ada:", "a group is given by its number"),
            ("ada:users", "users is none"),
            ("ada:4294967295", "a group is given by its number"),
            ("root", "root is no other user"),
            ("0:5", "root is no other user"),
        ];
        for (spec, text) in said {
            let error = ids(spec).unwrap_err();
            assert!(error.contains(text), "{spec}: {error}");
        }
    }
}
