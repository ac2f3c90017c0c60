//! The walk over the chunks of one file.

use super::compare::MatchKind;
use super::failure::ChunkFailure;
use super::index::Index;
use super::script::Script;
use super::{Ambiguity, Located, Placement};
use crate::options::{ClosedHeader, Options};
use crate::syntax::ast::{Chunk, LineHint};
use crate::text::Text;

/// The state of the walk.
pub(super) struct Locator<'t, 'p, 'a> {
    pub(super) text: &'t Text<'t>,
    pub(super) chunks: &'p [Chunk<'a>],
    pub(super) options: Options,
    pub(super) ambiguities: Vec<Ambiguity>,
    /// The chunks that stand in one place only, and where; known once asked for.
    pub(super) unique: Option<Vec<(usize, usize)>>,
    vocabulary: Vec<&'a [u8]>,
    /// Where the lines of each chunk start in the vocabulary.
    asked_at: Vec<usize>,
    indexes: [Option<Index<'t>>; MatchKind::ALL.len()],
    cursor: usize,
    /// How far the last place was from where its line numbers said.
    drift: isize,
    pub(super) failures: Vec<ChunkFailure>,
}

/// What a search is to return.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) from: usize,
    pub(super) limit: usize,
    /// A line to try before all others.
    pub(super) near: Option<usize>,
    /// The chunk whose first old lines are searched for, if they are.
    pub(super) chunk: Option<usize>,
}

/// A place that a search chose.
struct Spot<'p, 'a> {
    at: usize,
    kind: MatchKind,
    script: Script<'p, 'a>,
}

impl<'t, 'p, 'a: 't> Locator<'t, 'p, 'a> {
    pub(super) fn new(text: &'t Text<'t>, chunks: &'p [Chunk<'a>], options: Options) -> Self {
        let mut vocabulary = Vec::new();
        let mut asked_at = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            asked_at.push(vocabulary.len());
            ask(chunk, &mut vocabulary);
        }
        Self {
            text,
            chunks,
            options,
            ambiguities: Vec::new(),
            unique: None,
            vocabulary,
            asked_at,
            indexes: Default::default(),
            cursor: 0,
            drift: 0,
            failures: Vec::new(),
        }
    }

    /// Places every chunk; after a failure the next one is tried from the same line.
    pub(super) fn run(mut self) -> Result<Located<'p, 'a>, Vec<ChunkFailure>> {
        let mut placements = Vec::with_capacity(self.chunks.len());
        for number in 0..self.chunks.len() {
            match self.place(number) {
                Ok(placement) => placements.push(placement),
                Err(failure) => self.failures.push(failure),
            }
        }
        if self.failures.is_empty() {
            Ok(Located {
                placements,
                ambiguities: self.ambiguities,
            })
        } else {
            Err(self.failures)
        }
    }

    fn place(&mut self, number: usize) -> Result<Placement<'p, 'a>, ChunkFailure> {
        let chunk = &self.chunks[number];
        let anchor = self.anchor(number, chunk)?;
        let script = Script::without_separators(chunk);
        let pattern = script.pattern();
        let spot = if pattern.is_empty() {
            self.addition(chunk, anchor, script)
        } else if ends_file(chunk) {
            self.at_end(number, anchor)?
        } else {
            self.body(number, anchor, script)?
        };
        let length = spot.script.old_lines();
        if length > 0 {
            self.cursor = spot.at + length;
        }
        if let Some(hint) = chunk.hint {
            self.drift = spot.at as isize - first_line(hint) as isize;
        }
        let Spot { at, kind, script } = spot;
        Ok(Placement {
            chunk: number,
            at,
            kind,
            script,
        })
    }

    /// Finds the headers, each below the one before; the search starts below the last (R61).
    fn anchor(&mut self, number: usize, chunk: &Chunk<'a>) -> Result<Option<usize>, ChunkFailure> {
        let mut anchor = None;
        for header in &chunk.headers {
            let from = anchor.unwrap_or(self.cursor);
            let Some(line) = self.header(header, from) else {
                return Err(self.header_not_found(number, header, from));
            };
            anchor = Some(line + 1);
        }
        if let (None, Some(hint)) = (anchor, chunk.hint) {
            // What looks like line numbers may be a line of the file after all.
            anchor = self.exactly(hint.raw, self.cursor).map(|line| line + 1);
        }
        Ok(anchor)
    }

    fn header(&mut self, header: &'a str, from: usize) -> Option<usize> {
        let wanted = Wanted {
            from,
            limit: 1,
            near: None,
            chunk: None,
        };
        let inner = match self.options.closed_header {
            ClosedHeader::Literal => None,
            ClosedHeader::Lenient => without_closing(header),
        };
        [Some(header), inner]
            .into_iter()
            .flatten()
            .find_map(|line| {
                let (_, found) = self.search(&[line.as_bytes()], wanted)?;
                found.first().copied()
            })
    }

    fn exactly(&mut self, line: &'a str, from: usize) -> Option<usize> {
        let index = self.index(MatchKind::Exact);
        let pattern = index.pattern(&[line.as_bytes()])?;
        index.find(&pattern, from, 1).first().copied()
    }

    /// Places a chunk that only adds: below its header, at its line number, or at the end.
    fn addition(
        &mut self,
        chunk: &Chunk<'a>,
        anchor: Option<usize>,
        script: Script<'p, 'a>,
    ) -> Spot<'p, 'a> {
        let end = self.text.len();
        let at = match (anchor, chunk.hint) {
            _ if ends_file(chunk) || script.lines.is_empty() => end,
            (Some(line), _) => line,
            (None, Some(hint)) => self.expected(hint).clamp(self.cursor.min(end), end),
            (None, None) => end,
        };
        if anchor.is_some() || (chunk.hint.is_some() && at < end) {
            self.cursor = self.cursor.max(anchor.unwrap_or(at));
        }
        Spot {
            at,
            kind: MatchKind::Exact,
            script,
        }
    }

    /// Places a chunk on the last lines of the file, or nowhere (R65).
    fn at_end(
        &mut self,
        number: usize,
        anchor: Option<usize>,
    ) -> Result<Spot<'p, 'a>, ChunkFailure> {
        let chunk = &self.chunks[number];
        let from = anchor.unwrap_or(self.cursor);
        let whole = Script::whole(chunk);
        let bare = Script::without_separators(chunk);
        let shorter = bare.without_final_blank();
        for script in [Some(whole), Some(bare), shorter].into_iter().flatten() {
            let pattern = script.pattern();
            let Some(at) = self.text.len().checked_sub(pattern.len()) else {
                continue;
            };
            if pattern.is_empty() || at < from {
                continue;
            }
            if let Some(kind) = self.stands(&pattern, at) {
                return Ok(Spot { at, kind, script });
            }
        }
        Err(self.not_at_end(number, from))
    }

    fn body(
        &mut self,
        number: usize,
        anchor: Option<usize>,
        script: Script<'p, 'a>,
    ) -> Result<Spot<'p, 'a>, ChunkFailure> {
        let from = anchor.unwrap_or(self.cursor);
        let hint = self.chunks[number].hint.filter(|_| anchor.is_none());
        let near = hint.map(|hint| self.expected(hint));
        let limit = if near.is_some() {
            usize::MAX
        } else {
            Self::LISTED + 1
        };
        let wanted = Wanted {
            from,
            limit,
            near,
            chunk: Some(number),
        };
        let shorter = script
            .without_final_blank()
            .filter(|script| script.old_lines() > 0);
        for script in [Some(script), shorter].into_iter().flatten() {
            let pattern = script.pattern();
            let Some((kind, found)) = self.search(&pattern, wanted) else {
                continue;
            };
            let at = match near {
                Some(near) => nearest_to(&found, near),
                None if anchor.is_some() => found.first().copied().unwrap_or(from),
                None => self.decide(number, pattern.len(), &found)?,
            };
            return Ok(Spot { at, kind, script });
        }
        Err(self.not_found(number, from))
    }

    /// Finds where the lines stand, by the strictest way that finds them.
    pub(super) fn search(
        &mut self,
        lines: &[&[u8]],
        wanted: Wanted,
    ) -> Option<(MatchKind, Vec<usize>)> {
        self.kinds(lines).find_map(|kind| {
            let asked_at = wanted.chunk.map(|chunk| self.asked_at[chunk]);
            let index = self.index(kind);
            let pattern = match asked_at {
                Some(start) => index.asked(start..start + lines.len()),
                None => index.pattern(lines),
            }?;
            let near = wanted.near.filter(|at| *at >= wanted.from);
            if let Some(at) = near.filter(|at| index.stands_at(&pattern, *at)) {
                return Some((kind, vec![at]));
            }
            let found = index.find(&pattern, wanted.from, wanted.limit);
            (!found.is_empty()).then_some((kind, found))
        })
    }

    fn stands(&mut self, lines: &[&[u8]], at: usize) -> Option<MatchKind> {
        self.kinds(lines).find(|kind| {
            let index = self.index(*kind);
            index
                .pattern(lines)
                .is_some_and(|pattern| index.stands_at(&pattern, at))
        })
    }

    /// Returns the ways that can make a difference to these lines.
    fn kinds(&self, lines: &[&[u8]]) -> impl Iterator<Item = MatchKind> + use<> {
        let plain = self.text.is_ascii() && lines.iter().all(|line| line.is_ascii());
        MatchKind::ALL
            .into_iter()
            .filter(move |kind| !(plain && kind.needs_unicode()))
    }

    pub(super) fn index(&mut self, kind: MatchKind) -> &Index<'t> {
        self.indexes[kind as usize]
            .get_or_insert_with(|| Index::build(kind, self.text, &self.vocabulary))
    }

    /// Returns the line that a unified diff means, as far as the chunks before it were off.
    fn expected(&self, hint: LineHint<'_>) -> usize {
        first_line(hint).saturating_add_signed(self.drift)
    }
}

/// Adds every line of a chunk that the file may be searched for, its old lines first.
fn ask<'a>(chunk: &Chunk<'a>, vocabulary: &mut Vec<&'a [u8]>) {
    vocabulary.extend(Script::whole(chunk).old());
    for header in &chunk.headers {
        vocabulary.push(header.as_bytes());
        vocabulary.extend(without_closing(header).map(str::as_bytes));
    }
    vocabulary.extend(chunk.hint.map(|hint| hint.raw.as_bytes()));
}

/// Drops the ` @@` that closes a header in unified-diff style.
fn without_closing(header: &str) -> Option<&str> {
    header
        .strip_suffix("@@")
        .map(str::trim_end)
        .filter(|inner| !inner.is_empty())
}

fn ends_file(chunk: &Chunk<'_>) -> bool {
    chunk.end_of_file || chunk.no_newline.old || chunk.no_newline.new
}

/// Returns the line, counted from 0, that the numbers name; without old lines
/// they name the line before the insertion.
fn first_line(hint: LineHint<'_>) -> usize {
    if hint.old_lines == 0 {
        hint.old_start
    } else {
        hint.old_start.saturating_sub(1)
    }
}

fn nearest_to(found: &[usize], near: usize) -> usize {
    found
        .iter()
        .copied()
        .min_by_key(|at| at.abs_diff(near))
        .unwrap_or(near)
}
