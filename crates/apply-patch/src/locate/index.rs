//! Where the lines of a patch occur in a file, for one way of comparing.
//!
//! Only lines that the patch asks for get a number; the file is read once per
//! way, and every search after that compares numbers. A search starts from the
//! rarest line of its pattern and falls back to Knuth-Morris-Pratt when that
//! does not stay cheap, so its cost is linear whatever the lines are.

use std::ops::Range;

use super::compare::MatchKind;
use super::numbers::{Numbers, Reader, Sieve, UNKNOWN};
use crate::text::Text;

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
        let mut reader = Reader::new(&numbers, &asked);
        lines.extend(text.iter().map(|line| {
            let key = kind.key(line);
            if sieve.may_contain(&key) {
                reader.number(&key)
            } else {
                UNKNOWN
            }
        }));
        let (offsets, places) = places(&lines, numbers.len());
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
