//! What decides between places that fit equally well.
//!
//! Chunks follow the order of the file, so a later chunk that stands in one
//! place only bounds every chunk before it. What more than one place is left
//! for is a question that only the writer of the patch can answer.

use super::Ambiguity;
use super::failure::{Candidates, ChunkFailure};
use super::locator::{Locator, Wanted};
use super::script::Script;
use crate::options::OnAmbiguous;

impl<'t, 'a: 't> Locator<'t, '_, 'a> {
    /// How many places a message lists.
    pub(super) const LISTED: usize = 10;

    /// Takes the first place, unless others fit as well and that is refused.
    pub(super) fn decide(
        &mut self,
        number: usize,
        length: usize,
        found: &[usize],
    ) -> Result<usize, ChunkFailure> {
        let first = found.first().copied().unwrap_or_default();
        if found.len() < 2 {
            return Ok(first);
        }
        let bound = self.bound(number, first + length);
        let fits: Vec<usize> = found
            .iter()
            .copied()
            .take_while(|at| at + length <= bound)
            .map(|at| at + 1)
            .collect();
        if fits.len() < 2 {
            return Ok(first);
        }
        let more = fits.len() > Self::LISTED;
        let lines = fits.into_iter().take(Self::LISTED).collect();
        let candidates = Candidates { lines, more };
        match self.options.on_ambiguous {
            OnAmbiguous::Refuse => Err(self.ambiguous(number, candidates)),
            OnAmbiguous::First => {
                let line = self.chunks[number].line;
                self.ambiguities.push(Ambiguity {
                    chunk: number,
                    line,
                    candidates,
                });
                Ok(first)
            }
        }
    }

    /// Returns the place of the next chunk that stands in one place only.
    fn bound(&mut self, number: usize, from: usize) -> usize {
        let unique = match self.unique.take() {
            Some(known) => known,
            None => self.unique_places(),
        };
        let later = unique.partition_point(|(chunk, _)| *chunk <= number);
        let bound = unique[later..]
            .iter()
            .map(|(_, at)| *at)
            .find(|at| *at >= from);
        self.unique = Some(unique);
        bound.unwrap_or(usize::MAX)
    }

    fn unique_places(&mut self) -> Vec<(usize, usize)> {
        let chunks = self.chunks;
        let mut unique = Vec::new();
        for (number, chunk) in chunks.iter().enumerate() {
            let (lines, asked) = match chunk.headers.first() {
                Some(header) => (vec![header.as_bytes()], None),
                None => (Script::without_separators(chunk).pattern(), Some(number)),
            };
            let wanted = Wanted {
                from: 0,
                limit: 2,
                near: None,
                chunk: asked,
            };
            if let Some((_, places)) = self.search(&lines, wanted)
                && let [place] = places[..]
            {
                unique.push((number, place));
            }
        }
        unique
    }
}
