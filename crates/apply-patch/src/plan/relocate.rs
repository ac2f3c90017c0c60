//! An update with a `*** Move to:` line: what goes along, and what must make way.

use std::rc::Rc;

use super::operation::{Planner, file};
use super::overlay::{Content, Now};
use super::refusal::{Refusal, destination, refuse};
use super::snapshot::SlotId;
use crate::failure::{Cause, FailureKind};
use crate::options::OnExisting;
use crate::report::{ChangeKind, Note};
use crate::syntax::ast::{Body, Chunk, MoveTo, Operation};

/// A file that an update starts from.
struct Source {
    /// The place that the path names.
    named: SlotId,
    /// What is there, or was when a swap began.
    now: Now,
    /// Whether the place holds another operation's result by now.
    held: bool,
}

impl Planner<'_, '_> {
    /// An update with a `*** Move to:` line.
    pub(super) fn relocate(
        &mut self,
        index: usize,
        op: &Operation<'_>,
        to: MoveTo<'_>,
        chunks: &[Chunk<'_>],
    ) -> Result<(), Refusal> {
        let source = self.source(index, op)?;
        let target_path = self.path(to.path)?;
        let write = refuse(to.path, target_path, FailureKind::Write);
        let target = destination(to.path, target_path)?;
        if target == source.named && !source.held {
            return self.update(
                index,
                &Operation {
                    path: to.path,
                    ..op.clone()
                },
                chunks,
            );
        }
        let moved = self.moved(index, op, &source, chunks)?;
        if self.leads_to(&moved, target) {
            return Err(write(Cause::OntoOwnTarget));
        }
        self.check_links(target_path).map_err(&write)?;
        self.overlay.check_parents(target).map_err(&write)?;
        self.make_way(index, target).map_err(&write)?;
        self.note_replaced(target, to, &source);
        let moved = self.detached(op, target, moved)?;
        self.note_move(target, to, &source, &moved);
        if !source.held {
            if matches!(source.now, Now::Link(_)) {
                let path = self.path(op.path)?.absolute.clone();
                self.removed_links.push((path, op.line));
            }
            self.take(index, source.named, op.line);
        }
        self.put(index, target, moved);
        self.overlay.mark_written(target, op.line);
        self.change(ChangeKind::Modified, to.path);
        Ok(())
    }

    fn source(&mut self, index: usize, op: &Operation<'_>) -> Result<Source, Refusal> {
        let path = self.path(op.path)?;
        let read = refuse(op.path, path, FailureKind::Read);
        let named = path.slot.clone().map_err(&read)?;
        self.check_links(path).map_err(&read)?;
        let held = self.held.remove(&index);
        let (now, held) = match held {
            Some(now) => (now, true),
            None => (self.overlay.get(named), false),
        };
        Ok(Source { named, now, held })
    }

    /// Computes what a move puts at its destination.
    fn moved(
        &mut self,
        index: usize,
        op: &Operation<'_>,
        source: &Source,
        chunks: &[Chunk<'_>],
    ) -> Result<Now, Refusal> {
        let path = self.path(op.path)?;
        let read = refuse(op.path, path, FailureKind::Read);
        let now = match (&source.now, chunks) {
            (Now::Link(_), []) => return Ok(source.now.clone()),
            (Now::Link(link), _) => {
                let target = self.overlay.snapshot().edited(*link).map_err(&read)?;
                self.overlay.get(target)
            }
            (now, _) => now.clone(),
        };
        let (content, attributes) = file(now).map_err(&read)?;
        if chunks.is_empty() {
            return Ok(Now::File {
                content,
                attributes,
            });
        }
        let edited = self.edit(index, op, path, &content, chunks)?;
        let through_link = matches!(source.now, Now::Link(_));
        let content = match (edited, content) {
            (Some(bytes), _) => bytes,
            (None, Content::Original(slot)) if through_link => {
                Content::New(Rc::new(self.original_bytes(slot).map_err(&read)?.to_vec()))
            }
            (None, content) => content,
        };
        Ok(Now::File {
            content,
            attributes,
        })
    }

    /// Reads the moved bytes when the destination's old name must be swapped for
    /// them: a rename could only take the old file away first.
    fn detached(&self, op: &Operation<'_>, target: SlotId, moved: Now) -> Result<Now, Refusal> {
        let occupied = self.overlay.original(target) != Now::Missing;
        match moved {
            Now::File {
                content: Content::Original(slot),
                attributes,
            } if occupied => {
                let path = self.path(op.path)?;
                let read = refuse(op.path, path, FailureKind::Read);
                let bytes = self.original_bytes(slot).map_err(read)?.to_vec();
                Ok(Now::File {
                    content: Content::New(Rc::new(bytes)),
                    attributes,
                })
            }
            moved => Ok(moved),
        }
    }

    /// Decides whether a move may take a place, and what becomes of what is there.
    fn make_way(&mut self, index: usize, target: SlotId) -> Result<(), Cause> {
        let now = self.overlay.get(target);
        match &now {
            Now::Missing => return Ok(()),
            Now::Directory => return Err(Cause::Directory),
            Now::Special(kind) => return Err(Cause::Special(*kind)),
            Now::File { .. } | Now::Link(_) => {}
        }
        if let Some(line) = self.overlay.written_by(target) {
            return Err(Cause::TargetTwice { line });
        }
        if let Some((later, line, leaves)) = self.needed_later(index, target) {
            if !leaves || matches!(now, Now::Link(_)) {
                return Err(Cause::StillNeeded { line });
            }
            self.held.insert(later, now);
            return Ok(());
        }
        if self.options.on_existing == OnExisting::Refuse {
            return Err(Cause::Exists);
        }
        Ok(())
    }

    /// Tells whether a link leads to a place.
    fn leads_to(&self, now: &Now, place: SlotId) -> bool {
        match now {
            Now::Link(link) => self.overlay.snapshot().edited(*link) == Ok(place),
            _ => false,
        }
    }

    /// Notes a link that a move replaces, unless it led to the moved file itself.
    fn note_replaced(&mut self, target: SlotId, to: MoveTo<'_>, source: &Source) {
        let now = self.overlay.get(target);
        if matches!(now, Now::Link(_)) && !self.leads_to(&now, source.named) {
            let path = to.path.to_owned();
            self.report.notes.push(Note::LinkReplaced { path });
        }
    }

    /// Finds the first later operation that works on the file at a place, and
    /// whether it moves that file elsewhere.
    fn needed_later(&self, index: usize, place: SlotId) -> Option<(usize, usize, bool)> {
        let later = self.patch.operations.iter().enumerate().skip(index + 1);
        later
            .filter(|(_, op)| !matches!(op.body, Body::Add { .. }))
            .find(|(_, op)| self.slot_of(op.path) == Some(place))
            .map(|(later, op)| {
                let leaves = match &op.body {
                    Body::Update {
                        move_to: Some(to), ..
                    } => self.slot_of(to.path).is_some_and(|slot| slot != place),
                    _ => false,
                };
                (later, op.line, leaves)
            })
    }

    fn note_move(&mut self, target: SlotId, to: MoveTo<'_>, source: &Source, moved: &Now) {
        let path = to.path.to_owned();
        match (&source.now, moved) {
            (Now::Link(link), Now::File { .. }) if !self.leads_to(&source.now, target) => {
                let target = self.link_target(*link);
                self.report
                    .notes
                    .push(Note::LinkBecameFile { path, target });
            }
            (
                Now::File {
                    content: Content::Original(slot),
                    ..
                },
                Now::File {
                    content: Content::New(_),
                    ..
                },
            ) => {
                let others = self.overlay.snapshot().links(*slot).saturating_sub(1);
                if others > 0 {
                    self.report.notes.push(Note::LinksBroken { path, others });
                }
            }
            _ => {}
        }
    }
}
