//! What is made of the list of mounts.

use super::*;
use crate::bubblewrap::render::Way;
use crate::bubblewrap::verify::{Deviation, Seen, verify};
use crate::mountinfo::MountTable;

/// What stands after the usual plan.
const MOUNTS: &str = "\
1 0 8:1 / / ro - ext4 d rw
2 1 0:2 / /dev ro - tmpfs tmpfs rw
3 2 0:3 /null /dev/null rw - devtmpfs dev rw
4 2 0:4 / /dev/shm rw - tmpfs tmpfs rw
5 1 0:5 / /proc ro - proc proc rw
6 1 0:6 / /tmp rw - tmpfs tmpfs rw
7 1 8:1 /w /w rw - ext4 d rw
8 7 8:1 /w/sub /w/sub rw - ext4 d rw
9 8 8:1 /w/sub/.git /w/sub/.git ro - ext4 d rw
10 7 9:1 / /w/disk rw - ext4 e rw
";

/// The inodes after the usual plan.
fn look(at: &AbsolutePath) -> Result<Seen, Errno> {
    let known = [
        ("/w", 10),
        ("/w/sub", 11),
        ("/w/sub/.git", 12),
        ("/dev/null", 40),
        ("/dev/x", 41),
    ];
    let found = known.iter().find(|(text, _)| *at == path(text));
    let seen = |ino| Seen {
        id: id(ino),
        is_harmless_node: ino == 40,
    };
    found.map_or(Err(Errno(libc::ENOENT)), |(_, ino)| Ok(seen(*ino)))
}

fn verified(handoff: &HandOff, mounts: &str) -> Result<(), (String, i32)> {
    let table = MountTable::parse(mounts.as_bytes());
    let told = |Deviation { path, errno }| (path.display().to_string(), errno.0);
    verify(handoff, &table, &look).map_err(told)
}

fn deviation(path: &str, errno: i32) -> Result<(), (String, i32)> {
    Err((path.to_owned(), errno))
}

#[test]
fn mounts_as_planned_are_accepted() {
    assert_eq!(verified(&handoff(usual(), &[]), MOUNTS), Ok(()));
}

#[test]
fn a_mount_that_is_not_there_is_named() {
    let planned = handoff(usual(), &[]);
    for (number, at) in [("7", "/w"), ("8", "/w/sub"), ("9", "/w/sub/.git")] {
        let own = format!("{number} ");
        let lines = MOUNTS.lines().filter(|line| !line.starts_with(&own));
        let rest: String = lines.map(|line| format!("{line}\n")).collect();
        assert_eq!(verified(&planned, &rest), deviation(at, libc::ENOENT));
    }
    assert!(verified(&planned, "").is_err());
    let nothing = handoff(Vec::new(), &[]);
    assert_eq!(verified(&nothing, ""), deviation("/", libc::ENOENT));
}

#[test]
fn flags_and_kinds_are_compared() {
    let planned = handoff(usual(), &[]);
    let changes = [
        (
            "/w/sub/.git ro",
            "/w/sub/.git rw",
            "/w/sub/.git",
            libc::EACCES,
        ),
        ("/w rw", "/w ro", "/w", libc::EROFS),
        ("/dev ro", "/dev rw", "/dev", libc::EACCES),
        ("/proc ro", "/proc rw", "/proc", libc::EACCES),
        ("/proc ro - proc", "/proc ro - ext4", "/proc", libc::EXDEV),
        ("/tmp rw - tmpfs", "/tmp rw - ext4", "/tmp", libc::EXDEV),
        ("/ /tmp rw", "/x /tmp rw", "/tmp", libc::EXDEV),
        ("/ / ro", "/ / rw", "/", libc::EACCES),
    ];
    for (from, to, at, errno) in changes {
        let changed = MOUNTS.replace(from, to);
        assert_ne!(changed, MOUNTS, "{from}");
        assert_eq!(verified(&planned, &changed), deviation(at, errno), "{to}");
    }
}

#[test]
fn another_inode_is_refused() {
    let mut planned = handoff(usual(), &[]);
    for place in planned.places.iter_mut().flatten() {
        place.id.ino = place.id.ino.max(12);
    }
    assert_eq!(verified(&planned, MOUNTS), deviation("/w", libc::ESTALE));
}

#[test]
fn nothing_else_may_be_writable() {
    let planned = handoff(usual(), &[]);
    let more = [
        "20 1 8:1 / / rw - ext4 d rw\n",
        "20 1 8:2 / /home rw - ext4 h rw\n",
        "20 9 8:2 / /w/sub/.git/hooks rw - ext4 h rw\n",
        "20 2 8:1 /etc /dev/x rw - ext4 d rw\n",
        "20 2 8:1 /etc /dev/pts rw - ext4 d rw\n",
        "20 5 0:5 /sys /proc/sys rw - proc proc rw\n",
    ];
    for line in more {
        let at = line.split(' ').nth(4).unwrap();
        let with = format!("{MOUNTS}{line}");
        assert_eq!(verified(&planned, &with), deviation(at, libc::EACCES));
    }
    // What the host has below a root belongs to it, and what is out of sight
    // cannot be written.
    let terminals = "20 2 0:7 / /dev/pts rw - devpts devpts rw\n";
    assert_eq!(verified(&planned, &format!("{MOUNTS}{terminals}")), Ok(()));
    let hidden = "20 7 8:2 / /w/sub/.git rw - ext4 h rw\n";
    assert_eq!(verified(&planned, &format!("{MOUNTS}{hidden}")), Ok(()));
}

#[test]
fn what_the_host_has_read_only_stays_so() {
    let mut planned = handoff(usual(), &[]);
    let changed = MOUNTS.replace("/w/sub rw", "/w/sub ro");
    assert_eq!(
        verified(&planned, &changed),
        deviation("/w/sub", libc::EROFS)
    );
    planned.places[8].as_mut().unwrap().is_read_only = true;
    assert_eq!(verified(&planned, &changed), Ok(()));
}

#[test]
fn covers_are_trees_of_our_own() {
    let mut mounts = usual();
    mounts.push(mask("/w/key", 30, MaskForm::Directory));
    mounts.push(missing("/w/gone", Access::Read));
    let planned = handoff(mounts, &[]);
    assert_eq!(
        verified(&planned, MOUNTS),
        deviation("/w/key", libc::ENOENT)
    );
    let cover = |rest: &str| verified(&planned, &format!("{MOUNTS}20 7 0:9 / /w/key {rest}\n"));
    assert_eq!(cover("ro - tmpfs tmpfs rw"), Ok(()));
    assert_eq!(
        cover("rw - tmpfs tmpfs rw"),
        deviation("/w/key", libc::EACCES)
    );
    assert_eq!(cover("ro - ext4 d rw"), deviation("/w/key", libc::EXDEV));
}

#[test]
fn what_the_stage_mounts_itself_is_not_expected_yet() {
    let planned = handoff(usual(), &["/w/sub/.git"]);
    assert_eq!(planned.ways.last(), Some(&Way::Nested));
    let lines = MOUNTS.lines().filter(|line| !line.starts_with("9 "));
    let rest: String = lines.map(|line| format!("{line}\n")).collect();
    // Ids are mapped through it first.
    assert_eq!(verified(&planned, &rest), deviation("/proc", libc::EROFS));
    let open = rest.replace("/proc ro", "/proc rw");
    assert_eq!(verified(&planned, &open), Ok(()));
}
