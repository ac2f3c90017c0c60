//! Finds the place of each chunk in a file.
//!
//! One loop over the ways of comparing serves bodies and headers alike: an
//! exact match further down beats a looser one above it (R63). What decides
//! between equal places, and what happens when nothing does, is in `ambiguity`.

mod ambiguity;
mod compare;
mod diagnosis;
mod failure;
mod index;
mod locator;
mod nearest;
mod numbers;
mod script;

pub use compare::MatchKind;
pub use failure::{Candidates, ChunkFailure, FailureKind};
pub use nearest::{Difference, Differing, Nearest};

pub(crate) use script::Script;

use crate::options::Options;
use crate::syntax::ast::Chunk;
use crate::text::Text;

/// Where a chunk goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement<'p, 'a> {
    /// The chunk, counted from 0.
    pub(crate) chunk: usize,
    /// The line, counted from 0, where its first line stands or is inserted.
    pub(crate) at: usize,
    /// How it was found.
    pub(crate) kind: MatchKind,
    /// What to do there.
    pub(crate) script: Script<'p, 'a>,
}

/// A chunk that fits several places, of which the first was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// The chunk, counted from 0.
    pub chunk: usize,
    /// The line of the patch where the chunk starts.
    pub line: usize,
    /// The places, of which the first was taken.
    pub candidates: Candidates,
}

/// Where all chunks of a file go, in patch order.
#[derive(Debug, Default)]
pub(crate) struct Located<'p, 'a> {
    pub(crate) placements: Vec<Placement<'p, 'a>>,
    pub(crate) ambiguities: Vec<Ambiguity>,
}

/// Finds all chunks, or reports every one that has no place.
pub(crate) fn locate<'p, 'a>(
    text: &Text<'_>,
    chunks: &'p [Chunk<'a>],
    options: &Options,
) -> Result<Located<'p, 'a>, Vec<ChunkFailure>> {
    locator::Locator::new(text, chunks, *options).run()
}
