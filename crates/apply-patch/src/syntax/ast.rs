//! What a patch says, before anything is known about the files it names.
//!
//! The tree borrows its text from the patch: a patch may be as large as the
//! files it makes, and nothing here needs a copy of it.

/// A parsed patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch<'a> {
    /// The operations, in the order of the patch.
    pub operations: Vec<Operation<'a>>,
    /// The value of an `*** Environment ID:` line, which the engine ignores (R24).
    pub environment_id: Option<&'a str>,
}

/// One `*** Add|Delete|Update File:` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The path as it is written, without trailing white space (R22).
    pub path: &'a str,
    /// The line of the header, counted from 1 at `*** Begin Patch` (R15).
    pub line: usize,
    /// What is to happen to the path.
    pub body: Body<'a>,
}

/// What an operation does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// Makes a file of these lines, each of which ends in LF (R30).
    Add {
        /// The lines without their `+` and without a line end.
        lines: Vec<&'a str>,
    },
    /// Removes the path (R40).
    Delete,
    /// Edits the file, then moves it when `move_to` is given (R50).
    Update {
        /// The destination of a `*** Move to:` line.
        move_to: Option<MoveTo<'a>>,
        /// The chunks in patch order; empty only for a pure rename.
        chunks: Vec<Chunk<'a>>,
    },
}

/// The destination of an update that also moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveTo<'a> {
    /// The path as it is written.
    pub path: &'a str,
    /// The line of the `*** Move to:` marker.
    pub line: usize,
}

/// One place to edit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk<'a> {
    /// The line where the chunk starts (its `@@`, or its first body line).
    pub line: usize,
    /// The texts of its `@@ H` lines, outermost first; each narrows the place.
    pub headers: Vec<&'a str>,
    /// The numbers of a unified-diff `@@ -a,b +c,d @@` header, a hint only.
    pub hint: Option<LineHint<'a>>,
    /// The body.
    pub lines: Vec<ChunkLine<'a>>,
    /// Whether `*** End of File` follows the body (R58).
    pub end_of_file: bool,
    /// Number of trailing blank context lines that were completely empty in
    /// the patch: they may be separators, and never steer a match.
    pub blank_tail_lines: usize,
    /// Which sides a `\ No newline at end of file` line was said of.
    pub no_newline: NoNewline,
}

/// Where a unified diff says that a chunk belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineHint<'a> {
    /// The header as it is written, which may after all be a line of the file.
    pub raw: &'a str,
    /// First line of the old text, counted from 1; 0 when it has no lines.
    pub old_start: usize,
    /// Number of lines of the old text.
    pub old_lines: usize,
}

/// Which sides of a chunk lack a final newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoNewline {
    /// The old text ends without one.
    pub old: bool,
    /// The new text ends without one.
    pub new: bool,
}

/// One body line of a chunk, without its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkLine<'a> {
    /// Must be there, and stays.
    Context(&'a str),
    /// Must be there, and goes.
    Remove(&'a str),
    /// Comes.
    Add(&'a str),
}
