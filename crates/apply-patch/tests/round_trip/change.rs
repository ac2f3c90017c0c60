//! The difference of two trees, and the patch for it.

use std::collections::BTreeSet;

use apply_patch::Options;
use proptest::prelude::*;
use proptest::sample::select;

use crate::Files;
use crate::content::{Content, Versions, text, versions};
use crate::writer::{Anchor, Style, chunks};

/// Where files are at first.
const NAMES: [&str; 6] = ["a", "b", "c", "d/e", "d/f", "n/o"];

/// Where nothing is at first, but for what is moved or added there.
const FRESH: [&str; 4] = ["p", "d/q", "r/s/t", "with space"];

/// What becomes of one file.
#[derive(Debug, Clone)]
struct Fate {
    /// Its name and content, unless the patch adds it.
    old: Option<(String, Content)>,
    /// Its name and content, unless the patch deletes it.
    new: Option<(String, Content)>,
}

/// Two trees, what became of each file, and how to say it.
#[derive(Debug, Clone)]
pub struct Change {
    fates: Vec<Fate>,
    style: Style,
    codex: bool,
    /// Whether paths are resolved without the kernel's help.
    pub walk: bool,
}

impl Change {
    /// Returns the way back.
    pub fn reversed(&self) -> Self {
        let reversed = |fate: &Fate| Fate {
            old: fate.new.clone(),
            new: fate.old.clone(),
        };
        let fates = self.fates.iter().map(reversed).collect();
        Self {
            fates,
            ..self.clone()
        }
    }

    /// Returns the old tree.
    pub fn old_files(&self) -> Files {
        let old = self.fates.iter().filter_map(|fate| fate.old.as_ref());
        old.map(|(name, content)| (name.clone(), content.bytes()))
            .collect()
    }

    /// Returns the new tree.
    pub fn new_files(&self) -> Files {
        self.reversed().old_files()
    }

    /// Returns the dialect; codex adds a final newline to what it touches, so it
    /// is for trees where none is missing.
    pub fn options(&self) -> Options {
        let sides = self.fates.iter().flat_map(|fate| [&fate.old, &fate.new]);
        let terminated = sides.flatten().all(|(_, content)| content.is_terminated());
        if self.codex && terminated {
            Options::codex()
        } else {
            Options::safe()
        }
    }

    /// Returns the patch: what goes first, so that its name is free for what comes.
    pub fn patch(&self) -> String {
        let mut text = String::from("*** Begin Patch\n");
        for fate in &self.fates {
            if let (Some((name, _)), None) = (&fate.old, &fate.new) {
                text += &format!("*** Delete File: {name}\n");
            }
        }
        for fate in &self.fates {
            if let (Some(old), Some(new)) = (&fate.old, &fate.new) {
                text += &self.update(old, new);
            }
        }
        for fate in &self.fates {
            if let (None, Some((name, content))) = (&fate.old, &fate.new) {
                text += &format!("*** Add File: {name}\n");
                text.extend(content.texts().map(|line| format!("+{line}\n")));
            }
        }
        text + "*** End Patch\n"
    }

    fn update(&self, old: &(String, Content), new: &(String, Content)) -> String {
        let chunks = chunks(&old.1, &new.1, self.style);
        let to = match old.0 == new.0 {
            true if chunks.is_empty() => return String::new(),
            true => String::new(),
            false => format!("*** Move to: {}\n", new.0),
        };
        format!("*** Update File: {}\n{to}{chunks}", old.0)
    }
}

/// What is wanted of one of the first files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Absent,
    Keep,
    Edit,
    Delete,
    Rename,
    RenameAndEdit,
}

fn wish() -> impl Strategy<Value = Wish> {
    use Wish::{Absent, Delete, Edit, Keep, Rename, RenameAndEdit};
    select(
        &[
            Absent,
            Keep,
            Edit,
            Edit,
            Edit,
            Delete,
            Rename,
            RenameAndEdit,
        ][..],
    )
}

fn style() -> impl Strategy<Value = Style> {
    let anchor = select(&[Anchor::Context, Anchor::EndOfFile, Anchor::Numbers][..]);
    (anchor, 1..4_usize, any::<bool>()).prop_map(|(anchor, context, says_no_newline)| Style {
        anchor,
        context,
        says_no_newline,
    })
}

/// A change of a tree.
pub fn change() -> impl Strategy<Value = Change> {
    let texts = || proptest::collection::vec(text(), 0..8);
    let file = (wish(), versions(), texts());
    let names: Vec<_> = NAMES.into_iter().chain(FRESH).collect();
    (
        proptest::collection::vec(file, NAMES.len()),
        Just(names).prop_shuffle(),
        proptest::collection::vec(texts(), 0..3),
        style(),
        any::<(bool, bool)>(),
    )
        .prop_map(|(files, names, added, style, (codex, walk))| {
            let fates = fates(files, &names, &added);
            Change {
                fates,
                style,
                codex,
                walk,
            }
        })
}

fn fates(
    files: Vec<(Wish, Versions, Vec<String>)>,
    names: &[&'static str],
    added: &[Vec<String>],
) -> Vec<Fate> {
    let stays = |wish: Wish| matches!(wish, Wish::Keep | Wish::Edit);
    let wishes = NAMES.iter().zip(&files);
    let taken: BTreeSet<_> = wishes
        .filter(|(_, file)| stays(file.0))
        .map(|(name, _)| *name)
        .collect();
    // Whatever is freed is there for moves and additions, in any order.
    let mut free = names
        .iter()
        .filter(|name| !taken.contains(*name))
        .map(|name| (*name).to_owned());
    let mut fates = Vec::new();
    for (name, (wish, Versions { old, new }, texts)) in NAMES.iter().zip(files) {
        let name = (*name).to_owned();
        let (old, new) = match wish {
            Wish::Absent => continue,
            Wish::Keep => (old.clone(), Some((name.clone(), old))),
            Wish::Edit => (old, Some((name.clone(), new))),
            Wish::Delete => (Content::plain(&texts), None),
            Wish::Rename => (old.clone(), free.next().map(|to| (to, old))),
            Wish::RenameAndEdit => (old, free.next().map(|to| (to, new))),
        };
        fates.push(Fate {
            old: Some((name, old)),
            new,
        });
    }
    let added = added.iter().zip(free).map(|(texts, name)| Fate {
        old: None,
        new: Some((name, Content::plain(texts))),
    });
    fates.extend(added);
    fates
}
