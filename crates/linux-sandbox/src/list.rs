//! Looking into a directory.

use std::os::fd::OwnedFd;

use rustix::fs::Dir;

use crate::error::Errno;

/// Tells whether a directory holds nothing.
pub(crate) fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    let mut entries = Dir::read_from(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            return Ok(false);
        }
    }
    Ok(true)
}
