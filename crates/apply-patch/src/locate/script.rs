//! The body of a chunk as an edit: which lines must stand there, which come.

use std::borrow::Cow;

use crate::syntax::ast::{Chunk, ChunkLine};

/// The lines of a chunk, as far as they count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script<'p, 'a> {
    pub(crate) lines: Cow<'p, [ChunkLine<'a>]>,
}

impl<'p, 'a> Script<'p, 'a> {
    /// Takes all lines of a chunk.
    pub(super) fn whole(chunk: &'p Chunk<'a>) -> Self {
        Self {
            lines: Cow::Borrowed(&chunk.lines),
        }
    }

    /// Takes the lines of a chunk without the blank lines that may be separators.
    pub(super) fn without_separators(chunk: &'p Chunk<'a>) -> Self {
        let kept = chunk.lines.len().saturating_sub(chunk.blank_tail_lines);
        Self {
            lines: Cow::Borrowed(&chunk.lines[..kept]),
        }
    }

    /// Returns the lines that must stand in the file, one by one.
    pub(super) fn old(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines.iter().filter_map(old).map(str::as_bytes)
    }

    /// Returns the lines that must stand in the file.
    pub(super) fn pattern(&self) -> Vec<&'a [u8]> {
        let mut pattern = Vec::with_capacity(self.lines.len());
        pattern.extend(self.old());
        pattern
    }

    /// Returns how many lines must stand in the file.
    pub(super) fn old_lines(&self) -> usize {
        self.old().count()
    }

    /// Returns the lines that will stand there, if any of them is new.
    pub(super) fn result(&self) -> Option<Vec<&'a [u8]>> {
        let news = |line: &ChunkLine<'_>| matches!(line, ChunkLine::Add(text) if !text.is_empty());
        if !self.lines.iter().any(news) {
            return None;
        }
        Some(
            self.lines
                .iter()
                .filter_map(new)
                .map(str::as_bytes)
                .collect(),
        )
    }

    /// Drops an empty line at the end of the pattern, and one from the end of
    /// the new lines (R66).
    pub(super) fn without_final_blank(&self) -> Option<Self> {
        let last = self.lines.iter().rposition(|line| old(line).is_some())?;
        let removed = match self.lines[last] {
            ChunkLine::Context("") => false,
            ChunkLine::Remove("") => true,
            _ => return None,
        };
        let mut lines = self.lines.to_vec();
        let additions_follow = last + 1 < lines.len();
        if removed || !additions_follow {
            lines.remove(last);
        } else {
            lines[last] = ChunkLine::Add("");
        }
        if additions_follow && lines.last() == Some(&ChunkLine::Add("")) {
            lines.pop();
        }
        Some(Self {
            lines: Cow::Owned(lines),
        })
    }
}

fn old<'a>(line: &ChunkLine<'a>) -> Option<&'a str> {
    match line {
        ChunkLine::Context(text) | ChunkLine::Remove(text) => Some(text),
        ChunkLine::Add(_) => None,
    }
}

fn new<'a>(line: &ChunkLine<'a>) -> Option<&'a str> {
    match line {
        ChunkLine::Context(text) | ChunkLine::Add(text) => Some(text),
        ChunkLine::Remove(_) => None,
    }
}
