//! The names of kept transactions: everything that retention asks about one is
//! in its name, so that sweeping lists the directory and opens nothing.
//!
//! `TIME.ID.WORKSPACE.BYTES`, all hexadecimal; only the id is for people.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

/// What names of records in the making begin with.
const TEMPORARY: &str = ".new-";

/// The short name of a transaction: eight hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub(super) u32);

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}", self.0)
    }
}

/// Says that a text is no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id has eight hexadecimal digits, as undo --list shows them")]
pub struct BadId;

impl FromStr for Id {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        hex(text, 8)
            .and_then(|id| u32::try_from(id).ok())
            .map(Self)
            .ok_or(BadId)
    }
}

impl Id {
    /// Returns an id that none of the names has, starting from a number that
    /// two processes are unlikely to share.
    pub fn fresh(seed: u64, names: &[Name]) -> Self {
        let mut id = (mix(seed) >> 32) as u32;
        while names.iter().any(|name| name.id.0 == id) {
            id = id.wrapping_add(1);
        }
        Self(id)
    }
}

/// The finaliser of the SplitMix64 generator: near seeds give far numbers.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The name of a kept transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// When it was kept, in nanoseconds since 1970; no two are equal.
    pub time: u64,
    /// Its short name.
    pub id: Id,
    /// The workspace, by [`workspace_key`].
    pub workspace: u64,
    /// The size of the whole record.
    pub bytes: u64,
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time,
            id,
            workspace,
            bytes,
        } = self;
        write!(out, "{time:016x}.{id}.{workspace:016x}.{bytes:016x}")
    }
}

impl Name {
    /// Parses a name; other names in the directory are none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let name = Self {
            time: hex(parts.next()?, 16)?,
            id: parts.next()?.parse().ok()?,
            workspace: hex(parts.next()?, 16)?,
            bytes: hex(parts.next()?, 16)?,
        };
        (name.to_string() == text).then_some(name)
    }
}

/// Returns the name of a record in the making.
pub fn temporary(time: u64, seed: u64) -> String {
    format!("{TEMPORARY}{time:016x}-{:016x}", mix(seed))
}

/// Returns when the record with a temporary name was begun.
pub fn begun(text: &str) -> Option<u64> {
    let (time, _) = text.strip_prefix(TEMPORARY)?.split_once('-')?;
    hex(time, 16)
}

/// Returns the number that stands for a workspace in names: the FNV-1a hash of
/// its path. Two workspaces that share one only share their limit.
pub fn workspace_key(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn hex(text: &str, digits: usize) -> Option<u64> {
    let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: u32) -> Name {
        Name {
            time: 0x17_0000_0000_0000,
            id: Id(id),
            workspace: u64::MAX,
            bytes: 4096,
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for id in [0, 7, u32::MAX] {
            assert_eq!(Name::parse(&name(id).to_string()), Some(name(id)));
        }
    }

    #[test]
    fn other_names_are_not_ours() {
        let good = name(0xabc).to_string();
        let bad = [
            String::new(),
            "README".into(),
            good.to_uppercase(),
            format!("{good}.0"),
            format!("{good}0"),
            good.replacen("00", "0", 1),
            good.replacen("0", "+", 1),
        ];
        for text in bad {
            assert_eq!(Name::parse(&text), None, "{text}");
        }
        assert_eq!(begun(&temporary(77, 1)), Some(77));
        assert_eq!(begun(&good), None);
        assert_eq!(begun(".new-77-"), None);
    }

    #[test]
    fn ids_are_typed_as_they_are_shown() {
        assert_eq!(Id(0xab).to_string(), "000000ab");
        assert_eq!("000000ab".parse(), Ok(Id(0xab)));
        assert_eq!("000000AB".parse(), Ok(Id(0xab)));
        for text in ["", "ab", "0000000ab", "+00000ab", "000000ag"] {
            assert_eq!(text.parse::<Id>(), Err(BadId), "{text}");
        }
    }

    #[test]
    fn a_fresh_id_is_taken_by_nobody() {
        let first = Id::fresh(1, &[]);
        let taken = [name(first.0), name(first.0.wrapping_add(1))];
        assert_eq!(Id::fresh(1, &taken).0, first.0.wrapping_add(2));
        assert_ne!(Id::fresh(2, &[]), first);
    }

    #[test]
    fn workspaces_are_told_apart() {
        // The published test vector of FNV-1a, 64 bits.
        assert_eq!(workspace_key(Path::new("foobar")), 0x8594_4171_f739_67e8);
        assert_ne!(
            workspace_key(Path::new("/a")),
            workspace_key(Path::new("/b"))
        );
    }
}
