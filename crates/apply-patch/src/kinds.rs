//! Stable names for programs: each is one lower-case word or several with hyphens.
//!
//! Sentences may be improved at any time; these names are part of the
//! interface (docs/report.md). They stand together so that nobody changes one
//! by the way, and a new variant does not compile until it has one.

use crate::edit::EditError;
use crate::failure::{Cause, FailureKind};
use crate::locate::{self, Difference, MatchKind};
use crate::report::{ChangeKind, NotShown, Note};
use crate::text::EncodingError;

impl ChangeKind {
    /// Returns the stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

impl MatchKind {
    /// Returns the stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::TrailingSpace => "trailing-space",
            Self::Indentation => "indentation",
            Self::Punctuation => "punctuation",
            Self::Normalisation => "normalisation",
        }
    }
}

impl Note {
    /// Returns the stable name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unchanged { .. } => "unchanged",
            Self::ThroughLink { .. } => "through-link",
            Self::LinkBecameFile { .. } => "link-became-file",
            Self::LinkReplaced { .. } => "link-replaced",
            Self::LinksFollowed { .. } => "hard-links-followed",
            Self::LinksBroken { .. } => "hard-links-broken",
            Self::LinksParted { .. } => "hard-links-parted",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Loose { .. } => "loose-match",
            Self::LeftBehind { .. } => "left-behind",
            Self::Recovered { .. } => "recovered",
            Self::NotRestored { .. } => "not-restored",
            Self::NoUndo { .. } => "no-undo",
            Self::NoJournal => "no-journal",
            Self::InPlace { .. } => "written-in-place",
            Self::AttributesLost { .. } => "attributes-lost",
            Self::NotShown { why, .. } => match why {
                NotShown::Binary => "binary-not-shown",
                NotShown::Special => "special-not-shown",
                NotShown::Unreadable => "unreadable-not-shown",
                NotShown::Elsewhere => "outside-directory",
            },
        }
    }
}

impl Cause {
    /// Returns the stable name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Os { .. } => "os-error",
            Self::Directory => "is-directory",
            Self::Special(_) => "special-file",
            Self::Outside { .. } => "outside-roots",
            Self::Protected { .. } => "protected",
            Self::TrailingSlash => "trailing-slash",
            Self::Nul => "nul-in-path",
            Self::Exists => "exists",
            Self::ParentIsFile => "parent-is-file",
            Self::Gone => "gone",
            Self::TargetTwice { .. } => "target-twice",
            Self::StillNeeded { .. } => "still-needed",
            Self::ParentRemoved { .. } => "parent-removed",
            Self::HardLinked { .. } => "hard-linked",
            Self::Dangling { .. } => "dangling-link",
            Self::OntoOwnTarget => "onto-own-target",
            Self::WouldLose { .. } => "would-lose-attributes",
            Self::Changed => "changed-meanwhile",
        }
    }
}

impl FailureKind {
    /// Returns the stable name: that of the cause, where there is one.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InvalidPath => "invalid-path",
            Self::Edit(EditError::Chunks(_)) => "no-match",
            Self::Edit(EditError::Encoding(error)) => error.name(),
            Self::Read(cause)
            | Self::Write(cause)
            | Self::CreateParents(cause)
            | Self::Delete(cause)
            | Self::RemoveOriginal(cause) => cause.name(),
        }
    }
}

impl EncodingError {
    /// Returns the stable name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::MalformedUtf16 => "malformed-utf16",
            Self::Utf32 => "utf32",
            Self::TooLarge { .. } => "too-large",
            Self::NonAsciiAddition { .. } => "unknown-encoding",
        }
    }
}

impl locate::FailureKind {
    /// Returns the stable name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::HeaderNotFound { .. } => "header-not-found",
            Self::Ambiguous { .. } => "ambiguous",
            Self::NotAtEnd { .. } => "not-at-end",
            Self::OutOfOrder { .. } => "out-of-order",
            Self::AlreadyApplied { .. } => "already-applied",
        }
    }
}

impl Difference {
    /// Returns the stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndOfFile => "end-of-file",
            Self::Tabs => "tabs",
            Self::Spaces => "spaces",
            Self::Quotes => "quotes",
            Self::Case => "case",
            Self::Text => "text",
        }
    }
}
