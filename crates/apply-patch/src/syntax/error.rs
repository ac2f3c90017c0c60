//! What can be wrong with the text of a patch.
//!
//! The first line of a message is the reference's, because programs match on
//! it (R16); what a person needs beyond that is separate data.

use thiserror::Error;

use crate::text::visible;

/// Why a text is not a patch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Something is wrong with the patch as a whole.
    #[error("Invalid patch: {fault}")]
    Patch {
        /// What is wrong.
        fault: PatchFault,
        /// What the text looks like instead, when that can be told.
        hint: Option<Hint>,
        /// The outermost lines that arrived.
        arrived: Arrived,
    },
    /// One line is wrong.
    #[error("Invalid patch hunk on line {line}: {fault}")]
    Hunk {
        /// The line, counted from 1 at `*** Begin Patch` (R15).
        line: usize,
        /// What is wrong with it.
        fault: HunkFault,
        /// What was probably meant, when that can be told.
        hint: Option<Hint>,
    },
}

impl ParseError {
    /// Returns what the text looks like or what was probably meant.
    pub fn hint(&self) -> Option<&Hint> {
        match self {
            Self::Patch { hint, .. } | Self::Hunk { hint, .. } => hint.as_ref(),
        }
    }

    /// Returns the line at fault, when it is one line.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Patch { .. } => None,
            Self::Hunk { line, .. } => Some(*line),
        }
    }

    /// Returns the lines to print below the message: the hint, and what arrived.
    pub fn details(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.hint().map(ToString::to_string).into_iter().collect();
        if let Self::Patch { arrived, .. } = self {
            lines.extend(arrived.describe());
        }
        lines
    }

    pub(super) fn patch(fault: PatchFault) -> Self {
        Self::Patch {
            fault,
            hint: None,
            arrived: Arrived::default(),
        }
    }

    pub(super) fn hunk(line: usize, fault: HunkFault) -> Self {
        Self::Hunk {
            line,
            fault,
            hint: None,
        }
    }
}

/// What is wrong with a patch as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PatchFault {
    /// It does not begin with the begin marker.
    #[error("The first line of the patch must be '*** Begin Patch'")]
    FirstLine,
    /// It does not end with the end marker.
    #[error("The last line of the patch must be '*** End Patch'")]
    LastLine,
    /// The environment identifier is empty.
    #[error("apply_patch environment_id cannot be empty")]
    EnvironmentEmpty,
    /// There are two environment identifiers.
    #[error("apply_patch environment_id cannot be specified more than once")]
    EnvironmentTwice,
}

/// What is wrong with one line of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HunkFault {
    /// The line stands where a header is expected, and is none (R23).
    #[error(
        "'{line}' is not a valid hunk header. Valid hunk headers: '*** Add File: {{path}}', \
         '*** Delete File: {{path}}', '*** Update File: {{path}}'"
    )]
    NotAHeader {
        /// The line, without white space around it.
        line: String,
    },
    /// The line starts with nothing that a chunk line may start with (R53).
    #[error(
        "Unexpected line found in update hunk: '{line}'. Every line should start with ' ' \
         (context line), '+' (added line), or '-' (removed line)"
    )]
    UnexpectedLine {
        /// The line as it is.
        line: String,
    },
    /// The line follows a chunk, and does not open another (R53).
    #[error("Expected update hunk to start with a @@ context marker, got: '{line}'")]
    ExpectedChunk {
        /// The line as it is.
        line: String,
    },
    /// A chunk has no body (R55).
    #[error("Update hunk does not contain any lines")]
    NoLines,
    /// An update has neither chunks nor a new name (R56).
    #[error("Update file hunk for path '{path}' is empty")]
    EmptyUpdate {
        /// The path of the update.
        path: String,
    },
}

/// What a text looks like that is not a patch, or what a line was meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Hint {
    /// There is nothing in it.
    #[error("the patch is empty")]
    Empty,
    /// It is JSON with the patch in a string.
    #[error("the text is JSON: pass the patch itself, not the JSON object or string around it")]
    JsonWrapped,
    /// It is a unified diff.
    #[error(
        "the text is a unified diff: write '*** Begin Patch', then '*** Update File: PATH' and \
         '@@' chunks, then '*** End Patch'; or use git apply"
    )]
    UnifiedDiff,
    /// It stops before the end marker.
    #[error("the patch stops before '*** End Patch': it was probably cut off; nothing was done")]
    Truncated,
    /// It has a Markdown fence that does not enclose exactly one patch.
    #[error("the ``` fence does not enclose exactly one patch: pass only the patch")]
    Fence,
    /// It has a heredoc that does not enclose exactly one patch.
    #[error(
        "the heredoc (apply_patch <<'EOF' ... EOF) does not enclose exactly one patch, or its \
         last line is not the tag"
    )]
    Heredoc,
    /// Text stands before the begin marker.
    #[error("'*** Begin Patch' is on line {line}: remove the text before it")]
    TextBefore {
        /// The line of the begin marker.
        line: usize,
    },
    /// Text stands after the end marker.
    #[error(
        "text follows '*** End Patch' on line {line}: remove it, or put all operations into one \
         patch"
    )]
    TextAfter {
        /// The first line after the end marker that is not blank.
        line: usize,
    },
    /// An empty line stands among the lines of an Add section.
    #[error("an empty line of a new file is written as a lone '+'")]
    LonePlus,
}

/// The outermost lines of a text that is not a patch, cut to a readable length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrived {
    /// The first line.
    pub first: String,
    /// The last line.
    pub last: String,
}

impl Arrived {
    const LONGEST: usize = 120;

    pub(super) fn of(first: &str, last: &str) -> Self {
        let cut = |line: &str| line.chars().take(Self::LONGEST).collect();
        Self {
            first: cut(first),
            last: cut(last),
        }
    }

    fn describe(&self) -> Vec<String> {
        if self.first.is_empty() && self.last.is_empty() {
            return Vec::new();
        }
        vec![
            format!("the first line that arrived: {}", visible(&self.first)),
            format!("the last line that arrived: {}", visible(&self.last)),
        ]
    }
}
