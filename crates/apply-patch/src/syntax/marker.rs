//! The fixed words of the grammar.

use super::ast::LineHint;

pub(super) const BEGIN: &str = "*** Begin Patch";
pub(super) const END: &str = "*** End Patch";
pub(super) const END_OF_FILE: &str = "*** End of File";
pub(super) const ENVIRONMENT: &str = "*** Environment ID:";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";

/// One line of a patch, without its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) text: &'a str,
}

impl<'a> Line<'a> {
    /// Takes off up to two CRs; a third is content (R10).
    pub(super) fn new(number: usize, raw: &'a str) -> Self {
        let text = raw.strip_suffix('\r').unwrap_or(raw);
        let text = text.strip_suffix('\r').unwrap_or(text);
        Self { number, text }
    }

    pub(super) fn is_blank(self) -> bool {
        self.text.trim().is_empty()
    }

    /// Tells from the first letters of most lines that they are body lines of a
    /// chunk and not blank, so that nothing else needs to be tried.
    pub(super) fn is_plainly_body(self) -> bool {
        match self.text.as_bytes() {
            [b'+' | b'-', ..] => true,
            [b' ', rest @ ..] => rest
                .iter()
                .find(|byte| !matches!(byte, b' ' | b'\t'))
                .is_some_and(u8::is_ascii_alphanumeric),
            _ => false,
        }
    }
}

/// A line that opens an operation or ends the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header<'a> {
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
    End,
}

impl<'a> Header<'a> {
    /// Reads a line that the caller has trimmed as the section demands (R21).
    pub(super) fn read(trimmed: &'a str) -> Option<Self> {
        if trimmed == END {
            return Some(Self::End);
        }
        let path = |prefix| trimmed.strip_prefix(prefix);
        path(ADD)
            .map(Self::Add)
            .or_else(|| path(DELETE).map(Self::Delete))
            .or_else(|| path(UPDATE).map(Self::Update))
    }
}

/// Reads `*** Move to: P`, where P is not empty.
pub(super) fn move_to(end_trimmed: &str) -> Option<&str> {
    end_trimmed
        .strip_prefix(MOVE)
        .filter(|path| !path.is_empty())
}

/// What an `@@` line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At<'a> {
    Bare,
    Header(&'a str),
    Hint(LineHint<'a>),
}

impl<'a> At<'a> {
    pub(super) fn read(end_trimmed: &'a str) -> Option<Self> {
        if end_trimmed == "@@" {
            return Some(Self::Bare);
        }
        let raw = end_trimmed.strip_prefix("@@ ")?;
        Some(line_hint(raw).map_or(Self::Header(raw), Self::Hint))
    }
}

/// Reads `-a,b +c,d @@`, after which any text may follow.
fn line_hint(raw: &str) -> Option<LineHint<'_>> {
    let (old, rest) = raw.strip_prefix('-')?.split_once(" +")?;
    let (new, text) = rest.split_once(" @@")?;
    if !(text.is_empty() || text.starts_with(' ')) {
        return None;
    }
    span(new)?;
    let (old_start, old_lines) = span(old)?;
    Some(LineHint {
        raw,
        old_start,
        old_lines,
    })
}

fn span(text: &str) -> Option<(usize, usize)> {
    let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
    Some((number(start)?, number(lines)?))
}

fn number(digits: &str) -> Option<usize> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}
