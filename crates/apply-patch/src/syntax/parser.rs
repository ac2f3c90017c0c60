//! The line-event machine: one line in, one step on.
//!
//! It never looks ahead, so that a patch can be read while it is written. The
//! one line whose meaning depends on what follows, an indented end marker
//! inside an update, is held back until that is known.

use super::ast::{Body, Operation, Patch};
use super::error::{Hint, HunkFault, ParseError, PatchFault};
use super::marker::{BEGIN, END, ENVIRONMENT, Header, Line};
use super::update::{Step, UpdateSection};

/// Reads a patch line by line.
#[derive(Debug, Default)]
pub struct Parser<'a> {
    patch: Patch<'a>,
    line: usize,
    section: Section<'a>,
    /// An indented end marker in an update and the blank lines after it: the
    /// end of the patch if nothing else follows, else context (R21).
    held: Vec<Line<'a>>,
}

#[derive(Debug, Default)]
enum Section<'a> {
    #[default]
    Before,
    Between,
    Add(AddSection<'a>),
    Update(UpdateSection<'a>),
    Ended,
}

#[derive(Debug)]
struct AddSection<'a> {
    path: &'a str,
    line: usize,
    lines: Vec<&'a str>,
    blank: Option<usize>,
}

impl<'a> Parser<'a> {
    /// Returns a machine that expects `*** Begin Patch`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the operations that are complete.
    pub fn operations(&self) -> &[Operation<'a>] {
        &self.patch.operations
    }

    /// Reads the next line, which is without its LF.
    pub fn feed(&mut self, raw: &'a str) -> Result<(), ParseError> {
        self.line += 1;
        let line = Line::new(self.line, raw);
        if !self.held.is_empty() {
            if line.is_blank() {
                self.held.push(line);
                return Ok(());
            }
            for earlier in std::mem::take(&mut self.held) {
                self.step(earlier)?;
            }
        }
        if matches!(self.section, Section::Update(_)) && is_indented_end(line) {
            self.held.push(line);
            return Ok(());
        }
        self.step(line)
    }

    /// Ends the text, which must have ended with the end marker.
    pub fn finish(mut self) -> Result<Patch<'a>, ParseError> {
        if let Some(end) = self.held.first().copied() {
            self.turn(end, Header::End)?;
        }
        match self.section {
            Section::Ended => Ok(self.patch),
            _ => Err(ParseError::patch(PatchFault::LastLine)),
        }
    }

    fn step(&mut self, line: Line<'a>) -> Result<(), ParseError> {
        match &mut self.section {
            Section::Before => self.begin(line),
            Section::Between => self.between(line),
            Section::Add(section) => match section.step(line)? {
                None => Ok(()),
                Some(header) => self.turn(line, header),
            },
            Section::Update(section) => match section.step(line)? {
                Step::Stay => Ok(()),
                Step::Turn(header) => self.turn(line, header),
            },
            Section::Ended => ended(line),
        }
    }

    fn begin(&mut self, line: Line<'a>) -> Result<(), ParseError> {
        if line.text.trim() != BEGIN {
            return Err(ParseError::patch(PatchFault::FirstLine));
        }
        self.section = Section::Between;
        Ok(())
    }

    fn between(&mut self, line: Line<'a>) -> Result<(), ParseError> {
        let trimmed = line.text.trim();
        if trimmed.is_empty() {
            return Ok(());
        }
        if let Some(header) = Header::read(trimmed) {
            return self.turn(line, header);
        }
        match trimmed.strip_prefix(ENVIRONMENT) {
            Some(id) if self.patch.operations.is_empty() => self.environment(id.trim()),
            _ => Err(not_a_header(line, trimmed)),
        }
    }

    fn environment(&mut self, id: &'a str) -> Result<(), ParseError> {
        if id.is_empty() {
            return Err(ParseError::patch(PatchFault::EnvironmentEmpty));
        }
        if self.patch.environment_id.is_some() {
            return Err(ParseError::patch(PatchFault::EnvironmentTwice));
        }
        self.patch.environment_id = Some(id);
        Ok(())
    }

    /// Closes the section that is open, and opens what the header says.
    fn turn(&mut self, line: Line<'a>, header: Header<'a>) -> Result<(), ParseError> {
        match std::mem::replace(&mut self.section, Section::Between) {
            Section::Add(section) => self.patch.operations.push(section.close()),
            Section::Update(section) => {
                self.patch.operations.push(section.close(line, header)?);
            }
            Section::Before | Section::Between | Section::Ended => {}
        }
        let number = line.number;
        self.section = match header {
            Header::Add(path) => Section::Add(AddSection {
                path,
                line: number,
                lines: Vec::new(),
                blank: None,
            }),
            Header::Delete(path) => {
                self.patch.operations.push(Operation {
                    path,
                    line: number,
                    body: Body::Delete,
                });
                Section::Between
            }
            Header::Update(path) => Section::Update(UpdateSection::new(path, number)),
            Header::End => Section::Ended,
        };
        Ok(())
    }
}

impl<'a> AddSection<'a> {
    fn step(&mut self, line: Line<'a>) -> Result<Option<Header<'a>>, ParseError> {
        if let Some(text) = line.text.strip_prefix('+') {
            if let Some(blank) = self.blank {
                let fault = HunkFault::NotAHeader {
                    line: String::new(),
                };
                return Err(ParseError::Hunk {
                    line: blank,
                    fault,
                    hint: Some(Hint::LonePlus),
                });
            }
            self.lines.push(text);
            return Ok(None);
        }
        let trimmed = line.text.trim();
        if trimmed.is_empty() {
            self.blank.get_or_insert(line.number);
            return Ok(None);
        }
        Header::read(trimmed)
            .map(Some)
            .ok_or_else(|| not_a_header(line, trimmed))
    }

    fn close(self) -> Operation<'a> {
        Operation {
            path: self.path,
            line: self.line,
            body: Body::Add { lines: self.lines },
        }
    }
}

/// Lets blank lines and repeated end markers follow the end marker (R13).
fn ended(line: Line<'_>) -> Result<(), ParseError> {
    let trimmed = line.text.trim();
    if trimmed.is_empty() || trimmed == END {
        return Ok(());
    }
    Err(ParseError::patch(PatchFault::LastLine))
}

fn is_indented_end(line: Line<'_>) -> bool {
    !line.is_plainly_body() && line.text.starts_with(char::is_whitespace) && line.text.trim() == END
}

fn not_a_header(line: Line<'_>, trimmed: &str) -> ParseError {
    ParseError::hunk(
        line.number,
        HunkFault::NotAHeader {
            line: trimmed.to_owned(),
        },
    )
}
