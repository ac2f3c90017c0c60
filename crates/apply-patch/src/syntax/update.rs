//! The body of an `*** Update File:` section.
//!
//! Kept apart from the rest of the machine because nearly all leniency of the
//! grammar lives here: optional first `@@`, stacked headers, separators that
//! look like context, and the markers at the end of a chunk.

use super::ast::{Body, Chunk, ChunkLine, MoveTo, Operation};
use super::error::{HunkFault, ParseError};
use super::marker::{At, END_OF_FILE, Header, Line, move_to};

/// What a line did to the section.
#[derive(Debug)]
pub(super) enum Step<'a> {
    Stay,
    Turn(Header<'a>),
}

#[derive(Debug)]
pub(super) struct UpdateSection<'a> {
    path: &'a str,
    line: usize,
    move_to: Option<MoveTo<'a>>,
    chunks: Vec<Chunk<'a>>,
    phase: Phase<'a>,
}

#[derive(Debug)]
enum Phase<'a> {
    /// No chunk yet; the blank lines so far are separators, unless a chunk
    /// without an `@@` line follows.
    Head { blanks: Vec<Line<'a>> },
    /// `@@` lines, and no body yet.
    Opened(Chunk<'a>),
    /// Body lines.
    Body(Chunk<'a>),
    /// The old text has ended without a newline; only additions may follow.
    OldEnded(Chunk<'a>),
    /// The chunk is complete.
    Closed(Chunk<'a>),
}

impl<'a> UpdateSection<'a> {
    pub(super) fn new(path: &'a str, line: usize) -> Self {
        let phase = Phase::Head { blanks: Vec::new() };
        Self {
            path,
            line,
            move_to: None,
            chunks: Vec::new(),
            phase,
        }
    }

    pub(super) fn step(&mut self, line: Line<'a>) -> Result<Step<'a>, ParseError> {
        if let Phase::Body(chunk) = &mut self.phase
            && line.is_plainly_body()
        {
            chunk.lines.extend(chunk_line(line));
            chunk.blank_tail_lines = 0;
            return Ok(Step::Stay);
        }
        let trimmed = line.text.trim_end();
        if let Some(header) = Header::read(trimmed) {
            return Ok(Step::Turn(header));
        }
        if let Some(at) = At::read(trimmed) {
            self.at(line, at)?;
        } else if trimmed == END_OF_FILE {
            self.end_of_file(line)?;
        } else if line.is_blank() && self.takes_separators() {
            self.separator(line);
        } else if line.text.starts_with("\\ ") {
            self.no_newline(line)?;
        } else {
            self.other(line, trimmed)?;
        }
        Ok(Step::Stay)
    }

    /// Ends the section at the line that holds the next header.
    pub(super) fn close(
        mut self,
        line: Line<'a>,
        header: Header<'a>,
    ) -> Result<Operation<'a>, ParseError> {
        match self.phase {
            Phase::Head { .. } if self.move_to.is_none() => {
                return Err(empty_update(self.path, self.line));
            }
            Phase::Head { .. } => {}
            Phase::Opened(_) if header == Header::End => {
                return Err(ParseError::hunk(line.number, HunkFault::NoLines));
            }
            Phase::Opened(_) => return Err(unexpected(line)),
            Phase::Body(chunk) | Phase::OldEnded(chunk) | Phase::Closed(chunk) => {
                self.chunks.push(chunk);
            }
        }
        let body = Body::Update {
            move_to: self.move_to,
            chunks: self.chunks,
        };
        Ok(Operation {
            path: self.path,
            line: self.line,
            body,
        })
    }

    fn at(&mut self, line: Line<'a>, at: At<'a>) -> Result<(), ParseError> {
        let mut chunk = match self.take_phase() {
            Phase::Head { .. } => Chunk {
                line: line.number,
                ..Chunk::default()
            },
            Phase::Opened(_) if at == At::Bare => return Err(unexpected(line)),
            Phase::Opened(chunk) => chunk,
            Phase::Body(done) | Phase::OldEnded(done) | Phase::Closed(done) => {
                self.chunks.push(done);
                Chunk {
                    line: line.number,
                    ..Chunk::default()
                }
            }
        };
        match at {
            At::Bare => {}
            At::Header(text) => chunk.headers.push(text),
            At::Hint(hint) => chunk.hint = Some(hint),
        }
        self.phase = Phase::Opened(chunk);
        Ok(())
    }

    fn end_of_file(&mut self, line: Line<'a>) -> Result<(), ParseError> {
        match self.take_phase() {
            Phase::Head { .. } => Err(empty_update(self.path, self.line)),
            Phase::Opened(_) => Err(ParseError::hunk(line.number, HunkFault::NoLines)),
            Phase::Closed(chunk) if chunk.end_of_file => Err(expected_chunk(line)),
            // What has no final newline is at the end anyway.
            Phase::Body(mut chunk) | Phase::OldEnded(mut chunk) | Phase::Closed(mut chunk) => {
                chunk.end_of_file = true;
                self.phase = Phase::Closed(chunk);
                Ok(())
            }
        }
    }

    fn takes_separators(&self) -> bool {
        matches!(
            self.phase,
            Phase::Head { .. } | Phase::OldEnded(_) | Phase::Closed(_)
        )
    }

    fn separator(&mut self, line: Line<'a>) {
        if let Phase::Head { blanks } = &mut self.phase {
            blanks.push(line);
        }
    }

    /// Reads `\ No newline at end of file`, in whatever language it is.
    fn no_newline(&mut self, line: Line<'a>) -> Result<(), ParseError> {
        let (mut chunk, old_ended) = match self.take_phase() {
            Phase::Body(chunk) => (chunk, false),
            Phase::OldEnded(chunk) => (chunk, true),
            Phase::Head { .. } | Phase::Opened(_) => return Err(unexpected(line)),
            Phase::Closed(_) => return Err(expected_chunk(line)),
        };
        let last = chunk.lines.last().copied();
        let removed = matches!(last, Some(ChunkLine::Remove(_)));
        if removed && old_ended {
            return Err(expected_chunk(line));
        }
        chunk.no_newline.old |= !matches!(last, Some(ChunkLine::Add(_)));
        chunk.no_newline.new |= !removed;
        self.phase = if removed {
            Phase::OldEnded(chunk)
        } else {
            Phase::Closed(chunk)
        };
        Ok(())
    }

    fn other(&mut self, line: Line<'a>, trimmed: &'a str) -> Result<(), ParseError> {
        if let (Phase::Head { .. }, None, Some(path)) =
            (&self.phase, self.move_to, move_to(trimmed))
        {
            self.move_to = Some(MoveTo {
                path,
                line: line.number,
            });
            return Ok(());
        }
        let content = chunk_line(line);
        let mut chunk = match self.take_phase() {
            Phase::Head { blanks } => self.open_without_marker(&blanks, line)?,
            Phase::Opened(chunk) => chunk,
            Phase::Body(chunk) if content.is_some() => chunk,
            Phase::OldEnded(mut chunk) if matches!(content, Some(ChunkLine::Add(_))) => {
                chunk.lines.extend(content);
                self.phase = Phase::OldEnded(chunk);
                return Ok(());
            }
            Phase::Body(_) | Phase::OldEnded(_) | Phase::Closed(_) => {
                return Err(expected_chunk(line));
            }
        };
        chunk.lines.push(content.ok_or_else(|| unexpected(line))?);
        count_tail(&mut chunk, line);
        self.phase = Phase::Body(chunk);
        Ok(())
    }

    /// Opens the first chunk at a body line (R52): blank lines above it are
    /// its context, because no `@@` line separates them from it.
    fn open_without_marker(
        &self,
        blanks: &[Line<'a>],
        line: Line<'a>,
    ) -> Result<Chunk<'a>, ParseError> {
        let first = blanks.first().unwrap_or(&line);
        let mut chunk = Chunk {
            line: first.number,
            ..Chunk::default()
        };
        for blank in blanks {
            chunk
                .lines
                .push(chunk_line(*blank).ok_or_else(|| unexpected(*blank))?);
            count_tail(&mut chunk, *blank);
        }
        if !blanks.is_empty() && chunk_line(line).is_none() {
            return Err(expected_chunk(line));
        }
        Ok(chunk)
    }

    fn take_phase(&mut self) -> Phase<'a> {
        std::mem::replace(&mut self.phase, Phase::Head { blanks: Vec::new() })
    }
}

fn chunk_line(line: Line<'_>) -> Option<ChunkLine<'_>> {
    let text = line.text;
    if text.is_empty() {
        return Some(ChunkLine::Context(""));
    }
    text.strip_prefix(' ')
        .map(ChunkLine::Context)
        .or_else(|| text.strip_prefix('-').map(ChunkLine::Remove))
        .or_else(|| text.strip_prefix('+').map(ChunkLine::Add))
}

fn count_tail(chunk: &mut Chunk<'_>, line: Line<'_>) {
    chunk.blank_tail_lines = if line.text.is_empty() {
        chunk.blank_tail_lines + 1
    } else {
        0
    };
}

fn unexpected(line: Line<'_>) -> ParseError {
    ParseError::hunk(
        line.number,
        HunkFault::UnexpectedLine {
            line: line.text.to_owned(),
        },
    )
}

fn expected_chunk(line: Line<'_>) -> ParseError {
    ParseError::hunk(
        line.number,
        HunkFault::ExpectedChunk {
            line: line.text.to_owned(),
        },
    )
}

fn empty_update(path: &str, line: usize) -> ParseError {
    ParseError::hunk(
        line,
        HunkFault::EmptyUpdate {
            path: path.to_owned(),
        },
    )
}
