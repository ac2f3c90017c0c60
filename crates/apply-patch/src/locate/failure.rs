//! Why a chunk has no place, in the reference's words and in ours.

use super::nearest::Nearest;

/// A chunk that could not be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkFailure {
    /// The chunk within its operation, counted from 0.
    pub chunk: usize,
    /// The line of the patch where the chunk starts.
    pub line: usize,
    /// What is wrong.
    pub kind: FailureKind,
    /// The place of the file that is most like what was expected.
    pub nearest: Option<Box<Nearest>>,
}

/// What is wrong with a chunk; lines of the file count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureKind {
    /// The lines are nowhere at or after the place where the search starts.
    NotFound {
        /// The context and removed lines.
        expected: Vec<String>,
    },
    /// The line of an `@@ H` header is nowhere at or after that place.
    HeaderNotFound {
        /// The header.
        header: String,
    },
    /// The lines fit several places equally well.
    Ambiguous {
        /// The context and removed lines.
        expected: Vec<String>,
        /// The places.
        candidates: Candidates,
    },
    /// The chunk must stand at the end of the file, and does not.
    NotAtEnd {
        /// The context and removed lines.
        expected: Vec<String>,
        /// Where the lines stand instead.
        found: Option<usize>,
    },
    /// The lines stand above an earlier chunk, or were changed by it.
    OutOfOrder {
        /// The context and removed lines.
        expected: Vec<String>,
        /// Where they stand.
        found: usize,
        /// Where the search started.
        from: usize,
    },
    /// The lines are not there, and the lines that would replace them are.
    AlreadyApplied {
        /// The context and removed lines.
        expected: Vec<String>,
        /// Where the result stands.
        found: usize,
    },
}

/// The places that a chunk fits; lines of the file count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// The first lines of the first places.
    pub lines: Vec<usize>,
    /// Whether there are more than are listed.
    pub more: bool,
}

impl std::fmt::Display for Candidates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, line) in self.lines.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{line}")?;
        }
        if self.more {
            f.write_str(" and more")
        } else {
            Ok(())
        }
    }
}

impl ChunkFailure {
    /// Returns the message, which begins as the reference's does (R61, R62).
    pub fn message(&self, path: &str) -> String {
        match &self.kind {
            FailureKind::HeaderNotFound { header } => {
                format!("Failed to find context '{header}' in {path}")
            }
            FailureKind::Ambiguous {
                expected,
                candidates,
            } => format!(
                "Found expected lines in several places in {path} (lines {candidates}):\n{}",
                expected.join("\n")
            ),
            FailureKind::NotFound { expected }
            | FailureKind::NotAtEnd { expected, .. }
            | FailureKind::OutOfOrder { expected, .. }
            | FailureKind::AlreadyApplied { expected, .. } => {
                format!(
                    "Failed to find expected lines in {path}:\n{}",
                    expected.join("\n")
                )
            }
        }
    }

    /// Returns the lines to print below the message: which chunk, why, and where to look.
    pub fn details(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "chunk {} (line {} of the patch)",
            self.chunk + 1,
            self.line
        )];
        lines.extend(self.cause());
        if let Some(nearest) = &self.nearest {
            lines.extend(nearest.describe());
        }
        lines
    }

    fn cause(&self) -> Option<String> {
        Some(match &self.kind {
            FailureKind::NotFound { .. } => return None,
            FailureKind::HeaderNotFound { .. } => {
                "an '@@' header must be a whole line of the file, at or after the chunk before it"
                    .to_owned()
            }
            FailureKind::Ambiguous { .. } => {
                "add context lines or an '@@' header that only one of the places has".to_owned()
            }
            FailureKind::NotAtEnd {
                found: Some(line), ..
            } => format!(
                "the chunk is marked as the end of the file, but its lines are at line {line}: \
                 remove '*** End of File' or add the lines that follow"
            ),
            FailureKind::NotAtEnd { found: None, .. } => {
                "the chunk is marked as the end of the file".to_owned()
            }
            FailureKind::OutOfOrder { found, from, .. } => format!(
                "the lines are at line {found}, above line {from} where the search for this chunk \
                 starts: chunks must follow the order of the file and must not overlap"
            ),
            FailureKind::AlreadyApplied { found, .. } => {
                format!("the change seems to be already applied: its result is at line {found}")
            }
        })
    }
}
