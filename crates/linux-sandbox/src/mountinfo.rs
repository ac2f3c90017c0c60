//! The list of mounts, as the kernel writes it (proc_pid_mountinfo(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::error::Errno;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountEntry {
    /// Its number.
    pub(crate) id: u64,
    /// The number of the mount that it lies on.
    pub(crate) parent: u64,
    /// The device, as `major:minor`.
    pub(crate) device: (u32, u32),
    /// What of the file system it shows.
    pub(crate) root: PathBuf,
    /// Where it is mounted.
    pub(crate) point: PathBuf,
    /// Whether this mount, or its file system, is read-only.
    pub(crate) is_read_only: bool,
    /// The kind of file system.
    pub(crate) kind: String,
    /// What was named as its source.
    pub(crate) source: OsString,
}

/// All mounts of this process, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MountTable {
    entries: Vec<MountEntry>,
}

impl MountTable {
    /// Reads the list of this process.
    pub(crate) fn read() -> Result<Self, Errno> {
        Ok(Self::parse(&std::fs::read("/proc/self/mountinfo")?))
    }

    /// Parses the list; a line that is not one is left out.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        Self {
            entries: lines.filter_map(entry).collect(),
        }
    }

    /// Returns all mounts.
    pub(crate) fn entries(&self) -> &[MountEntry] {
        &self.entries
    }

    /// Returns the mount that a real path lies on: the longest point, and of
    /// several at one point the last.
    pub(crate) fn of(&self, path: &Path) -> Option<&MountEntry> {
        let above = self
            .entries
            .iter()
            .filter(|entry| path.starts_with(&entry.point));
        above.max_by_key(|entry| entry.point.components().count())
    }
}

/// The mounts that a path can lead to: not those that lie under another one.
pub(crate) struct Visible<'a> {
    root: Option<&'a MountEntry>,
    children: BTreeMap<(u64, &'a Path), &'a MountEntry>,
}

impl MountTable {
    /// Sorts out which mounts can be seen.
    pub(crate) fn visible(&self) -> Visible<'_> {
        let ids: BTreeSet<u64> = self.entries.iter().map(|entry| entry.id).collect();
        let is_root = |entry: &&MountEntry| {
            let on_another = entry.parent != entry.id && ids.contains(&entry.parent);
            entry.point == Path::new("/") && !on_another
        };
        let children = self
            .entries
            .iter()
            .map(|entry| ((entry.parent, entry.point.as_path()), entry));
        Visible {
            root: self.entries.iter().find(is_root),
            children: children.collect(),
        }
    }
}

impl<'a> Visible<'a> {
    /// Returns the mount that a real path lies on, as the kernel walks to it:
    /// what lies over `/` itself is not entered.
    fn above(&self, path: &Path) -> Option<&'a MountEntry> {
        let mut current = self.root?;
        let mut steps: Vec<&Path> = path.ancestors().collect();
        steps.pop();
        for step in steps.into_iter().rev() {
            while let Some(child) = self.children.get(&(current.id, step)) {
                current = child;
            }
        }
        Some(current)
    }

    /// Returns the mount whose point a path is.
    pub(crate) fn at(&self, path: &Path) -> Option<&'a MountEntry> {
        self.above(path).filter(|entry| entry.point == path)
    }

    /// Tells whether a path leads to a mount.
    pub(crate) fn shows(&self, entry: &MountEntry) -> bool {
        self.at(&entry.point)
            .is_some_and(|found| found.id == entry.id)
    }
}

fn entry(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let device = std::str::from_utf8(fields.next()?).ok()?.split_once(':')?;
    let root = path(fields.next()?);
    let point = path(fields.next()?);
    let mount_options = fields.next()?;
    // Optional fields end with a lone hyphen.
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let source = OsString::from_vec(unescaped(fields.next()?));
    let super_options = fields.next().unwrap_or_default();
    Some(MountEntry {
        id,
        parent,
        device: (device.0.parse().ok()?, device.1.parse().ok()?),
        root,
        point,
        is_read_only: has_option(mount_options, b"ro") || has_option(super_options, b"ro"),
        kind,
        source,
    })
}

fn has_option(options: &[u8], wanted: &[u8]) -> bool {
    options.split(|byte| *byte == b',').any(|it| it == wanted)
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescaped(field)))
}

/// Undoes the octal escapes of blanks and backslashes.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        match rest {
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                tail @ ..,
            ] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        30 22 0:26 / /w\\040s rw,nosuid - tmpfs sandpatch rw,mode=755\n\
        31 22 8:1 /home /mnt/home ro - ext4 /dev/sda1 rw\n\
        32 30 8:1 /x//deleted /w\\040s/d rw master:2 - ext4 /dev/sda1 ro\n\
        garbage\n";

    #[test]
    fn reads_what_the_kernel_writes() {
        let table = MountTable::parse(TEXT);
        assert_eq!(table.entries().len(), 4);
        let second = &table.entries()[1];
        assert_eq!(second.point, Path::new("/w s"));
        assert_eq!((second.id, second.device), (30, (0, 26)));
        assert_eq!(
            (second.kind.as_str(), second.source.as_os_str()),
            ("tmpfs", "sandpatch".as_ref())
        );
        let read_only: Vec<bool> = table.entries().iter().map(|it| it.is_read_only).collect();
        assert_eq!(read_only, [false, false, true, true]);
    }

    #[test]
    fn what_lies_under_another_mount_is_not_visible() {
        let text = b"1 0 0:1 / / ro - tmpfs a rw\n\
            2 1 0:2 / /w rw - ext4 b rw\n\
            3 2 0:3 / /w/x rw - ext4 c rw\n\
            4 2 0:3 / /w/x/y rw - ext4 c rw\n\
            5 3 0:4 / /w/x ro - tmpfs d rw\n\
            6 1 0:5 / / rw - ext4 e rw\n";
        let table = MountTable::parse(text);
        let visible = table.visible();
        let shown: Vec<u64> = table
            .entries()
            .iter()
            .filter(|it| visible.shows(it))
            .map(|it| it.id)
            .collect();
        assert_eq!(shown, [1, 2, 5]);
        let at = |path: &str| visible.at(Path::new(path)).map(|entry| entry.id);
        assert_eq!((at("/"), at("/w/x"), at("/w/z")), (Some(1), Some(5), None));
        assert!(MountTable::default().visible().at(Path::new("/")).is_none());
    }

    #[test]
    fn finds_the_mount_of_a_path() {
        let table = MountTable::parse(TEXT);
        let of = |path: &str| table.of(Path::new(path)).map(|entry| entry.id);
        assert_eq!(of("/etc/passwd"), Some(22));
        assert_eq!(of("/w s/a"), Some(30));
        assert_eq!(of("/w s/d/e"), Some(32));
        assert_eq!(of("/w"), Some(22));
        assert_eq!(MountTable::default().of(Path::new("/")), None);
    }
}
