//! The place of a file that is most like the lines that were not found.
//!
//! A diagnosis for a reader, so it may be a guess, but it must stay cheap:
//! a few rare lines vote for a place, and only if none of them occurs is one
//! line compared by its letters, with a handful of finalists.

use std::collections::HashMap;

use similar::TextDiff;

use super::compare::{MatchKind, plain, trim};
use super::index::Index;
use crate::text::{Text, visible};

/// The place that is most like what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The first line of the place, counted from 1.
    pub line: usize,
    /// The first line that differs there.
    pub differing: Differing,
}

/// A line that differs from what the patch expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// The line of the file, counted from 1.
    pub line: usize,
    /// What the patch expects.
    pub expected: String,
    /// What the file has; nothing where it has ended.
    pub actual: Option<String>,
    /// In what way they differ.
    pub difference: Difference,
}

/// In what way two lines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The file has ended.
    EndOfFile,
    /// One has tabs where the other has spaces.
    Tabs,
    /// Only the white space differs.
    Spaces,
    /// Only the kind of quotes differs.
    Quotes,
    /// Only upper and lower case differ.
    Case,
    /// The text differs.
    Text,
}

impl Difference {
    fn describe(self) -> &'static str {
        match self {
            Self::EndOfFile => "the file ends",
            Self::Tabs => "tabs and spaces differ",
            Self::Spaces => "only white space differs",
            Self::Quotes => "only quotes differ",
            Self::Case => "only upper and lower case differ",
            Self::Text => "the text differs",
        }
    }

    fn between(expected: &str, actual: &str) -> Self {
        let kept = |text: &str, keep: fn(char) -> Option<char>| -> String {
            text.chars().map(plain).filter_map(keep).collect()
        };
        let same = |keep| kept(expected, keep) == kept(actual, keep);
        if same(|c| (!c.is_whitespace()).then_some(c)) {
            let tabs = expected.contains('\t') != actual.contains('\t');
            return if tabs { Self::Tabs } else { Self::Spaces };
        }
        if same(|c| Some(if matches!(c, '"' | '`') { '\'' } else { c })) {
            return Self::Quotes;
        }
        if expected.to_lowercase() == actual.to_lowercase() {
            Self::Case
        } else {
            Self::Text
        }
    }
}

impl Nearest {
    pub(super) fn describe(&self) -> Vec<String> {
        let Differing {
            line,
            expected,
            actual,
            difference,
        } = &self.differing;
        let mut lines = vec![
            format!(
                "nearest place: line {}; first difference: line {line}",
                self.line
            ),
            format!("  expected: {}", visible(expected)),
        ];
        lines.extend(
            actual
                .iter()
                .map(|actual| format!("  found:    {}", visible(actual))),
        );
        lines.push(format!("  {}", difference.describe()));
        lines
    }
}

/// How many lines of the pattern may vote, and for how many places each.
const VOTERS: usize = 64;
const VOTES: usize = 64;

/// How many lines of the file are compared letter by letter.
const FINALISTS: usize = 16;

/// Longer lines are compared by their start.
const LONGEST: usize = 200;

/// Finds the nearest place; the index must compare by indentation and know the pattern.
pub(super) fn nearest(
    text: &Text<'_>,
    index: &Index<'_>,
    pattern: &[&[u8]],
    from: usize,
) -> Option<Box<Nearest>> {
    let start = elected(index, pattern, from).or_else(|| lookalike(text, pattern))?;
    let differing = first_difference(text, pattern, start)?;
    Some(Box::new(Nearest {
        line: start + 1,
        differing,
    }))
}

fn elected(index: &Index<'_>, pattern: &[&[u8]], from: usize) -> Option<usize> {
    let mut voters: Vec<(usize, &[u32])> = pattern
        .iter()
        .enumerate()
        .filter(|(_, line)| !trim(line).is_empty())
        .filter_map(|(offset, line)| Some((offset, index.places_of(line)?)))
        .collect();
    voters.sort_by_key(|(_, places)| places.len());
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (offset, places) in voters.into_iter().take(VOTERS) {
        let after = places.partition_point(|place| (*place as usize) < from);
        let nearby = places[after..].iter().chain(&places[..after]);
        for place in nearby.take(VOTES) {
            if let Some(start) = (*place as usize).checked_sub(offset) {
                *votes.entry(start).or_default() += 1;
            }
        }
    }
    let rank = |(start, votes): &(usize, usize)| (*votes, *start >= from, usize::MAX - *start);
    votes.into_iter().max_by_key(rank).map(|(start, _)| start)
}

/// Finds the line of the file that looks most like the longest of the pattern.
fn lookalike(text: &Text<'_>, pattern: &[&[u8]]) -> Option<usize> {
    let (offset, wanted) = pattern
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| trim(line).len().min(LONGEST))?;
    let wanted = start_of(wanted);
    let letters = histogram(wanted);
    let mut finalists: Vec<(usize, usize)> = Vec::new();
    for line in 0..text.len() {
        let shared = overlap(&letters, start_of(text.line(line)));
        if finalists.last().is_none_or(|(_, worst)| shared > *worst) {
            finalists.push((line, shared));
            finalists.sort_by_key(|(line, shared)| (usize::MAX - shared, *line));
            finalists.truncate(FINALISTS);
        }
    }
    let wanted = String::from_utf8_lossy(wanted);
    let likeness = |line: usize| {
        let line = String::from_utf8_lossy(start_of(text.line(line)));
        TextDiff::from_chars(wanted.as_ref(), line.as_ref()).ratio()
    };
    finalists
        .into_iter()
        .map(|(line, _)| (line, likeness(line)))
        .filter(|(_, ratio)| *ratio >= 0.6)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(line, _)| line.saturating_sub(offset))
}

fn start_of(line: &[u8]) -> &[u8] {
    let line = trim(line);
    &line[..line.len().min(LONGEST)]
}

fn histogram(line: &[u8]) -> [u8; 256] {
    let mut counts = [0u8; 256];
    for byte in line {
        counts[*byte as usize] += 1;
    }
    counts
}

/// Counts the letters that two lines share, less those that only one has.
fn overlap(letters: &[u8; 256], line: &[u8]) -> usize {
    let mut left = *letters;
    let mut shared = 0;
    for byte in line {
        let count = &mut left[*byte as usize];
        if *count > 0 {
            *count -= 1;
            shared += 2;
        }
    }
    (shared + LONGEST).saturating_sub(line.len())
}

fn first_difference(text: &Text<'_>, pattern: &[&[u8]], start: usize) -> Option<Differing> {
    let differs = |kind: MatchKind, offset: usize| {
        let at = start + offset;
        at >= text.len() || kind.key(text.line(at)) != kind.key(pattern[offset])
    };
    let first = |kind| (0..pattern.len()).find(|offset| differs(kind, *offset));
    let offset = first(MatchKind::Normalisation).or_else(|| first(MatchKind::Exact))?;
    let at = start + offset;
    let expected = String::from_utf8_lossy(pattern[offset]).into_owned();
    if at >= text.len() {
        let difference = Difference::EndOfFile;
        return Some(Differing {
            line: at + 1,
            expected,
            actual: None,
            difference,
        });
    }
    let actual = String::from_utf8_lossy(text.line(at)).into_owned();
    let difference = Difference::between(&expected, &actual);
    Some(Differing {
        line: at + 1,
        expected,
        actual: Some(actual),
        difference,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_named() {
        let cases = [
            ("\tx", "    x", Difference::Tabs),
            ("a  b", "a b", Difference::Spaces),
            ("'a'", "\"a\"", Difference::Quotes),
            ("A", "a", Difference::Case),
            ("b = 2", "b = 3", Difference::Text),
        ];
        for (expected, actual, difference) in cases {
            assert_eq!(
                Difference::between(expected, actual),
                difference,
                "{expected:?}"
            );
        }
    }

    #[test]
    fn common_lines_elect_the_place_and_a_lookalike_replaces_them() {
        let text = Text::new(b"import x\n\ndef f():\n    a = 1\n    b = 3\n").unwrap();
        let near = |pattern: &[&[u8]]| {
            let index = Index::build(MatchKind::Indentation, &text, pattern);
            nearest(&text, &index, pattern, 0).unwrap()
        };
        let found = near(&[b"def f():", b"    a = 1", b"    b = 2"]);
        assert_eq!((found.line, found.differing.line), (3, 5));
        assert_eq!(found.differing.actual.as_deref(), Some("    b = 3"));
        assert_eq!(near(&[b"improt x"]).line, 1);
    }
}
