//! What was done, as data: the binary turns it into words.

use std::path::{Path, PathBuf};

use safe_fs::{Direction, JOURNAL_NAME};

use crate::edit::Landing;
use crate::locate::Ambiguity;

/// The letter of a summary line (R92).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// A file that was not there before.
    Added,
    /// A file that was there, edited, replaced or moved.
    Modified,
    /// A path that is gone.
    Deleted,
}

impl ChangeKind {
    /// Returns the summary letter.
    pub const fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
        }
    }
}

/// One line of the summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// The path as the patch spells it; of a move, the destination.
    pub path: String,
}

/// Something that succeeded but which the reader should know.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// An update that left the file as it was.
    Unchanged {
        /// The path as the patch spells it.
        path: String,
    },
    /// An edit went through a symbolic link to its target.
    ThroughLink {
        /// The path as the patch spells it.
        path: String,
        /// The file that changed.
        target: PathBuf,
    },
    /// A move with an edit removed a link and made a regular file; the link's target stays.
    LinkBecameFile {
        /// The destination as the patch spells it.
        path: String,
        /// What the link pointed to.
        target: PathBuf,
    },
    /// A link at the destination of a move was replaced; its target stays.
    LinkReplaced {
        /// The destination as the patch spells it.
        path: String,
    },
    /// A hard-linked file's other names were given the new content too.
    LinksFollowed {
        /// The path as the patch spells it.
        path: String,
        /// How many other names follow.
        others: usize,
    },
    /// A hard-linked file's other names keep the old content.
    LinksBroken {
        /// The path as the patch spells it.
        path: String,
        /// How many names keep it.
        others: u64,
    },
    /// A name that was one of several of a file (hard links) came back as a file of its own.
    LinksParted {
        /// The path.
        path: String,
        /// How many other names there were.
        others: u64,
    },
    /// A chunk fits several places, and the first was taken.
    Ambiguous {
        /// The path as the patch spells it.
        path: String,
        /// The chunk and the places.
        ambiguity: Ambiguity,
    },
    /// A chunk fits its place, but not to the letter.
    Loose {
        /// The path as the patch spells it.
        path: String,
        /// Where the chunk landed.
        landing: Landing,
    },
    /// The new file could not be given everything that the old one had.
    AttributesLost {
        /// The path as the patch spells it.
        path: String,
        /// What it lacks.
        what: Vec<String>,
    },
    /// A temporary name could not be removed.
    LeftBehind {
        /// Where it is.
        path: PathBuf,
    },
    /// What the patch replaced is not kept, so that it cannot be undone.
    NoUndo {
        /// Why.
        why: String,
    },
    /// No directory took a journal, so a kill in the middle could not have been mended.
    NoJournal,
    /// A file was written in place, because a new inode could not take its place.
    InPlace {
        /// The path as the patch spells it.
        path: String,
    },
    /// An earlier patch had been interrupted, and was ended first.
    Recovered {
        /// Whether it was finished or taken back.
        direction: Direction,
    },
    /// A file of an interrupted patch was changed by somebody else since, and stays as it is.
    NotRestored {
        /// The file.
        path: PathBuf,
        /// Where its content from before the patch is.
        kept: Option<PathBuf>,
    },
    /// A change that a diff cannot show, or not so that it can be applied.
    NotShown {
        /// The path as the diff spells it.
        path: PathBuf,
        /// Why.
        why: NotShown,
    },
}

impl Note {
    /// Returns the path that the note is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Unchanged { path }
            | Self::ThroughLink { path, .. }
            | Self::LinkBecameFile { path, .. }
            | Self::LinkReplaced { path }
            | Self::LinksFollowed { path, .. }
            | Self::LinksBroken { path, .. }
            | Self::LinksParted { path, .. }
            | Self::Ambiguous { path, .. }
            | Self::Loose { path, .. }
            | Self::AttributesLost { path, .. }
            | Self::InPlace { path } => Path::new(path),
            Self::LeftBehind { path }
            | Self::NotRestored { path, .. }
            | Self::NotShown { path, .. } => path,
            Self::Recovered { .. } | Self::NoJournal => Path::new(JOURNAL_NAME),
            Self::NoUndo { .. } => Path::new(""),
        }
    }
}

/// Why a diff does not show a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotShown {
    /// The content has NUL bytes.
    Binary,
    /// A diff knows regular files and links only.
    Special,
    /// The old content could not be read.
    Unreadable,
    /// The path does not lie below the directory that the diff starts from.
    Elsewhere,
}

/// Where the chunks of one operation landed.
#[derive(Debug, Clone, PartialEq)]
pub struct Landed {
    /// The index of the operation.
    pub operation: usize,
    /// The line of the operation's header.
    pub line: usize,
    /// The path as the patch spells it; of a move, the source.
    pub path: String,
    /// One entry for each chunk.
    pub landings: Vec<Landing>,
}

/// The outcome of a patch that was applied.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The summary lines, in patch order.
    pub changes: Vec<Change>,
    /// What the reader should know.
    pub notes: Vec<Note>,
    /// Where the chunks landed.
    pub landed: Vec<Landed>,
}
