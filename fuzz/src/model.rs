//! A patch, done one operation after the other on a tree in memory.
//!
//! The model knows nothing of slots, net effects or their order. It refuses
//! what the rules refuse (docs/compatibility.md, "Moves"), and says so on its own.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use apply_patch::options::OnExisting;
use apply_patch::syntax::ast::{Body, Chunk, Operation, Patch};
use apply_patch::{Options, edit};

use crate::tree::{Place, Tree, above};

/// The files while a patch is being done.
pub struct Model<'a> {
    start: &'a Tree,
    patch: &'a Patch<'a>,
    options: &'a Options,
    now: Tree,
    /// Every directory that was there or has been made; none ever goes.
    directories: BTreeSet<Place>,
    /// Where moves have put files that are still there.
    moved_to: BTreeSet<Place>,
    /// What a later move takes along although its place is taken already.
    held: BTreeMap<usize, Rc<Vec<u8>>>,
}

impl<'a> Model<'a> {
    /// Does a whole patch; `None` when any of its operations is refused.
    pub fn run(start: &'a Tree, patch: &'a Patch<'a>, options: &'a Options) -> Option<Tree> {
        let mut model = Self {
            start,
            patch,
            options,
            now: start.clone(),
            directories: start.directories(),
            moved_to: BTreeSet::new(),
            held: BTreeMap::new(),
        };
        for (index, operation) in patch.operations.iter().enumerate() {
            model.step(index, operation)?;
        }
        Some(model.now)
    }

    fn step(&mut self, index: usize, operation: &Operation<'_>) -> Option<()> {
        let place = self.start.resolve(operation.path)?;
        match &operation.body {
            Body::Add { lines } => {
                let lines = lines.iter().flat_map(|line| [line, "\n"]);
                self.add(place, lines.collect::<String>().into_bytes())
            }
            Body::Delete => {
                self.moved_to.remove(&place);
                self.now.files.remove(&place).map(drop)
            }
            Body::Update {
                move_to: None,
                chunks,
            } => self.update(place, chunks),
            Body::Update {
                move_to: Some(to),
                chunks,
            } => {
                let to = self.start.resolve(to.path)?;
                self.relocate(index, place, to, chunks)
            }
        }
    }

    fn add(&mut self, place: Place, content: Vec<u8>) -> Option<()> {
        let replaces = self.options.on_existing == OnExisting::Replace;
        let there = self.now.files.contains_key(&place);
        if there && (!replaces || self.moved_to.contains(&place)) {
            return None;
        }
        self.put(place, Rc::new(content))
    }

    fn update(&mut self, place: Place, chunks: &[Chunk<'_>]) -> Option<()> {
        let old = self.now.files.get(&place)?;
        let new = edit(old, chunks, self.options).ok()?.bytes;
        self.now.files.insert(place, Rc::new(new));
        Some(())
    }

    fn relocate(
        &mut self,
        index: usize,
        from: Place,
        to: Place,
        chunks: &[Chunk<'_>],
    ) -> Option<()> {
        let held = self.held.remove(&index);
        if from == to && held.is_none() {
            return self.update(from, chunks);
        }
        let old = held.as_ref().or(self.now.files.get(&from)).cloned()?;
        let new = match chunks {
            [] => old,
            chunks => Rc::new(edit(&old, chunks, self.options).ok()?.bytes),
        };
        if let Some(there) = self.now.files.get(&to).cloned() {
            self.make_way(index, &to, there)?;
        }
        if above(&to).any(|parent| self.now.files.contains_key(&parent)) {
            return None;
        }
        if held.is_none() {
            self.now.files.remove(&from);
            self.moved_to.remove(&from);
        }
        self.put(to.clone(), new)?;
        self.moved_to.insert(to);
        Some(())
    }

    /// A move may take the place of a file that a later move takes elsewhere;
    /// any other only where replacing is allowed.
    fn make_way(&mut self, index: usize, to: &Place, there: Rc<Vec<u8>>) -> Option<()> {
        if self.moved_to.contains(to) {
            return None;
        }
        let later = self.patch.operations.iter().enumerate().skip(index + 1);
        let needs = |operation: &Operation<'_>| {
            !matches!(operation.body, Body::Add { .. })
                && self.start.resolve(operation.path).as_ref() == Some(to)
        };
        match later.into_iter().find(|(_, operation)| needs(operation)) {
            Some((
                next,
                Operation {
                    body:
                        Body::Update {
                            move_to: Some(away),
                            ..
                        },
                    ..
                },
            )) if self
                .start
                .resolve(away.path)
                .is_some_and(|place| place != *to) =>
            {
                self.held.insert(next, there);
                Some(())
            }
            Some(_) => None,
            None => (self.options.on_existing == OnExisting::Replace).then_some(()),
        }
    }

    /// Puts a file at a place, unless a directory is there or a parent is a file.
    fn put(&mut self, place: Place, content: Rc<Vec<u8>>) -> Option<()> {
        if self.directories.contains(&place)
            || above(&place).any(|parent| self.now.files.contains_key(&parent))
        {
            return None;
        }
        self.directories.extend(above(&place));
        self.now.files.insert(place, content);
        Some(())
    }
}
