//! Where the lines of a patch occur in a file, for one way of comparing.
//!
//! Only lines that the patch asks for get a number; the file is read once per
//! way, and every search after that compares numbers. A search starts from the
//! rarest line of its pattern and falls back to Knuth-Morris-Pratt when that
//! does not stay cheap, so its cost is linear whatever the lines are.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::compare::MatchKind;
use crate::text::Text;

/// Marks a line of the file that no pattern asks for.
const UNKNOWN: u32 = u32::MAX;

/// The file, seen through one way of comparing.
#[derive(Debug)]
pub(crate) struct Index<'t> {
    kind: MatchKind,
    numbers: Numbers<'t>,
    /// The number of each line of the vocabulary.
    asked: Vec<u32>,
    /// The number of each line of the file.
    lines: Vec<u32>,
    /// Where the places of each number start in `places`, and where the last end.
    offsets: Vec<u32>,
    places: Vec<u32>,
}

impl<'t> Index<'t> {
    /// Reads the file for the lines of the vocabulary.
    pub(crate) fn build(kind: MatchKind, text: &'t Text<'_>, vocabulary: &[&'t [u8]]) -> Self {
        let mut numbers = Numbers::for_lines(vocabulary.len());
        let mut sieve = Sieve::for_lines(vocabulary.len());
        let mut asked = Vec::with_capacity(vocabulary.len());
        for line in vocabulary {
            let key = kind.key(line);
            sieve.insert(&key);
            asked.push(numbers.insert(key));
        }
        let mut lines = Vec::with_capacity(text.len());
        let mut reader = Reader {
            numbers: &numbers,
            asked: &asked,
            next: 0,
        };
        lines.extend(text.iter().map(|line| {
            let key = kind.key(line);
            if sieve.may_contain(&key) {
                reader.number(&key)
            } else {
                UNKNOWN
            }
        }));
        let (offsets, places) = places(&lines, numbers.keys.len());
        Self {
            kind,
            numbers,
            asked,
            lines,
            offsets,
            places,
        }
    }

    /// Returns the numbers of a pattern, or `None` if a line of it is nowhere.
    pub(crate) fn pattern(&self, lines: &[&[u8]]) -> Option<Vec<u32>> {
        lines
            .iter()
            .map(|line| {
                let number = self.numbers.get(&self.kind.key(line))?;
                (!self.places(number).is_empty()).then_some(number)
            })
            .collect()
    }

    /// Does the same for lines that are a part of the vocabulary, without looking them up.
    pub(crate) fn asked(&self, part: Range<usize>) -> Option<Vec<u32>> {
        let numbers = self.asked.get(part)?;
        let occurs = |number: &u32| !self.places(*number).is_empty();
        numbers.iter().all(occurs).then(|| numbers.to_vec())
    }

    /// Tells whether the pattern stands at a line.
    pub(crate) fn stands_at(&self, pattern: &[u32], at: usize) -> bool {
        self.lines
            .get(at..)
            .is_some_and(|rest| rest.starts_with(pattern))
    }

    /// Returns the first places at or after a line, at most `limit` of them.
    pub(crate) fn find(&self, pattern: &[u32], from: usize, limit: usize) -> Vec<usize> {
        let Some(rarest) = (0..pattern.len()).min_by_key(|i| self.places(pattern[*i]).len()) else {
            return Vec::new();
        };
        let places = self.places(pattern[rarest]);
        let first = places.partition_point(|place| (*place as usize) < from + rarest);
        let mut budget = 4 * (self.lines.len() + pattern.len());
        let mut found = Vec::new();
        for place in &places[first..] {
            let at = *place as usize - rarest;
            let (stands, cost) = self.compare(pattern, at);
            if stands {
                found.push(at);
                if found.len() == limit {
                    break;
                }
            }
            let Some(rest) = budget.checked_sub(cost) else {
                let more = self.find_linear(pattern, at + 1, limit - found.len());
                found.extend(more);
                break;
            };
            budget = rest;
        }
        found
    }

    /// Returns where a line of the vocabulary stands, in order.
    pub(crate) fn places_of(&self, line: &[u8]) -> Option<&[u32]> {
        self.numbers
            .get(&self.kind.key(line))
            .map(|number| self.places(number))
    }

    /// Returns where a line of this number stands, in order.
    fn places(&self, number: u32) -> &[u32] {
        let bound = |i: usize| self.offsets.get(i).map_or(0, |offset| *offset as usize);
        self.places
            .get(bound(number as usize)..bound(number as usize + 1))
            .unwrap_or_default()
    }

    fn compare(&self, pattern: &[u32], at: usize) -> (bool, usize) {
        let Some(window) = self.lines.get(at..at + pattern.len()) else {
            return (false, 1);
        };
        match window.iter().zip(pattern).position(|(a, b)| a != b) {
            None => (true, pattern.len()),
            Some(same) => (false, same + 1),
        }
    }

    /// Knuth-Morris-Pratt, for patterns that almost match everywhere.
    fn find_linear(&self, pattern: &[u32], from: usize, limit: usize) -> Vec<usize> {
        let borders = borders(pattern);
        let mut found = Vec::new();
        let mut matched = 0;
        for (offset, line) in self.lines.iter().skip(from).enumerate() {
            while matched > 0 && (matched == pattern.len() || pattern[matched] != *line) {
                matched = borders[matched - 1];
            }
            if pattern[matched] == *line {
                matched += 1;
            }
            if matched == pattern.len() {
                found.push(from + offset + 1 - matched);
                if found.len() >= limit {
                    break;
                }
            }
        }
        found
    }
}

/// Returns, for each prefix, the length of its longest proper border.
fn borders(pattern: &[u32]) -> Vec<usize> {
    let mut borders = vec![0; pattern.len()];
    let mut length = 0;
    for i in 1..pattern.len() {
        while length > 0 && pattern[length] != pattern[i] {
            length = borders[length - 1];
        }
        if pattern[length] == pattern[i] {
            length += 1;
        }
        borders[i] = length;
    }
    borders
}

/// Sorts the lines by number, as a counting sort does.
fn places(lines: &[u32], numbers: usize) -> (Vec<u32>, Vec<u32>) {
    let mut offsets = vec![0u32; numbers + 2];
    let known = || {
        lines
            .iter()
            .enumerate()
            .filter(|(_, number)| **number != UNKNOWN)
    };
    for (_, number) in known() {
        offsets[*number as usize + 2] += 1;
    }
    for i in 1..offsets.len() {
        offsets[i] += offsets[i - 1];
    }
    let total = offsets.last().copied().unwrap_or_default();
    let mut places = vec![0; total as usize];
    for (line, number) in known() {
        let next = &mut offsets[*number as usize + 1];
        places[*next as usize] = line as u32;
        *next += 1;
    }
    offsets.pop();
    (offsets, places)
}

/// The keys of the vocabulary, numbered in the order in which they first come.
///
/// They are hashed quickly, with a seed that the writer of a patch cannot know.
#[derive(Debug)]
struct Numbers<'t> {
    keys: Vec<Cow<'t, [u8]>>,
    /// Where each key first stands in the vocabulary.
    first: Vec<u32>,
    table: HashTable<u32>,
    state: RandomState,
    inserted: u32,
}

impl<'t> Numbers<'t> {
    fn for_lines(count: usize) -> Self {
        Self {
            keys: Vec::with_capacity(count),
            first: Vec::with_capacity(count),
            table: HashTable::with_capacity(count),
            state: RandomState::default(),
            inserted: 0,
        }
    }

    /// Adds the next line of the vocabulary.
    fn insert(&mut self, key: Cow<'t, [u8]>) -> u32 {
        let Self {
            keys, table, state, ..
        } = self;
        let next = keys.len() as u32;
        let hash = state.hash_one(&*key);
        let same = |number: &u32| keys[*number as usize] == key;
        let number = match table.entry(hash, same, |it| state.hash_one(&*keys[*it as usize])) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                free.insert(next);
                keys.push(key);
                self.first.push(self.inserted);
                next
            }
        };
        self.inserted += 1;
        number
    }

    fn get(&self, key: &[u8]) -> Option<u32> {
        let same = |number: &u32| self.is(*number, key);
        self.table.find(self.state.hash_one(key), same).copied()
    }

    fn is(&self, number: u32, key: &[u8]) -> bool {
        *self.keys[number as usize] == *key
    }
}

/// Gives the lines of the file their numbers.
///
/// Lines that follow each other in the patch mostly do so in the file, and a
/// comparison with the next one costs less than finding it.
struct Reader<'n, 't> {
    numbers: &'n Numbers<'t>,
    asked: &'n [u32],
    /// Which line of the vocabulary is expected.
    next: usize,
}

impl Reader<'_, '_> {
    fn number(&mut self, key: &[u8]) -> u32 {
        let expected = self.asked.get(self.next);
        if let Some(number) = expected.filter(|number| self.numbers.is(**number, key)) {
            self.next += 1;
            return *number;
        }
        let Some(number) = self.numbers.get(key) else {
            return UNKNOWN;
        };
        self.next = self.numbers.first[number as usize] as usize + 1;
        number
    }
}

/// A small set that knows most lines of the file which no pattern asks for,
/// from their length and edges alone.
#[derive(Debug)]
struct Sieve {
    /// A power of two of them.
    words: Vec<u64>,
}

impl Sieve {
    /// Sixteen bits for each line let one in sixteen others through.
    fn for_lines(count: usize) -> Self {
        const MOST_WORDS: usize = 1 << 16;
        let words = (count / 4).clamp(64, MOST_WORDS).next_power_of_two();
        Self {
            words: vec![0; words],
        }
    }

    fn insert(&mut self, key: &[u8]) {
        let (word, bit) = self.slot(key);
        self.words[word] |= bit;
    }

    fn may_contain(&self, key: &[u8]) -> bool {
        let (word, bit) = self.slot(key);
        self.words[word] & bit != 0
    }

    fn slot(&self, key: &[u8]) -> (usize, u64) {
        let (head, tail) = match (key.first_chunk(), key.last_chunk()) {
            (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
            _ => (
                key.iter()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte)),
                0,
            ),
        };
        let mixed = head
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
            .wrapping_add(tail)
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .wrapping_add(key.len() as u64)
            .wrapping_mul(0xa076_1d64_78bd_642f);
        let word = (mixed >> 40) as usize & (self.words.len() - 1);
        (word, 1 << (mixed >> 34 & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(file: &str, pattern: &str, from: usize) -> Vec<usize> {
        let text = Text::new(file.as_bytes()).unwrap();
        let lines: Vec<&[u8]> = pattern.lines().map(str::as_bytes).collect();
        let index = Index::build(MatchKind::Exact, &text, &lines);
        let Some(pattern) = index.pattern(&lines) else {
            return Vec::new();
        };
        let found = index.find(&pattern, from, usize::MAX);
        assert_eq!(found, index.find_linear(&pattern, from, usize::MAX));
        found
    }

    #[test]
    fn all_places_are_found() {
        assert_eq!(find("a\nb\na\nb\n", "a\nb", 0), [0, 2]);
        assert_eq!(find("a\nb\na\nb\n", "a\nb", 1), [2]);
        assert_eq!(find("x\nx\nx\n", "x\nx", 0), [0, 1]);
        assert_eq!(find("x\n", "x\nx", 0), [0usize; 0]);
        assert_eq!(find("", "x", 0), [0usize; 0]);
    }

    #[test]
    fn a_part_of_the_vocabulary_needs_no_lookup() {
        let text = Text::new(b"a\nb\n b\n").unwrap();
        let vocabulary: [&[u8]; 5] = [b"a", b"b", b"c", b" b", b"a"];
        for kind in [MatchKind::Exact, MatchKind::Indentation] {
            let index = Index::build(kind, &text, &vocabulary);
            for part in [0..2, 1..2, 3..5, 2..3, 1..4, 0..0] {
                let lines = &vocabulary[part.clone()];
                assert_eq!(
                    index.asked(part),
                    index.pattern(lines),
                    "{kind:?} {lines:?}"
                );
            }
            assert_eq!(index.asked(4..6), None);
        }
    }

    #[test]
    fn a_pattern_that_almost_matches_everywhere_stays_cheap() {
        let file = "x\n".repeat(60_000) + "y\n";
        let pattern = "x\n".repeat(16_000) + "y";
        assert_eq!(find(&file, &pattern, 0), [44_000]);
        let pattern = "x\n".repeat(8_000) + "y\n" + &"x\n".repeat(8_000);
        assert!(find(&file, &pattern, 0).is_empty());
        let periodic = "x\nx\ny\n".repeat(20_000);
        assert_eq!(
            find(&periodic, &("x\nx\ny\n".repeat(8_000) + "x\ny"), 0),
            [0usize; 0]
        );
    }
}
