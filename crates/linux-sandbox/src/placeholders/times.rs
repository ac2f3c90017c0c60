//! The time of a directory in which a placeholder came or went: to build tools
//! and watchers nothing has happened there.

use std::os::fd::OwnedFd;

use rustix::fs::{Stat, Timespec, Timestamps, UTIME_OMIT, fstat, futimens};

/// How far the times that one system call sets may lie apart, in nanoseconds:
/// two ticks of the slowest clock.
const SAME_CALL: i128 = 20_000_000;

/// Sets the modification time of a directory to what it was, unless somebody
/// else changed the directory after the placeholder did.
///
/// Only its owner can set a time; for others it stays.
pub(super) fn put_back(parent: &OwnedFd, before: &Stat, placeholder: &Stat) {
    let Ok(now) = fstat(parent) else {
        return;
    };
    let by = nanoseconds(placeholder.st_ctime, placeholder.st_ctime_nsec as i128);
    let changed = nanoseconds(now.st_mtime, now.st_mtime_nsec as i128);
    if (changed - by).abs() > SAME_CALL {
        return;
    }
    let omitted = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    let times = Timestamps {
        last_access: omitted,
        last_modification: Timespec {
            tv_sec: before.st_mtime,
            tv_nsec: before.st_mtime_nsec as _,
        },
    };
    let _ = futimens(parent, &times);
}

fn nanoseconds(seconds: i64, rest: i128) -> i128 {
    i128::from(seconds) * 1_000_000_000 + rest
}
