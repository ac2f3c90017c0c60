//! A file as lines, without losing a byte of it.
//!
//! Everything above this module thinks in lines; everything below it thinks
//! in bytes. Each line remembers its own end, the encoding is kept for the way
//! back, and a record costs four bytes, so that large files stay affordable.

use std::borrow::Cow;

use encoding_rs::{Encoding as Codec, UTF_16BE, UTF_16LE};
use memchr::{memchr, memchr_iter};
use thiserror::Error;

/// The byte order mark of UTF-8.
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// Line starts are 32 bit numbers; the reference stops at an eighth of this (R75).
const LARGEST: usize = u32::MAX as usize;

/// How the bytes of a file stand for text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 without a byte order mark, which includes ASCII.
    Utf8,
    /// UTF-8 with a byte order mark.
    Utf8Bom,
    /// UTF-16, little end first, with a byte order mark.
    Utf16Le,
    /// UTF-16, big end first, with a byte order mark.
    Utf16Be,
    /// Something that agrees with ASCII below 0x80, such as Latin-1 or GBK.
    AsciiSuperset,
}

/// Why a file can not be edited as text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodingError {
    /// A byte order mark promises UTF-16, and the rest is not.
    #[error("the file starts with a UTF-16 byte order mark, but is not valid UTF-16")]
    MalformedUtf16,
    /// A byte order mark says UTF-32.
    #[error("the file is encoded as UTF-32, which is not supported: convert it to UTF-8 first")]
    Utf32,
    /// The file is larger than line records can address.
    #[error("file is too large to edit: {size} bytes, limit is {limit} bytes")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The largest size.
        limit: usize,
    },
    /// The patch adds text that the unknown encoding of the file can not be proved to hold.
    #[error(
        "the file is not UTF-8 (its encoding is unknown), so the non-ASCII line '{text}' that \
         chunk {} (line {line} of the patch) adds can not be written in it: convert the file to \
         UTF-8 first, or keep added lines to ASCII", chunk + 1
    )]
    NonAsciiAddition {
        /// The chunk, counted from 0.
        chunk: usize,
        /// The line of the patch where the chunk starts.
        line: usize,
        /// The added line.
        text: String,
    },
}

/// What ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// Nothing: it is the last line.
    None,
    /// A line feed.
    Lf,
    /// A carriage return and a line feed.
    CrLf,
    /// A carriage return, in a file that has no line feed at all.
    Cr,
}

impl LineEnd {
    /// Returns the bytes of the line end.
    pub const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::None => b"",
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Cr => b"\r",
        }
    }
}

/// A file as lines.
#[derive(Debug, Clone)]
pub struct Text<'a> {
    /// The content after any byte order mark; decoded if it was UTF-16.
    bytes: Cow<'a, [u8]>,
    encoding: Encoding,
    /// Where each line starts, and where the last one ends.
    starts: Vec<u32>,
    terminator: u8,
    ascii: bool,
}

impl<'a> Text<'a> {
    /// Reads the bytes of a file.
    pub fn new(file: &'a [u8]) -> Result<Self, EncodingError> {
        // Nearly every file is plain ASCII, and that is known sooner than anything else.
        let (bytes, encoding, ascii) = if file.is_ascii() {
            (Cow::Borrowed(file), Encoding::Utf8, true)
        } else {
            let (bytes, encoding) = decode(file)?;
            let ascii = bytes.is_ascii();
            (bytes, encoding, ascii)
        };
        if bytes.len() > LARGEST {
            return Err(EncodingError::TooLarge {
                size: bytes.len(),
                limit: LARGEST,
            });
        }
        let terminator = match memchr(b'\n', &bytes) {
            None if memchr(b'\r', &bytes).is_some() => b'\r',
            _ => b'\n',
        };
        let starts = line_starts(&bytes, terminator);
        Ok(Self {
            bytes,
            encoding,
            starts,
            terminator,
            ascii,
        })
    }

    /// Returns the number of lines; a final line end opens no further one.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Tells whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether every byte after the byte order mark is ASCII.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// Returns the encoding of the file.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns a line, counted from 0, without its end; past the last it is empty.
    pub fn line(&self, index: usize) -> &[u8] {
        let whole = self.lines(index, index + 1);
        &whole[..whole.len() - self.end(index).as_bytes().len()]
    }

    /// Returns all lines in order, each without its end.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let terminator = self.terminator;
        self.starts.windows(2).map(move |bounds| {
            let whole = self.bytes.get(bounds[0] as usize..bounds[1] as usize);
            match whole.unwrap_or_default() {
                [line @ .., last] if *last == terminator => match line {
                    [line @ .., b'\r'] if terminator == b'\n' => line,
                    line => line,
                },
                line => line,
            }
        })
    }

    /// Returns what ends a line, counted from 0.
    pub fn end(&self, index: usize) -> LineEnd {
        let whole = self.lines(index, index + 1);
        match whole {
            [.., b'\r', b'\n'] => LineEnd::CrLf,
            [.., b'\n'] => LineEnd::Lf,
            [.., b'\r'] if self.terminator == b'\r' => LineEnd::Cr,
            _ => LineEnd::None,
        }
    }

    /// Returns the bytes of the lines `from..to`, with their ends.
    pub fn lines(&self, from: usize, to: usize) -> &[u8] {
        let last = self.starts.len() - 1;
        let from = self.starts[from.min(last)] as usize;
        let to = self.starts[to.min(last)] as usize;
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// Returns the first line end of the file, or LF when it has none.
    pub fn preferred_end(&self) -> LineEnd {
        match self.end(0) {
            LineEnd::None => LineEnd::Lf,
            end => end,
        }
    }

    /// Returns the size of the content in the form in which it is edited.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl Encoding {
    /// Returns the bytes that stand before the first line in the edited form.
    pub(crate) const fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8Bom => UTF8_BOM,
            Self::Utf8 | Self::AsciiSuperset | Self::Utf16Le | Self::Utf16Be => b"",
        }
    }

    /// Turns the edited form back into the bytes of the file.
    pub(crate) fn encode(self, edited: Vec<u8>) -> Vec<u8> {
        let unit: fn(u16) -> [u8; 2] = match self {
            Self::Utf16Le => u16::to_le_bytes,
            Self::Utf16Be => u16::to_be_bytes,
            Self::Utf8 | Self::Utf8Bom | Self::AsciiSuperset => return edited,
        };
        let text = String::from_utf8_lossy(&edited);
        let mut bytes = Vec::with_capacity(edited.len() * 2 + 2);
        bytes.extend(unit(0xfeff));
        bytes.extend(text.encode_utf16().flat_map(unit));
        bytes
    }
}

/// Spells control characters out, so that a reader sees tabs and a terminal stays as it is.
pub(crate) fn visible(line: &str) -> String {
    let spell = |c: char| {
        let spelled = c.is_control().then(|| c.escape_default());
        spelled
            .into_iter()
            .flatten()
            .chain((!c.is_control()).then_some(c))
    };
    line.chars().flat_map(spell).collect()
}

fn decode(file: &[u8]) -> Result<(Cow<'_, [u8]>, Encoding), EncodingError> {
    match file {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Err(EncodingError::Utf32),
        [0xff, 0xfe, rest @ ..] => utf16(UTF_16LE, rest).map(|text| (text, Encoding::Utf16Le)),
        [0xfe, 0xff, rest @ ..] => utf16(UTF_16BE, rest).map(|text| (text, Encoding::Utf16Be)),
        [0xef, 0xbb, 0xbf, rest @ ..] if std::str::from_utf8(rest).is_ok() => {
            Ok((Cow::Borrowed(rest), Encoding::Utf8Bom))
        }
        _ if std::str::from_utf8(file).is_ok() => Ok((Cow::Borrowed(file), Encoding::Utf8)),
        _ => Ok((Cow::Borrowed(file), Encoding::AsciiSuperset)),
    }
}

fn utf16<'a>(codec: &'static Codec, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, EncodingError> {
    let text = codec
        .decode_without_bom_handling_and_without_replacement(bytes)
        .ok_or(EncodingError::MalformedUtf16)?;
    Ok(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

/// Guesses the room: what is never touched takes no memory, and the allocator
/// moves large records by changing the map.
fn line_starts(bytes: &[u8], terminator: u8) -> Vec<u32> {
    const USUAL_LINE_BYTES: usize = 32;
    let mut starts = Vec::with_capacity(bytes.len() / USUAL_LINE_BYTES + 2);
    starts.push(0);
    for end in memchr_iter(terminator, bytes) {
        // The caller has refused files whose positions do not fit.
        starts.push(end as u32 + 1);
    }
    if starts
        .last()
        .is_some_and(|last| *last as usize != bytes.len())
    {
        starts.push(bytes.len() as u32);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(file: &[u8]) -> Vec<(Vec<u8>, LineEnd)> {
        let text = Text::new(file).unwrap();
        (0..text.len())
            .map(|i| (text.line(i).to_vec(), text.end(i)))
            .collect()
    }

    #[test]
    fn each_line_keeps_its_own_end() {
        let expected = vec![
            (b"a".to_vec(), LineEnd::CrLf),
            (b"b".to_vec(), LineEnd::Lf),
            (b"c\rd".to_vec(), LineEnd::None),
        ];
        assert_eq!(lines(b"a\r\nb\nc\rd"), expected);
    }

    #[test]
    fn cr_is_a_line_end_only_without_any_lf() {
        assert_eq!(
            lines(b"a\rb\r"),
            vec![(b"a".to_vec(), LineEnd::Cr), (b"b".to_vec(), LineEnd::Cr)]
        );
        assert_eq!(lines(b"a\r\r\nb\n")[0], (b"a\r".to_vec(), LineEnd::CrLf));
    }

    #[test]
    fn an_empty_file_has_no_lines() {
        assert!(lines(b"").is_empty());
        assert_eq!(lines(b"\n"), vec![(Vec::new(), LineEnd::Lf)]);
        assert!(lines(b"\xef\xbb\xbf").is_empty());
    }

    #[test]
    fn all_lines_in_order_are_the_lines_one_by_one() {
        for file in [
            &b"a\r\nb\nc\rd"[..],
            b"a\rb\r",
            b"a\r\r\n\r\n\n",
            b"",
            b"a\nb\r",
            b"\xff\xfea\0\r\0\n\0b\0",
        ] {
            let text = Text::new(file).unwrap();
            let one_by_one: Vec<&[u8]> = (0..text.len()).map(|i| text.line(i)).collect();
            assert_eq!(text.iter().collect::<Vec<_>>(), one_by_one, "{file:?}");
        }
    }

    #[test]
    fn encodings_are_told_apart() {
        let of = |bytes| Text::new(bytes).map(|text| text.encoding());
        assert_eq!(of(b"a"), Ok(Encoding::Utf8));
        assert_eq!(of(b"\xef\xbb\xbfa"), Ok(Encoding::Utf8Bom));
        assert_eq!(of(b"caf\xe9"), Ok(Encoding::AsciiSuperset));
        assert_eq!(of(b"\xff\xfea\0"), Ok(Encoding::Utf16Le));
        assert_eq!(of(b"\xfe\xff\0a"), Ok(Encoding::Utf16Be));
        assert_eq!(of(b"\xff\xfea"), Err(EncodingError::MalformedUtf16));
        assert_eq!(of(b"\xff\xfe\x00\xd8"), Err(EncodingError::MalformedUtf16));
        assert_eq!(of(b"\xff\xfe\0\0"), Err(EncodingError::Utf32));
    }

    #[test]
    fn utf16_comes_back_as_it_was() {
        for file in [
            &b"\xff\xfea\0\r\0\n\0=\xd8\0\xde"[..],
            b"\xfe\xff\0a\0\n\xd8=\xde\0",
        ] {
            let text = Text::new(file).unwrap();
            let edited = text.lines(0, text.len()).to_vec();
            assert_eq!(text.encoding().encode(edited), file);
        }
    }
}
