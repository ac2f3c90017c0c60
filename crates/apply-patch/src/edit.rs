//! Makes the new bytes of a file from its old bytes and the chunks of a patch.
//!
//! Nothing that the patch does not name may change: lines are copied as bytes
//! with their own ends, and only lines that come need a decision (R70-R72).

use thiserror::Error;

use crate::locate::{Ambiguity, ChunkFailure, MatchKind, Placement, locate};
use crate::options::{FinalNewline, Options};
use crate::syntax::ast::{Chunk, ChunkLine};
use crate::text::{Encoding, EncodingError, LineEnd, Text};

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new bytes of the file.
    pub bytes: Vec<u8>,
    /// Where each chunk went, in patch order.
    pub landings: Vec<Landing>,
    /// The chunks that fit several places, of which the first was taken.
    pub warnings: Vec<Ambiguity>,
    /// Whether the new bytes differ from the old ones.
    pub changed: Changed,
}

/// Whether an edit changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The new bytes differ.
    Content,
    /// The new bytes are the old ones.
    Nothing,
}

/// Where a chunk went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Landing {
    /// The chunk, counted from 0.
    pub chunk: usize,
    /// The first line of its place in the old file, counted from 1.
    pub first_line: usize,
    /// How the place was found.
    pub kind: MatchKind,
}

/// Why a file can not be edited.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditError {
    /// Some chunks have no place.
    #[error("{} of the chunks could not be placed", .0.len())]
    Chunks(Vec<ChunkFailure>),
    /// The encoding of the file stands in the way.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
}

impl EditError {
    /// Returns the message, which begins as the reference's does (R61, R62, R75).
    pub fn message(&self, path: &str) -> String {
        match self {
            Self::Chunks(failures) => match failures.first() {
                Some(first) => first.message(path),
                None => format!("Failed to find expected lines in {path}:"),
            },
            Self::Encoding(error) => format!("Failed to read file to update {path}: {error}"),
        }
    }

    /// Returns the lines to print below the message, the further chunks' messages among them.
    pub fn details(&self, path: &str) -> Vec<String> {
        let Self::Chunks(failures) = self else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for (index, failure) in failures.iter().enumerate() {
            if index > 0 {
                lines.extend(failure.message(path).lines().map(str::to_owned));
            }
            lines.extend(failure.details());
        }
        lines
    }
}

/// Applies the chunks of one update to the bytes of a file.
pub fn edit(old: &[u8], chunks: &[Chunk<'_>], options: &Options) -> Result<Edited, EditError> {
    let text = Text::new(old)?;
    let located = locate(&text, chunks, options).map_err(EditError::Chunks)?;
    if text.encoding() == Encoding::AsciiSuperset {
        check_additions(chunks)?;
    }
    let landing = |placed: &Placement<'_, '_>| {
        let Placement {
            chunk, at, kind, ..
        } = *placed;
        Landing {
            chunk,
            first_line: at + 1,
            kind,
        }
    };
    let landings = located.placements.iter().map(landing).collect();
    let newline = final_newline(&text, chunks, options.final_newline);
    let edited = Writer::new(&text, chunks).write(located.placements, newline);
    let encoding = text.encoding();
    // A decoded copy is not needed any more when the edited form is encoded.
    drop(text);
    let bytes = encoding.encode(edited);
    let changed = if bytes == old {
        Changed::Nothing
    } else {
        Changed::Content
    };
    Ok(Edited {
        bytes,
        landings,
        warnings: located.ambiguities,
        changed,
    })
}

/// Refuses text that the unknown encoding of the file may not have.
fn check_additions(chunks: &[Chunk<'_>]) -> Result<(), EncodingError> {
    for (number, chunk) in chunks.iter().enumerate() {
        for line in &chunk.lines {
            if let ChunkLine::Add(text) = line
                && !text.is_ascii()
            {
                return Err(EncodingError::NonAsciiAddition {
                    chunk: number,
                    line: chunk.line,
                    text: (*text).to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// What becomes of the end of the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Newline {
    /// It has one.
    Wanted,
    /// It has none if it is a new line; a line that stays keeps its own.
    UnwantedIfNew,
    /// It has none, because the patch says so.
    Unwanted,
}

fn final_newline(text: &Text<'_>, chunks: &[Chunk<'_>], option: FinalNewline) -> Newline {
    let said = chunks
        .iter()
        .rev()
        .map(|chunk| chunk.no_newline)
        .find(|said| said.old || said.new);
    if let Some(said) = said {
        return if said.new {
            Newline::Unwanted
        } else {
            Newline::Wanted
        };
    }
    let terminated = text.is_empty() || text.end(text.len() - 1) != LineEnd::None;
    match option {
        FinalNewline::Keep if !terminated => Newline::UnwantedIfNew,
        FinalNewline::Keep | FinalNewline::Add => Newline::Wanted,
    }
}

/// Copies what stays and writes what comes.
struct Writer<'t> {
    text: &'t Text<'t>,
    out: Vec<u8>,
    /// The next line of the old text.
    next: usize,
    /// The end of the last line that was written, if it has one.
    last_end: LineEnd,
    /// The last end that was not missing, for lines that need one.
    before: LineEnd,
    last: Last,
}

/// Where the last line that was written came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Nowhere,
    File,
    Patch,
}

impl<'t> Writer<'t> {
    fn new(text: &'t Text<'t>, chunks: &[Chunk<'_>]) -> Self {
        let lines = chunks.iter().flat_map(|chunk| &chunk.lines);
        let added: usize = lines
            .map(|line| match line {
                ChunkLine::Add(text) => text.len() + 2,
                ChunkLine::Context(_) | ChunkLine::Remove(_) => 0,
            })
            .sum();
        let mark = text.encoding().mark();
        let mut out = Vec::with_capacity(mark.len() + text.size() + added + 2);
        out.extend_from_slice(mark);
        let none = LineEnd::None;
        Self {
            text,
            out,
            next: 0,
            last_end: none,
            before: none,
            last: Last::Nowhere,
        }
    }

    fn write(mut self, mut placements: Vec<Placement<'_, '_>>, newline: Newline) -> Vec<u8> {
        // Additions at the end of the file may stand before chunks further up.
        placements.sort_by_key(|placed| placed.at);
        for placed in &placements {
            self.keep_until(placed.at);
            self.run_script(&placed.script.lines);
        }
        self.keep_until(self.text.len());
        self.finish(newline);
        self.out
    }

    fn run_script(&mut self, lines: &[ChunkLine<'_>]) {
        let mut rest = lines;
        while let Some(first) = rest.first() {
            if matches!(first, ChunkLine::Context(_)) {
                self.keep_until(self.next + 1);
                rest = &rest[1..];
                continue;
            }
            let change = |line: &ChunkLine<'_>| !matches!(line, ChunkLine::Context(_));
            let length = rest.iter().take_while(|line| change(line)).count();
            self.replace(&rest[..length]);
            rest = &rest[length..];
        }
    }

    /// Writes a run of removed and added lines: the nth line that comes takes
    /// the end of the nth that goes, and any more take their neighbour's.
    fn replace(&mut self, run: &[ChunkLine<'_>]) {
        let added = run.iter().filter_map(|line| match line {
            ChunkLine::Add(text) => Some(*text),
            ChunkLine::Context(_) | ChunkLine::Remove(_) => None,
        });
        let removed = run
            .iter()
            .filter(|line| matches!(line, ChunkLine::Remove(_)))
            .count();
        let gone = self.next..(self.next + removed).min(self.text.len());
        for (index, text) in added.enumerate() {
            let partner = gone.clone().nth(index).or(gone.clone().last());
            let end = partner.map_or_else(|| self.neighbour(), |line| self.text.end(line));
            self.put(text.as_bytes(), end);
        }
        self.next = gone.end;
    }

    /// Copies old lines up to one; their ends are theirs.
    fn keep_until(&mut self, line: usize) {
        let line = line.min(self.text.len());
        if line <= self.next {
            return;
        }
        self.terminate();
        self.out.extend_from_slice(self.text.lines(self.next, line));
        self.next = line;
        self.wrote(self.text.end(line - 1));
        self.last = Last::File;
        if self.last_end == LineEnd::None && line > 1 {
            self.remember(self.text.end(line - 2));
        }
    }

    fn put(&mut self, line: &[u8], end: LineEnd) {
        self.terminate();
        self.out.extend_from_slice(line);
        // The last line may have none to give; what follows decides then.
        self.out.extend_from_slice(end.as_bytes());
        self.wrote(end);
        self.last = Last::Patch;
    }

    fn wrote(&mut self, end: LineEnd) {
        self.last_end = end;
        self.remember(end);
    }

    fn remember(&mut self, end: LineEnd) {
        if end != LineEnd::None {
            self.before = end;
        }
    }

    /// Gives the last line an end, so that nothing is glued to it.
    fn terminate(&mut self) {
        if self.last != Last::Nowhere && self.last_end == LineEnd::None {
            let end = self.neighbour();
            self.out.extend_from_slice(end.as_bytes());
            self.wrote(end);
        }
    }

    fn neighbour(&self) -> LineEnd {
        [
            self.before,
            self.text.end(self.next),
            self.text.preferred_end(),
        ]
        .into_iter()
        .find(|end| *end != LineEnd::None)
        .unwrap_or(LineEnd::Lf)
    }

    fn finish(&mut self, newline: Newline) {
        match newline {
            Newline::Wanted => self.terminate(),
            Newline::UnwantedIfNew if self.last != Last::Patch => {}
            Newline::UnwantedIfNew | Newline::Unwanted => {
                let end = self.last_end.as_bytes().len();
                self.out.truncate(self.out.len() - end);
            }
        }
    }
}
