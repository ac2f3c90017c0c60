//! The switches in which the two dialects differ, as one value.

pub use safe_fs::Durability;

/// What to do when an Add or a Move meets an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// The patch does not apply.
    Refuse,
    /// The file is replaced, and reported as modified.
    Replace,
}

/// What to do when a chunk fits several places equally well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnAmbiguous {
    /// The patch does not apply; the candidates are listed.
    Refuse,
    /// The first place is taken, with a warning (R62).
    First,
}

/// What becomes of a last line without a line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalNewline {
    /// The file keeps what it had.
    Keep,
    /// One is added, as the neighbouring line ends (R72).
    Add,
}

/// What an `@@ H @@` header means that closes as a unified diff's does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedHeader {
    /// The line `H @@`, as the reference reads it (R51).
    Literal,
    /// The line `H @@`, or `H` when the file has no such line.
    Lenient,
}

/// What to do with the other names of a file that has several hard links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkedFiles {
    /// Names inside the roots move to the new content.
    Follow,
    /// Only the named path changes.
    Break,
    /// The patch does not apply.
    Refuse,
}

/// How an update that changes nothing is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchanged {
    /// As a note, and not in the summary.
    Note,
    /// As `M`, as the reference does (R74).
    Modified,
}

/// Everything in which one run of the engine can differ from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Add or Move onto an existing file.
    pub on_existing: OnExisting,
    /// A chunk that fits several places.
    pub on_ambiguous: OnAmbiguous,
    /// An `@@ H @@` header.
    pub closed_header: ClosedHeader,
    /// A last line without a line end.
    pub final_newline: FinalNewline,
    /// Other names of a hard-linked file.
    pub linked_files: LinkedFiles,
    /// An update that changes nothing.
    pub unchanged: Unchanged,
    /// What has to have reached the disk before a patch counts as applied.
    pub durability: Durability,
}

impl Options {
    /// Returns the switches of the safe dialect: what could lose or misplace something is refused.
    pub const fn safe() -> Self {
        Self {
            on_existing: OnExisting::Refuse,
            on_ambiguous: OnAmbiguous::Refuse,
            closed_header: ClosedHeader::Lenient,
            final_newline: FinalNewline::Keep,
            linked_files: LinkedFiles::Follow,
            unchanged: Unchanged::Note,
            durability: Durability::Process,
        }
    }

    /// Returns the switches of the codex dialect: results as the reference tool's wherever nothing is lost.
    pub const fn codex() -> Self {
        Self {
            on_existing: OnExisting::Replace,
            on_ambiguous: OnAmbiguous::First,
            closed_header: ClosedHeader::Literal,
            final_newline: FinalNewline::Add,
            linked_files: LinkedFiles::Follow,
            unchanged: Unchanged::Modified,
            durability: Durability::Process,
        }
    }
}
