//! Why a chunk has no place: what is said when a search has failed.
//!
//! None of this runs while a patch applies, and it is bounded when one fails
//! with thousands of chunks.

use super::compare::MatchKind;
use super::failure::{Candidates, ChunkFailure, FailureKind};
use super::index::Index;
use super::locator::{Locator, Wanted};
use super::nearest::nearest;
use super::script::Script;
use crate::text::Text;

/// How many failing chunks get more than the plain fact.
const DIAGNOSED: usize = 20;

impl<'t, 'a: 't> Locator<'t, '_, 'a> {
    fn fail(&self, number: usize, kind: FailureKind) -> ChunkFailure {
        let line = self.chunks[number].line;
        ChunkFailure {
            chunk: number,
            line,
            kind,
            nearest: None,
        }
    }

    pub(super) fn ambiguous(&self, number: usize, candidates: Candidates) -> ChunkFailure {
        let expected = self.expectation(number);
        self.fail(
            number,
            FailureKind::Ambiguous {
                expected,
                candidates,
            },
        )
    }

    pub(super) fn header_not_found(
        &mut self,
        number: usize,
        header: &'a str,
        from: usize,
    ) -> ChunkFailure {
        let kind = FailureKind::HeaderNotFound {
            header: header.to_owned(),
        };
        let mut failure = self.fail(number, kind);
        if self.failures.len() < DIAGNOSED {
            let text = self.text;
            let index = self.index(MatchKind::Indentation);
            failure.nearest = nearest(text, index, &[header.as_bytes()], from);
        }
        failure
    }

    pub(super) fn not_at_end(&mut self, number: usize, from: usize) -> ChunkFailure {
        let pattern = Script::without_separators(&self.chunks[number]).pattern();
        let wanted = Wanted {
            from,
            limit: 1,
            near: None,
            chunk: Some(number),
        };
        let Some((_, found)) = self.search(&pattern, wanted) else {
            return self.not_found(number, from);
        };
        let expected = self.expectation(number);
        let found = found.first().map(|at| at + 1);
        self.fail(number, FailureKind::NotAtEnd { expected, found })
    }

    pub(super) fn not_found(&mut self, number: usize, from: usize) -> ChunkFailure {
        let expected = self.expectation(number);
        if self.failures.len() >= DIAGNOSED {
            return self.fail(number, FailureKind::NotFound { expected });
        }
        let script = Script::without_separators(&self.chunks[number]);
        let pattern = script.pattern();
        let earlier = Wanted {
            from: 0,
            limit: 1,
            near: None,
            chunk: Some(number),
        };
        if let Some(at) = self
            .search(&pattern, earlier)
            .and_then(|(_, at)| at.first().copied())
        {
            let kind = FailureKind::OutOfOrder {
                expected,
                found: at + 1,
                from: from + 1,
            };
            return self.fail(number, kind);
        }
        if let Some(at) = script
            .result()
            .and_then(|result| applied(self.text, &result))
        {
            return self.fail(
                number,
                FailureKind::AlreadyApplied {
                    expected,
                    found: at + 1,
                },
            );
        }
        let mut failure = self.fail(number, FailureKind::NotFound { expected });
        let text = self.text;
        let index = self.index(MatchKind::Indentation);
        failure.nearest = nearest(text, index, &pattern, from);
        failure
    }

    /// Returns all lines that the chunk expects, as the reference prints them.
    fn expectation(&self, number: usize) -> Vec<String> {
        let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        Script::whole(&self.chunks[number])
            .pattern()
            .into_iter()
            .map(text)
            .collect()
    }
}

/// Finds the result of a chunk in a file where the chunk does not apply.
fn applied(text: &Text<'_>, result: &[&[u8]]) -> Option<usize> {
    let index = Index::build(MatchKind::Exact, text, result);
    let pattern = index.pattern(result)?;
    index.find(&pattern, 0, 1).first().copied()
}
