//! Two versions of a file of every form that an update can keep.
//!
//! A patch says nothing of line ends, so the two versions differ only in what
//! it can say: where ends are mixed, lines are replaced and none comes or goes;
//! where all are alike, both versions have one to take as the model.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// How the text of a file stands in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
}

/// One version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    encoding: Encoding,
    /// The lines with their ends; only the last may have none.
    lines: Vec<(String, &'static str)>,
}

/// Two versions of a file.
#[derive(Debug, Clone)]
pub struct Versions {
    pub old: Content,
    pub new: Content,
}

impl Content {
    /// Returns what an Add can write: UTF-8 in which every line ends in LF.
    pub fn plain(texts: &[String]) -> Self {
        Self::uniform(Encoding::Utf8, texts, "\n", true)
    }

    fn uniform(encoding: Encoding, texts: &[String], end: &'static str, ended: bool) -> Self {
        let mut lines: Vec<_> = texts.iter().map(|text| (text.clone(), end)).collect();
        if let Some(last) = lines.last_mut().filter(|_| !ended) {
            last.1 = "";
        }
        // An empty last line without an end is no line.
        if lines.last() == Some(&(String::new(), "")) {
            lines.pop();
        }
        Self { encoding, lines }
    }

    /// Returns the lines without their ends.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|(text, _)| text.as_str())
    }

    /// Returns the lines as a diff compares them: with whether they end at all.
    pub fn diff_lines(&self) -> Vec<(&str, bool)> {
        let lines = self.lines.iter();
        lines
            .map(|(text, end)| (text.as_str(), !end.is_empty()))
            .collect()
    }

    /// Tells whether the last line has an end.
    pub fn is_terminated(&self) -> bool {
        self.lines.last().is_none_or(|(_, end)| !end.is_empty())
    }

    fn has_an_end(&self) -> bool {
        self.lines.iter().any(|(_, end)| !end.is_empty())
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let text: String = self
            .lines
            .iter()
            .flat_map(|(text, end)| [text, *end])
            .collect();
        let utf16 = |unit: fn(u16) -> [u8; 2]| {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(unit).collect()
        };
        match self.encoding {
            Encoding::Utf8 => text.into_bytes(),
            Encoding::Utf8Bom => format!("\u{feff}{text}").into_bytes(),
            Encoding::Utf16Le => utf16(u16::to_le_bytes),
            Encoding::Utf16Be => utf16(u16::to_be_bytes),
        }
    }
}

/// Lines that repeat, differ by little, or look like the words of a patch.
const TEXTS: [&str; 24] = [
    "",
    " ",
    "\t",
    "x",
    "x ",
    "  x",
    "\tx",
    "}",
    "    }",
    "fn f() {",
    "it's",
    "it\u{2019}s",
    "a - b",
    "a \u{2013} b",
    "caf\u{e9}",
    "cafe\u{301}",
    "\u{1f980}",
    "+x",
    "-x",
    "@@",
    "*** End Patch",
    " *** End Patch",
    "*** End of File",
    "\\ No newline at end of file",
];

/// A line without its end.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => select(&TEXTS[..]).prop_map(str::to_owned),
        2 => (0..60_u8).prop_map(|number| format!("line {number}")),
    ]
}

#[derive(Debug, Clone)]
enum Edit {
    Insert(String),
    Delete,
    Replace(String),
}

fn edits() -> impl Strategy<Value = Vec<(Index, Edit)>> {
    let edit = prop_oneof![
        text().prop_map(Edit::Insert),
        Just(Edit::Delete),
        text().prop_map(Edit::Replace),
    ];
    proptest::collection::vec((any::<Index>(), edit), 0..8)
}

fn edited(old: &[String], edits: &[(Index, Edit)]) -> Vec<String> {
    let mut lines = old.to_vec();
    for (at, edit) in edits {
        match edit {
            Edit::Insert(text) => lines.insert(at.index(lines.len() + 1), text.clone()),
            Edit::Delete if !lines.is_empty() => drop(lines.remove(at.index(lines.len()))),
            Edit::Replace(text) if !lines.is_empty() => {
                let at = at.index(lines.len());
                lines[at].clone_from(text);
            }
            Edit::Delete | Edit::Replace(_) => {}
        }
    }
    lines
}

fn encoding() -> impl Strategy<Value = Encoding> {
    prop_oneof![
        4 => Just(Encoding::Utf8),
        1 => select(&[Encoding::Utf8Bom, Encoding::Utf16Le, Encoding::Utf16Be][..]),
    ]
}

/// Two versions in which all line ends are alike.
fn uniform() -> impl Strategy<Value = Versions> {
    let end = select(&["\n", "\n", "\r\n", "\r"][..]);
    let texts = proptest::collection::vec(text(), 0..30);
    let strategy = (encoding(), end, texts, edits(), any::<(bool, bool)>());
    strategy.prop_map(|(encoding, end, texts, edits, ended)| {
        let new_texts = edited(&texts, &edits);
        let versions = |end| Versions {
            old: Content::uniform(encoding, &texts, end, ended.0),
            new: Content::uniform(encoding, &new_texts, end, ended.1),
        };
        let wanted = versions(end);
        if wanted.old.has_an_end() && wanted.new.has_an_end() {
            return wanted;
        }
        // A version without any end can not say which one the other has.
        versions("\n")
    })
}

/// Two versions with mixed line ends, which are those of the places and not of the
/// texts: each text occurs once, so that only one diff is right.
fn mixed() -> impl Strategy<Value = Versions> {
    let end = select(&["\n", "\r\n"][..]);
    let lines = proptest::collection::vec((text(), end, any::<bool>()), 0..30);
    (encoding(), lines, any::<bool>()).prop_map(|(encoding, lines, ended)| {
        let content = |is_new: bool| {
            let mut lines: Vec<_> = lines
                .iter()
                .enumerate()
                .map(|(number, (text, end, changed))| {
                    let version = if is_new && *changed { "new" } else { "old" };
                    (format!("{version} {number} {text}"), *end)
                })
                .collect();
            if let Some(last) = lines.last_mut().filter(|_| !ended) {
                last.1 = "";
            }
            Content { encoding, lines }
        };
        Versions {
            old: content(false),
            new: content(true),
        }
    })
}

/// Two versions of a file.
pub fn versions() -> impl Strategy<Value = Versions> {
    prop_oneof![4 => uniform(), 1 => mixed()]
}
