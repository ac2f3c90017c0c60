//! The patch grammar: text in, operations out.
//!
//! One line-event machine reads every patch. [`parse`] opens the envelope,
//! feeds the machine all lines and finishes; a caller that receives a patch
//! piecemeal feeds the same machine itself.

pub mod ast;
mod envelope;
mod error;
mod marker;
mod parser;
mod update;

pub use envelope::Wrapper;
pub use error::{Arrived, Hint, HunkFault, ParseError, PatchFault};
pub use parser::Parser;

use ast::Patch;

/// A patch, and what stood around it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parsed<'a> {
    /// The patch itself.
    pub patch: Patch<'a>,
    /// What was taken off before the patch was read, outermost first.
    pub unwrapped: Vec<Wrapper<'a>>,
}

/// Parses a whole patch, with whatever envelope it came in.
pub fn parse(text: &str) -> Result<Parsed<'_>, ParseError> {
    let envelope = envelope::open(text)?;
    let mut parser = Parser::new();
    for line in envelope.lines() {
        parser.feed(line).map_err(|error| envelope.explain(error))?;
    }
    let patch = parser.finish().map_err(|error| envelope.explain(error))?;
    Ok(Parsed {
        patch,
        unwrapped: envelope.wrappers,
    })
}
