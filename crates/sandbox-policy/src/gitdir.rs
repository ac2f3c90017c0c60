//! Reads the two one-line files by which git points elsewhere.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Returns the target of a `.git` file (`gitdir: PATH`), when it is one.
pub fn parse_gitdir(content: &[u8]) -> Option<PathBuf> {
    let rest = content.strip_prefix(b"gitdir:")?;
    let blanks = rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    path_of_line(rest.get(blanks..)?)
}

/// Returns the path in a `commondir` file, when there is one.
pub fn parse_commondir(content: &[u8]) -> Option<PathBuf> {
    path_of_line(content)
}

/// Returns everything up to the line ends at the end of the file, as git reads
/// it: a path may hold spaces and even line ends.
fn path_of_line(text: &[u8]) -> Option<PathBuf> {
    let tail = text
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b'\n' | b'\r'))
        .count();
    let path = text.get(..text.len() - tail)?;
    let usable = !path.is_empty() && !path.contains(&0);
    usable.then(|| PathBuf::from(OsString::from_vec(path.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pointers_as_git_does() {
        assert_eq!(parse_gitdir(b"gitdir: ../a b\r\n\n"), Some("../a b".into()));
        assert_eq!(parse_gitdir(b"gitdir:/x"), Some("/x".into()));
        assert_eq!(parse_gitdir(b"gitdir: \n"), None);
        assert_eq!(parse_gitdir(b"ref: x"), None);
        assert_eq!(parse_gitdir(b"gitdir: a\0b"), None);
        assert_eq!(parse_commondir(b"../..\n"), Some("../..".into()));
        assert_eq!(parse_commondir(b""), None);
    }
}
