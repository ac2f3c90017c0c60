//! What came of a patch, before anybody has put it into words.

use apply_patch::failure::Failure;
use apply_patch::report::Report;
use apply_patch::syntax::ParseError;
use apply_patch::undo::RecordError;
use apply_patch::{ApplyError, Preview, UndoError};

use crate::exit::Exit;
use crate::undo::Refusal;

/// What came of a patch.
#[derive(Debug)]
pub enum Outcome {
    /// It was applied.
    Applied(Report),
    /// It would apply; nothing was touched.
    Checked(Report),
    /// It would apply and change this; nothing was touched.
    Shown(Preview),
    /// It was taken back.
    Undone(Report),
    /// What an interrupted patch began has ended, if the report says that there was one.
    Recovered(Report),
    /// Nothing was to be taken back, or not this.
    NothingTaken(Refusal),
    /// It was not taken back.
    NotUndone(UndoError),
    /// The bytes are no record of a patch.
    NotARecord(RecordError),
    /// The text is no patch.
    NotAPatch(ParseError),
    /// Signals could not be held back.
    NoSignalMask(std::io::Error),
    /// The writable roots could not be opened.
    NoRoots(safe_fs::Error),
    /// It does not apply.
    NotApplied(ApplyError),
}

impl Outcome {
    /// Returns the report of what was done, or would be.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Applied(report)
            | Self::Checked(report)
            | Self::Undone(report)
            | Self::Recovered(report) => Some(report),
            Self::Shown(preview) => Some(&preview.report),
            _ => None,
        }
    }

    /// Returns the exit code of `sandpatch apply` and `sandpatch undo`.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Applied(_)
            | Self::Checked(_)
            | Self::Shown(_)
            | Self::Undone(_)
            | Self::Recovered(_) => Exit::Success,
            Self::NotApplied(ApplyError::Failed(failures))
                if failures.iter().any(Failure::is_policy) =>
            {
                Exit::Refused
            }
            Self::NotAPatch(_)
            | Self::NotARecord(_)
            | Self::NothingTaken(_)
            | Self::NoSignalMask(_)
            | Self::NoRoots(_)
            | Self::NotUndone(_)
            | Self::NotApplied(_) => Exit::DoesNotApply,
        }
    }
}
