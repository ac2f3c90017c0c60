//! The lines of a file and the ways of comparing them, said once more.
//!
//! Written from the description of the rules and not from the engine, so that
//! a slip in one of the two shows.

use apply_patch::locate::MatchKind;
use unicode_normalization::UnicodeNormalization;

/// A file in the form in which it is edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub mark: &'static [u8],
    pub text: Vec<u8>,
}

impl File {
    /// Decodes a file; `None` where no edit is possible.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let file = |mark, text: &[u8]| {
            Some(Self {
                mark,
                text: text.to_vec(),
            })
        };
        match bytes {
            [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => None,
            [0xff, 0xfe, rest @ ..] => Self::utf16(b"\xff\xfe", rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => Self::utf16(b"\xfe\xff", rest, u16::from_be_bytes),
            [0xef, 0xbb, 0xbf, rest @ ..] if std::str::from_utf8(rest).is_ok() => {
                file(b"\xef\xbb\xbf", rest)
            }
            _ => file(b"", bytes),
        }
    }

    /// Decodes bytes in the encoding of this file; without a mark they may begin like any other.
    pub fn like(&self, bytes: &[u8]) -> Option<Self> {
        let text = bytes.strip_prefix(self.mark)?;
        match self.mark {
            b"\xff\xfe" => Self::utf16(self.mark, text, u16::from_le_bytes),
            b"\xfe\xff" => Self::utf16(self.mark, text, u16::from_be_bytes),
            mark => Some(Self {
                mark,
                text: text.to_vec(),
            }),
        }
    }

    fn utf16(mark: &'static [u8], bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Self> {
        let units = bytes.chunks(2).map(|pair| pair.try_into().ok().map(unit));
        let units: Vec<u16> = units.collect::<Option<_>>()?;
        let text = String::from_utf16(&units).ok()?.into_bytes();
        Some(Self { mark, text })
    }

    /// Splits the text into lines and their ends; only the last may have none.
    pub fn lines(&self) -> Vec<(&[u8], &[u8])> {
        let terminator = if self.text.contains(&b'\n') {
            b'\n'
        } else {
            b'\r'
        };
        let whole = self.text.split_inclusive(|byte| *byte == terminator);
        whole
            .map(|line| line.split_at(line.len() - end_length(line, terminator)))
            .collect()
    }
}

fn end_length(line: &[u8], terminator: u8) -> usize {
    match line {
        [.., b'\r', b'\n'] => 2,
        [.., last] if *last == terminator => 1,
        _ => 0,
    }
}

/// Tells whether two lines are equal in a way of comparing.
pub fn equal(kind: MatchKind, one: &[u8], other: &[u8]) -> bool {
    key(kind, one) == key(kind, other)
}

fn key(kind: MatchKind, line: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(line) else {
        return match kind {
            MatchKind::Exact => line,
            MatchKind::TrailingSpace => line.trim_ascii_end(),
            _ => line.trim_ascii(),
        }
        .to_vec();
    };
    let plain = |text: &str| -> String { text.trim().chars().map(plain).collect() };
    match kind {
        MatchKind::Exact => text.to_owned(),
        MatchKind::TrailingSpace => text.trim_end().to_owned(),
        MatchKind::Indentation => text.trim().to_owned(),
        MatchKind::Punctuation => plain(text),
        MatchKind::Normalisation => plain(text).nfc().collect(),
    }
    .into_bytes()
}

fn plain(c: char) -> char {
    match u32::from(c) {
        0x2010..=0x2015 | 0x2212 => '-',
        0x2018..=0x201b => '\'',
        0x201c..=0x201f => '"',
        0xa0 | 0x2002..=0x200a | 0x202f | 0x205f | 0x3000 => ' ',
        _ => c,
    }
}
