//! What has to be kept of an old content when the new one is at hand: what the
//! new one lacks. A patch changes a few lines of a large file; keeping all of it
//! would cost more than the patch.
//!
//! The pieces are found by comparing, not by asking the edit: whatever they
//! are, they give the old bytes back exactly, and only their size depends on
//! how well they were chosen.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// How many lines of either side are looked at for where both go on alike.
const WINDOW_LINES: usize = 16;

/// The old bytes of a file, but for those that the new one has too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pieces: Vec<Piece>,
}

/// A step through the new bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    /// So many bytes are the same.
    same_bytes: u64,
    /// So many are new.
    new_bytes: u64,
    /// These stood in their place.
    #[serde(with = "serde_bytes")]
    old: Vec<u8>,
}

impl Kept {
    /// Keeps what is needed to make `old` of `new`.
    pub(crate) fn of(mut old: &[u8], mut new: &[u8]) -> Self {
        let mut pieces = Vec::new();
        while !(old.is_empty() && new.is_empty()) {
            let same = whole_lines(old, new);
            (old, new) = (&old[same..], &new[same..]);
            let (lost, made) = meet(old, new);
            pieces.push(Piece {
                same_bytes: same as u64,
                new_bytes: made as u64,
                old: old[..lost].to_vec(),
            });
            (old, new) = (&old[lost..], &new[made..]);
        }
        Self { pieces }
    }

    /// Makes the old bytes of the new ones; nothing when it is not of these.
    pub(crate) fn restore(&self, new: &[u8]) -> Option<Vec<u8>> {
        let mut rest = new;
        let mut old = Vec::with_capacity(new.len());
        for piece in &self.pieces {
            let (same, tail) = rest.split_at_checked(usize::try_from(piece.same_bytes).ok()?)?;
            old.extend_from_slice(same);
            old.extend_from_slice(&piece.old);
            rest = tail.get(usize::try_from(piece.new_bytes).ok()?..)?;
        }
        rest.is_empty().then_some(old)
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn size_bytes(&self) -> u64 {
        const OVERHEAD: u64 = 12;
        let sizes = self
            .pieces
            .iter()
            .map(|piece| piece.old.len() as u64 + OVERHEAD);
        sizes.sum()
    }
}

/// Returns how much both have in common at the beginning: all, or whole lines.
fn whole_lines(one: &[u8], other: &[u8]) -> usize {
    let common = common_prefix(one, other);
    if common == one.len() && common == other.len() {
        return common;
    }
    memchr::memrchr(b'\n', &one[..common]).map_or(0, |at| at + 1)
}

/// Returns how far it is, on either side, to where both go on with two lines alike.
fn meet(old: &[u8], new: &[u8]) -> (usize, usize) {
    let (mut old_lines, mut new_lines) = (Lines::of(old), Lines::of(new));
    for distance in 1..2 * WINDOW_LINES {
        for down in 0..=distance.min(WINDOW_LINES) {
            let across = distance - down;
            if let (Some(one), Some(other)) = (old_lines.pair(down), new_lines.pair(across))
                && old[one.clone()] == new[other.clone()]
            {
                return (one.start, other.start);
            }
        }
    }
    let suffix = common_suffix(old, new);
    (old.len() - suffix, new.len() - suffix)
}

/// The first lines of a text, found as they are asked for.
struct Lines<'t> {
    text: &'t [u8],
    /// Where each ends, behind its line feed.
    ends: Vec<usize>,
}

impl<'t> Lines<'t> {
    const fn of(text: &'t [u8]) -> Self {
        let ends = Vec::new();
        Self { text, ends }
    }

    /// Returns where a line and the one behind it are.
    fn pair(&mut self, at: usize) -> Option<Range<usize>> {
        let end = self.end(at + 1)?;
        let start = at
            .checked_sub(1)
            .map_or(Some(0), |before| self.end(before))?;
        Some(start..end)
    }

    fn end(&mut self, line: usize) -> Option<usize> {
        while self.ends.len() <= line && line <= WINDOW_LINES {
            let start = self.ends.last().copied().unwrap_or(0);
            let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
            let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            self.ends.push(start + length);
        }
        self.ends.get(line).copied()
    }
}

/// How many bytes are compared at once.
const BLOCK_BYTES: usize = 32;

fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (blocks, _) = one.as_chunks::<BLOCK_BYTES>();
    let (other_blocks, _) = other.as_chunks::<BLOCK_BYTES>();
    let blocks = blocks.iter().zip(other_blocks);
    let whole = BLOCK_BYTES * blocks.take_while(|(one, other)| one == other).count();
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(one, other)| one == other).count()
}

fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    let (_, blocks) = one.as_rchunks::<BLOCK_BYTES>();
    let (_, other_blocks) = other.as_rchunks::<BLOCK_BYTES>();
    let blocks = blocks.iter().rev().zip(other_blocks.iter().rev());
    let whole = BLOCK_BYTES * blocks.take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[..one.len() - whole], &other[..other.len() - whole]);
    let rest = one.iter().rev().zip(other.iter().rev());
    whole + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_texts_come_back() {
        let texts: [&[u8]; 8] = [b"", b"a", b"aa", b"aaa", b"aba", b"ab\ncd", b"abXcd", b"cd"];
        for old in texts {
            for new in texts {
                assert_eq!(Kept::of(old, new).restore(new).as_deref(), Some(old));
            }
        }
    }

    #[test]
    fn a_few_lines_of_many_cost_a_few_bytes() {
        let line = |number: usize| format!("line {number} of the file\n");
        let old: String = (0..10_000).map(line).collect();
        let changed = |number: usize| match number % 100 {
            7 => format!("changed {number}\n"),
            30 => String::new(),
            50 => format!("{}one more\n", line(number)),
            _ => line(number),
        };
        let new: String = (0..10_000).map(changed).collect();
        let kept = Kept::of(old.as_bytes(), new.as_bytes());
        assert_eq!(kept.restore(new.as_bytes()).unwrap(), old.as_bytes());
        assert!(kept.size_bytes() < 20_000, "{}", kept.size_bytes());
    }

    #[test]
    fn other_bytes_than_the_new_ones_restore_nothing() {
        let kept = Kept::of(b"one\ntwo\nthree\n", b"one\n2\nthree\n");
        for other in ["", "one\n", "one\n2\nthree\nfour\n"] {
            assert_eq!(kept.restore(other.as_bytes()), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn any_old_bytes_come_back(old in "[ab\n]{0,200}", new in "[ab\n]{0,200}") {
            let kept = Kept::of(old.as_bytes(), new.as_bytes());
            prop_assert_eq!(kept.restore(new.as_bytes()).unwrap(), old.as_bytes());
        }

        #[test]
        fn edited_lines_come_back(
            lines in proptest::collection::vec("[abc]{0,40}\n", 0..120),
            edits in proptest::collection::vec((0..120_usize, "([abc]{0,40}\n){0,3}"), 0..10),
        ) {
            let mut edited = lines.clone();
            for (at, text) in edits {
                if let Some(line) = edited.get_mut(at) {
                    *line = text;
                }
            }
            let (old, new) = (lines.concat(), edited.concat());
            let kept = Kept::of(old.as_bytes(), new.as_bytes());
            prop_assert_eq!(kept.restore(new.as_bytes()).unwrap(), old.as_bytes());
        }
    }
}
