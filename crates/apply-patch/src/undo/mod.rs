//! Taking an applied patch back: what it replaced is recorded while it is at
//! hand, and put back as one more transaction, if nobody changed it since.
//!
//! A record is written by the confined stage, and read by a confined stage
//! again: it is data like a patch is, and every path in it is resolved beneath
//! the roots.

pub(crate) mod capture;
mod kept;
pub(crate) mod plan;
mod record;

pub use record::{MOST_RECORD_BYTES, RecordError, Recorded};
