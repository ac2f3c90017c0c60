//! The other names of a hard-linked file.
//!
//! A new inode takes one name; the others follow or keep the old content, and
//! the reader is told. A preview must tell the same, so the search stands alone.

use safe_fs::{Location, Roots};

use super::observe::{Observed, place_key};
use crate::options::{LinkedFiles, Options};
use crate::plan::Effect;
use crate::plan::snapshot::{SlotId, SlotState};
use crate::report::Note;

/// How many directory entries the search for a file's other names may look at.
const LINK_SEARCH_ENTRIES: usize = 200_000;

/// The names of one file beside the one that is written.
#[derive(Default)]
pub struct OtherNames {
    /// Those that follow.
    pub found: Vec<Location>,
    /// How many keep the old content.
    pub left: u64,
}

impl OtherNames {
    /// Returns what the reader should know of them; `path` is as the patch spells it.
    pub fn notes(&self, path: &str) -> Vec<Note> {
        let mut notes = Vec::new();
        if !self.found.is_empty() {
            notes.push(Note::LinksFollowed {
                path: path.to_owned(),
                others: self.found.len(),
            });
        }
        if self.left > 0 {
            notes.push(Note::LinksBroken {
                path: path.to_owned(),
                others: self.left,
            });
        }
        notes
    }
}

/// Finds the names inside the roots that share the file at `slot` and stay.
///
/// A name that another effect removes or fills has nothing to follow: it must
/// still be the file that was seen when its turn comes.
pub fn other_names(
    observed: &Observed,
    roots: &Roots,
    options: &Options,
    effects: &[Effect],
    slot: SlotId,
) -> Result<OtherNames, safe_fs::Error> {
    let (SlotState::File(file), Some(pinned)) =
        (&observed.snapshot().slot(slot).state, observed.pinned(slot))
    else {
        return Ok(OtherNames::default());
    };
    if file.links < 2 {
        return Ok(OtherNames::default());
    }
    let mut found = match options.linked_files {
        LinkedFiles::Follow => {
            roots
                .find_links(pinned.id(), file.links, LINK_SEARCH_ENTRIES)?
                .found
        }
        LinkedFiles::Break | LinkedFiles::Refuse => Vec::new(),
    };
    let own = observed.location(slot).key();
    let snapshot = observed.snapshot();
    let goes = |slot: &SlotId| has_own_effect(effects, *slot);
    found.retain(|other| {
        let known = snapshot.find(&place_key(other));
        other.key() != own && !known.is_some_and(|slot| goes(&slot))
    });
    let gone = snapshot
        .other_names(slot)
        .iter()
        .filter(|it| goes(it))
        .count();
    let followed_or_gone = 1 + found.len() as u64 + gone as u64;
    let left = file.links.saturating_sub(followed_or_gone);
    Ok(OtherNames { found, left })
}

/// Tells whether an effect takes the old file away from a name, unless it is renamed before that.
fn has_own_effect(effects: &[Effect], place: SlotId) -> bool {
    let renamed = |it: &Effect| matches!(it, Effect::Rename { from, .. } if *from == place);
    let own = |it: &Effect| matches!(it, Effect::Remove { slot, .. } | Effect::Write { slot, .. } if *slot == place);
    effects.iter().any(own) && !effects.iter().any(renamed)
}
