//! Writes the difference of two trees as a patch.
//!
//! The engine reads patches and writes none, so this is the other half of a
//! round trip. It promises what a careful author does: old lines that stand in
//! one place only, or a marker that says which place is meant.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use crate::content::Content;

/// How a patch says which place a chunk means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// By as much context as makes it unique.
    Context,
    /// The same, and `*** End of File` where that is true.
    EndOfFile,
    /// By the line numbers of a unified diff.
    Numbers,
}

/// How a patch is written.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub anchor: Anchor,
    /// The fewest lines of context.
    pub context: usize,
    /// Whether a missing final newline is always said, as in a unified diff.
    pub says_no_newline: bool,
}

/// A line as a diff sees it: the same text with and without a line end is not the same.
type Line<'a> = (&'a str, bool);

/// Returns the chunks that turn one content into the other.
pub fn chunks(old: &Content, new: &Content, style: Style) -> String {
    let (old, new) = (old.diff_lines(), new.diff_lines());
    let ends_differ = ended(&old) != ended(&new);
    let writer = Writer {
        old: &old,
        new: &new,
        style,
        says: style.says_no_newline || ends_differ,
    };
    let mut context = style.context;
    loop {
        let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
        let groups = group_diff_ops(ops, context);
        if context >= old.len() || groups.iter().all(|group| writer.is_clear(group)) {
            return groups.iter().map(|group| writer.chunk(group)).collect();
        }
        context += 1;
    }
}

/// An empty file has no line that lacks an end.
fn ended(lines: &[Line<'_>]) -> bool {
    lines.last().is_none_or(|(_, ended)| *ended)
}

struct Writer<'a> {
    old: &'a [Line<'a>],
    new: &'a [Line<'a>],
    style: Style,
    says: bool,
}

impl Writer<'_> {
    /// Tells whether the old lines of a chunk can mean one place only.
    fn is_clear(&self, group: &[DiffOp]) -> bool {
        let place = old_range(group);
        if self.style.anchor == Anchor::Numbers || self.is_marked(group) {
            return true;
        }
        let texts = |range: Range<usize>| self.old[range].iter().map(|(text, _)| *text);
        let last = self.old.len() - place.len();
        let places = (0..=last).filter(|at| texts(*at..at + place.len()).eq(texts(place.clone())));
        !place.is_empty() && places.count() == 1
    }

    /// Tells whether something says that a chunk is at the end.
    fn is_marked(&self, group: &[DiffOp]) -> bool {
        let at_end = old_range(group).end == self.old.len();
        at_end && (self.style.anchor == Anchor::EndOfFile || self.marks(group))
    }

    /// Tells whether a chunk says of a side that its final newline is missing.
    fn marks(&self, group: &[DiffOp]) -> bool {
        let old = old_range(group).end == self.old.len() && !ended(self.old);
        let new = new_range(group).end == self.new.len() && !ended(self.new);
        self.says && (old || new)
    }

    fn chunk(&self, group: &[DiffOp]) -> String {
        let mut text = match self.style.anchor {
            Anchor::Numbers => {
                format!(
                    "@@ -{} +{} @@\n",
                    span(old_range(group)),
                    span(new_range(group))
                )
            }
            Anchor::Context | Anchor::EndOfFile => "@@\n".to_owned(),
        };
        for op in group {
            match op {
                DiffOp::Equal { .. } => self.lines(' ', &self.old[op.old_range()], &mut text),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                    self.lines('-', &self.old[op.old_range()], &mut text);
                    self.lines('+', &self.new[op.new_range()], &mut text);
                }
            }
        }
        let at_end = old_range(group).end == self.old.len();
        if self.style.anchor == Anchor::EndOfFile && at_end {
            text += "*** End of File\n";
        }
        text
    }

    fn lines(&self, prefix: char, lines: &[Line<'_>], out: &mut String) {
        for (text, ended) in lines {
            out.push(prefix);
            out.push_str(text);
            out.push('\n');
            if self.says && !ended {
                out.push_str("\\ No newline at end of file\n");
            }
        }
    }
}

fn old_range(group: &[DiffOp]) -> Range<usize> {
    let ends = group.first().zip(group.last());
    ends.map_or(0..0, |(first, last)| {
        first.old_range().start..last.old_range().end
    })
}

fn new_range(group: &[DiffOp]) -> Range<usize> {
    let ends = group.first().zip(group.last());
    ends.map_or(0..0, |(first, last)| {
        first.new_range().start..last.new_range().end
    })
}

/// Numbers as a unified diff has them: without lines, the line before.
fn span(range: Range<usize>) -> String {
    let start = if range.is_empty() {
        range.start
    } else {
        range.start + 1
    };
    format!("{start},{}", range.len())
}
