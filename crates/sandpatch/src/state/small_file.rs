//! A small file that is read whole and replaced whole, so that two runs at once
//! leave one or the other.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

/// Returns what the file holds, or nothing when it cannot be read or holds more
/// than `most` bytes.
pub fn read(directory: &OwnedFd, name: &str, most: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(directory, name, flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    File::from(opened)
        .take(most + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// Replaces the file; on failure the old one stays.
pub fn replace(directory: &OwnedFd, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let new = format!("{name}.{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    // One of a dead process with the same number is in the way.
    let _ = unlinkat(directory, &new, AtFlags::empty());
    let opened = openat(directory, &new, flags, Mode::RUSR | Mode::WUSR)?;
    let written = File::from(opened).write_all(bytes);
    let done = written.and_then(|()| Ok(renameat(directory, &new, directory, name)?));
    if done.is_err() {
        let _ = unlinkat(directory, &new, AtFlags::empty());
    }
    done
}
