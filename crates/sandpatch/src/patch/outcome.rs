//! What came of a patch, before anybody has put it into words.

use apply_patch::failure::Failure;
use apply_patch::options::Options;
use apply_patch::report::Report;
use apply_patch::syntax::ParseError;
use apply_patch::syntax::ast::Patch;
use apply_patch::{ApplyError, Preview};
use safe_fs::Roots;

use crate::cli::Action;
use crate::exit::Exit;

/// What came of a patch.
#[derive(Debug)]
pub enum Outcome {
    /// It was applied.
    Applied(Report),
    /// It would apply; nothing was touched.
    Checked(Report),
    /// It would apply and change this; nothing was touched.
    Shown(Preview),
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
    /// Goes as far with a patch as is asked for.
    pub fn of(patch: &Patch<'_>, roots: &Roots, options: &Options, action: Action) -> Self {
        let done = match action {
            Action::Apply => apply_patch::apply(patch, roots, options).map(Self::Applied),
            Action::Check => apply_patch::check(patch, roots, options).map(Self::Checked),
            Action::Diff => apply_patch::preview(patch, roots, options).map(Self::Shown),
        };
        done.unwrap_or_else(Self::NotApplied)
    }

    /// Returns the report of a patch that applies.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Applied(report) | Self::Checked(report) => Some(report),
            Self::Shown(preview) => Some(&preview.report),
            Self::NotAPatch(_) | Self::NoSignalMask(_) | Self::NoRoots(_) | Self::NotApplied(_) => {
                None
            }
        }
    }

    /// Returns the exit code of `sandpatch apply`.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Applied(_) | Self::Checked(_) | Self::Shown(_) => Exit::Success,
            Self::NotApplied(ApplyError::Failed(failures))
                if failures.iter().any(Failure::is_policy) =>
            {
                Exit::Refused
            }
            Self::NotAPatch(_) | Self::NoSignalMask(_) | Self::NoRoots(_) | Self::NotApplied(_) => {
                Exit::DoesNotApply
            }
        }
    }
}
