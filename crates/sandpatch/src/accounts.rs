//! The user and group databases as text.
//!
//! The executable is linked statically, and the C library's own look-ups load
//! shared objects at run time (nsswitch.conf(5)), so the files are read here:
//! users that only a directory service knows are unknown by name.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What a database usually fits into.
const USUAL_BYTES: usize = 8 << 10;

/// What is read of a database at most.
const MOST_BYTES: u64 = 16 << 20;

/// A line of passwd(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name to log in with.
    pub name: Vec<u8>,
    /// The user id.
    pub uid: u32,
    /// The id of the primary group.
    pub gid: u32,
    /// The home directory.
    pub home: PathBuf,
}

/// Reads `/etc/passwd`; a host without one has no accounts.
pub fn passwd() -> io::Result<Vec<u8>> {
    read("/etc/passwd")
}

/// Returns the first account with a user id.
pub fn account_of_uid(passwd: &[u8], uid: u32) -> Option<Account> {
    accounts(passwd).find(|account| account.uid == uid)
}

/// Reads without asking for the size first: the file is small, and calls count.
fn read(path: &str) -> io::Result<Vec<u8>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut text = Vec::with_capacity(USUAL_BYTES);
    file.take(MOST_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// Reads `/etc/group`; a host without one has no groups.
pub fn group() -> io::Result<Vec<u8>> {
    read("/etc/group")
}

/// Returns the first account with a name.
pub fn account_of_name(passwd: &[u8], name: &[u8]) -> Option<Account> {
    accounts(passwd).find(|account| account.name == name)
}

/// Returns the ids of all groups of an account, the primary one first.
pub fn groups_of(group: &[u8], account: &Account) -> Vec<u32> {
    let mut ids = vec![account.gid];
    for gid in lines(group).filter_map(|line| group_with_member(line, &account.name)) {
        if !ids.contains(&gid) {
            ids.push(gid);
        }
    }
    ids
}

/// Parses `name:password:gid:member,member`; nothing when the user is no member.
fn group_with_member(line: &[u8], user: &[u8]) -> Option<u32> {
    let mut fields = line.split(|byte| *byte == b':');
    let gid = number(fields.nth(2)?)?;
    let mut members = fields.next()?.split(|byte| *byte == b',');
    members.any(|member| member == user).then_some(gid)
}

fn accounts(passwd: &[u8]) -> impl Iterator<Item = Account> + '_ {
    lines(passwd).filter_map(account)
}

/// Parses `name:password:uid:gid:comment:home:shell`.
fn account(line: &[u8]) -> Option<Account> {
    let mut fields = line.split(|byte| *byte == b':');
    let name = fields.next().filter(|name| !name.is_empty())?.to_vec();
    let uid = number(fields.nth(1)?)?;
    let gid = number(fields.next()?)?;
    let home = PathBuf::from(OsString::from_vec(fields.nth(1)?.to_vec()));
    Some(Account {
        name,
        uid,
        gid,
        home,
    })
}

/// Returns the lines that hold entries: `+` and `-` begin those of NIS.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !matches!(line.first(), None | Some(b'#' | b'+' | b'-')))
}

/// Parses a plain decimal number; the highest one means "no id" to the kernel.
pub fn number(field: &[u8]) -> Option<u32> {
    if !field.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u32 = std::str::from_utf8(field).ok()?.parse().ok()?;
    (number != u32::MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/bash\n# a:x:1:1::/:/\n+::::::\n\
        ada:x:1000:100:Ada, L:/home/ada:/bin/sh\nbroken:x:abc:1::/b:/s\nshort:x:7\n\
        max:x:4294967295:1::/m:/s\ntwin:x:1000:5::/home/twin:\nlast:x:9:9::/last:/s";

    #[test]
    fn accounts_are_found_by_number() {
        let ada = account_of_uid(PASSWD, 1000).unwrap();
        assert_eq!((ada.name.as_slice(), ada.gid), (&b"ada"[..], 100));
        assert_eq!(ada.home, PathBuf::from("/home/ada"));
        assert_eq!(account_of_uid(PASSWD, 9).unwrap().name, b"last");
    }

    #[test]
    fn groups_are_those_that_name_the_user() {
        const GROUP: &[u8] = b"users:x:100:ada\nwheel:x:10:bob,ada\n#no:x:11:ada\n+:x:12:ada\n\
            broken:x:y:ada\nshort:x:13\nempty:x:14:\nnear:x:15:adam,ad\nagain:x:10:ada\nlast:x:16:ada";
        let ada = account_of_name(PASSWD, b"ada").unwrap();
        assert_eq!(groups_of(GROUP, &ada), [100, 10, 16]);
        assert_eq!(groups_of(b"", &ada), [100]);
        assert_eq!(account_of_name(PASSWD, b"twin").unwrap().gid, 5);
        assert_eq!(account_of_name(PASSWD, b""), None);
    }

    #[test]
    fn what_is_no_account_is_passed_over() {
        for uid in [1, 7, u32::MAX] {
            assert_eq!(account_of_uid(PASSWD, uid), None, "{uid}");
        }
        assert_eq!(account_of_uid(b"", 0), None);
        assert_eq!(account_of_uid(b":x:0:0::/:/\n", 0), None);
    }
}
