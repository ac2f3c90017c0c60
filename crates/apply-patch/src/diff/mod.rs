//! The net changes of a patch as a unified diff that `git apply` accepts.
//!
//! Pure: old and new sides come in, bytes come out. Bytes, since a file need
//! not be UTF-8 and a diff that loses a byte cannot be applied.

mod hunks;
mod path;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use path::{Prefix, label, quoted};

/// What git records of a file beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A regular file.
    File,
    /// A regular file that its owner may execute.
    Executable,
    /// A symbolic link; its bytes are its target.
    Link,
}

impl Mode {
    /// Returns the mode of a regular file with these permission bits.
    pub const fn of_permissions(bits: u32) -> Self {
        match bits & 0o100 {
            0 => Self::File,
            _ => Self::Executable,
        }
    }

    const fn digits(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }
}

/// A file before or after the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side<'a> {
    /// Its path from the directory that the diff starts from.
    pub path: PathBuf,
    /// Its mode.
    pub mode: Mode,
    /// Its bytes; of a link, the target.
    pub bytes: Cow<'a, [u8]>,
}

impl Side<'_> {
    fn is_binary(&self) -> bool {
        memchr::memchr(0, &self.bytes).is_some()
    }
}

/// One section of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileDiff<'a> {
    /// A file comes.
    Added(Side<'a>),
    /// A file goes.
    Deleted(Side<'a>),
    /// A file changes; with different paths, it moves as well.
    Modified {
        /// As it was.
        old: Side<'a>,
        /// As it will be.
        new: Side<'a>,
    },
    /// A file gets another name and keeps everything else.
    Renamed {
        /// The old name.
        from: PathBuf,
        /// The new name.
        to: PathBuf,
    },
}

impl FileDiff<'_> {
    /// Returns the path by which the section is known: the new one, unless the file goes.
    pub fn path(&self) -> &Path {
        match self {
            Self::Added(side) | Self::Deleted(side) => &side.path,
            Self::Modified { new, .. } => &new.path,
            Self::Renamed { to, .. } => to,
        }
    }

    /// Tells whether the section has no hunks because of NUL bytes.
    ///
    /// A deletion has them nevertheless: without its content it could not be applied.
    pub fn is_binary(&self) -> bool {
        match self {
            Self::Added(side) => side.is_binary(),
            Self::Modified { old, new } => {
                old.bytes != new.bytes && (old.is_binary() || new.is_binary())
            }
            Self::Deleted(_) | Self::Renamed { .. } => false,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Modified { old, new } if old == new)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Added(new) => {
                title(&new.path, &new.path, out);
                line(out, &["new file mode ", new.mode.digits()]);
                content(None, Some(new), out);
            }
            Self::Deleted(old) => {
                title(&old.path, &old.path, out);
                line(out, &["deleted file mode ", old.mode.digits()]);
                content(Some(old), None, out);
            }
            Self::Modified { old, new } => {
                title(&old.path, &new.path, out);
                if old.mode != new.mode {
                    line(out, &["old mode ", old.mode.digits()]);
                    line(out, &["new mode ", new.mode.digits()]);
                }
                if old.path != new.path {
                    renamed(&old.path, &new.path, out);
                }
                content(Some(old), Some(new), out);
            }
            Self::Renamed { from, to } => {
                title(from, to, out);
                line(out, &["similarity index 100%"]);
                renamed(from, to, out);
            }
        }
    }
}

/// Writes the sections in the order in which they are given.
pub fn render(files: &[FileDiff<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for file in files.iter().filter(|file| !file.is_empty()) {
        file.write(&mut out);
    }
    out
}

fn line(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'\n');
}

fn title(old: &Path, new: &Path, out: &mut Vec<u8>) {
    out.extend_from_slice(b"diff --git ");
    out.extend(quoted(Prefix::Old, old));
    out.push(b' ');
    out.extend(quoted(Prefix::New, new));
    out.push(b'\n');
}

fn renamed(from: &Path, to: &Path, out: &mut Vec<u8>) {
    for (word, path) in [("rename from ", from), ("rename to ", to)] {
        out.extend_from_slice(word.as_bytes());
        out.extend(quoted(Prefix::Bare, path));
        out.push(b'\n');
    }
}

/// Writes the part of a section that shows bytes; there is none where they are the same.
fn content(old: Option<&Side<'_>>, new: Option<&Side<'_>>, out: &mut Vec<u8>) {
    let (before, after) = (bytes(old), bytes(new));
    if before == after {
        return;
    }
    let goes = new.is_none();
    if !goes && [old, new].into_iter().flatten().any(Side::is_binary) {
        out.extend_from_slice(b"Binary files ");
        out.extend(label(Prefix::Old, old.map(|side| &*side.path)));
        out.extend_from_slice(b" and ");
        out.extend(label(Prefix::New, new.map(|side| &*side.path)));
        out.extend_from_slice(b" differ\n");
        return;
    }
    for (mark, prefix, side) in [("--- ", Prefix::Old, old), ("+++ ", Prefix::New, new)] {
        let label = label(prefix, side.map(|side| &*side.path));
        out.extend_from_slice(mark.as_bytes());
        out.extend_from_slice(&label);
        // As git does, so that the end of a name with spaces is plain.
        if label.contains(&b' ') {
            out.push(b'\t');
        }
        out.push(b'\n');
    }
    hunks::write(before, after, out);
}

fn bytes<'s>(side: Option<&'s Side<'_>>) -> &'s [u8] {
    side.map_or(&[], |side| &side.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side<'a>(path: &str, mode: Mode, text: &'a str) -> Side<'a> {
        Side {
            path: path.into(),
            mode,
            bytes: Cow::Borrowed(text.as_bytes()),
        }
    }

    fn text(files: &[FileDiff<'_>]) -> String {
        String::from_utf8(render(files)).unwrap()
    }

    #[test]
    fn sections_look_as_gits_do() {
        let added = FileDiff::Added(side("x y", Mode::Executable, "1\n"));
        assert_eq!(
            text(&[added]),
            "diff --git a/x y b/x y\nnew file mode 100755\n--- /dev/null\n+++ b/x y\t\n\
             @@ -0,0 +1 @@\n+1\n"
        );
        let link = FileDiff::Deleted(side("l", Mode::Link, "to"));
        assert_eq!(
            text(&[link]),
            "diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n\
             @@ -1 +0,0 @@\n-to\n\\ No newline at end of file\n"
        );
        let renamed = FileDiff::Renamed {
            from: "a".into(),
            to: "\u{e9}".into(),
        };
        assert_eq!(
            text(&[renamed]),
            "diff --git a/a \"b/\\303\\251\"\nsimilarity index 100%\nrename from a\n\
             rename to \"\\303\\251\"\n"
        );
    }

    #[test]
    fn nothing_is_said_of_what_stays_and_only_the_mode_of_what_changes_in_it() {
        let old = side("f", Mode::File, "1\n");
        let same = FileDiff::Modified {
            old: old.clone(),
            new: old.clone(),
        };
        assert_eq!(text(&[same]), "");
        let new = side("f", Mode::Executable, "1\n");
        let chmod = FileDiff::Modified { old, new };
        assert_eq!(
            text(&[chmod]),
            "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
        );
    }

    #[test]
    fn binary_files_have_no_hunks_unless_they_go() {
        let old = side("f", Mode::File, "1\0\n");
        let new = side("f", Mode::File, "2\0\n");
        let modified = FileDiff::Modified {
            old: old.clone(),
            new,
        };
        assert!(modified.is_binary());
        assert!(text(&[modified]).ends_with("\nBinary files a/f and b/f differ\n"));
        let deleted = FileDiff::Deleted(old);
        assert!(!deleted.is_binary());
        assert!(text(&[deleted]).ends_with("@@ -1 +0,0 @@\n-1\0\n"));
    }
}
