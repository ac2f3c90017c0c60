//! The ways in which a line of the patch may equal a line of the file.
//!
//! A way is a function from a line to a key; two lines are equal when their
//! keys are. That makes every way an equivalence, which linear search needs.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// How a place was found, from strict to loose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchKind {
    /// Byte by byte.
    Exact,
    /// Without the white space at the end of lines.
    TrailingSpace,
    /// Without the white space at both ends of lines.
    Indentation,
    /// The same, with typographic dashes, quotes and spaces taken as plain ones (R64).
    Punctuation,
    /// The same, with composed and decomposed letters taken as equal.
    Normalisation,
}

impl MatchKind {
    /// All kinds, in the order in which they are tried (R63).
    pub const ALL: [Self; 5] = [
        Self::Exact,
        Self::TrailingSpace,
        Self::Indentation,
        Self::Punctuation,
        Self::Normalisation,
    ];

    /// Returns what a match of this kind ignores.
    pub const fn ignores(self) -> &'static str {
        match self {
            Self::Exact => "nothing",
            Self::TrailingSpace => "white space at the end of lines",
            Self::Indentation => "indentation",
            Self::Punctuation => "typographic punctuation",
            Self::Normalisation => "Unicode normalisation",
        }
    }

    /// Tells whether plain ASCII lines can not differ from the kind before.
    pub(crate) const fn needs_unicode(self) -> bool {
        matches!(self, Self::Punctuation | Self::Normalisation)
    }

    /// Returns the key of a line.
    pub(crate) fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Exact => Cow::Borrowed(line),
            Self::TrailingSpace => Cow::Borrowed(trim_end(line)),
            Self::Indentation => Cow::Borrowed(trim(line)),
            Self::Punctuation => mapped(line, |text| text.chars().map(plain).collect()),
            Self::Normalisation => mapped(line, |text| text.chars().map(plain).nfc().collect()),
        }
    }
}

fn mapped(line: &[u8], map: impl Fn(&str) -> String) -> Cow<'_, [u8]> {
    let line = trim(line);
    match std::str::from_utf8(line) {
        Ok(text) if !text.is_ascii() => Cow::Owned(map(text).into_bytes()),
        _ => Cow::Borrowed(line),
    }
}

/// Maps typographic characters to the plain ones they stand for (R64).
pub(crate) fn plain(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Drops Unicode white space at the end; bytes that are no UTF-8 are no space.
fn trim_end(line: &[u8]) -> &[u8] {
    match line.last() {
        None => line,
        Some(byte) if byte.is_ascii_graphic() => line,
        Some(_) => match std::str::from_utf8(line) {
            Ok(text) => text.trim_end().as_bytes(),
            Err(_) => line.trim_ascii_end(),
        },
    }
}

pub(crate) fn trim(line: &[u8]) -> &[u8] {
    let line = trim_end(line);
    match line.first() {
        None => line,
        Some(byte) if byte.is_ascii_graphic() => line,
        Some(_) => match std::str::from_utf8(line) {
            Ok(text) => text.trim_start().as_bytes(),
            Err(_) => line.trim_ascii_start(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(a: &str, b: &str) -> Option<MatchKind> {
        MatchKind::ALL
            .into_iter()
            .find(|kind| kind.key(a.as_bytes()) == kind.key(b.as_bytes()))
    }

    #[test]
    fn the_strictest_kind_is_found() {
        assert_eq!(kind("a", "a"), Some(MatchKind::Exact));
        assert_eq!(kind("a", "a \t"), Some(MatchKind::TrailingSpace));
        assert_eq!(kind("\u{a0}x\u{3000}", "x"), Some(MatchKind::Indentation));
        assert_eq!(
            kind("it\u{2019}s \u{2013} ok", "it's - ok"),
            Some(MatchKind::Punctuation)
        );
        assert_eq!(
            kind("cafe\u{301}", "caf\u{e9}"),
            Some(MatchKind::Normalisation)
        );
    }

    #[test]
    fn what_the_reference_keeps_apart_stays_apart() {
        for (a, b) in [
            ("\u{200b}x", "x"),
            ("wait...", "wait\u{2026}"),
            ("A", "a"),
            ("a  b", "a b"),
        ] {
            assert_eq!(kind(a, b), None, "{a:?} {b:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_no_white_space() {
        assert_eq!(
            MatchKind::Indentation.key(b" \xa0x "),
            Cow::Borrowed(b"\xa0x")
        );
    }
}
