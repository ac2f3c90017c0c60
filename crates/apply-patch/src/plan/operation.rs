//! One operation on the overlay: the rules of each section of a patch.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::overlay::{Attributes, Content, Now, Overlay};
use super::snapshot::{ResolvedPath, SlotId, SlotState, Snapshot};
use crate::edit::{self, Changed};
use crate::failure::{Cause, Failure, FailureKind};
use crate::locate::MatchKind;
use crate::options::{LinkedFiles, OnExisting, Options, Unchanged};
use crate::report::{Change, ChangeKind, Landed, Note, Report};
use crate::syntax::ast::{Body, Chunk, MoveTo, Operation, Patch};

/// Linux's number for "no such file or directory".
const ENOENT: i32 = 2;

/// Which operation last touched each place.
pub type Origins = HashMap<SlotId, usize>;

/// The operations of one patch, applied to the overlay one after another.
pub struct Planner<'p, 's> {
    patch: &'p Patch<'p>,
    options: &'p Options,
    overlay: Overlay<'s>,
    report: Report,
    origins: Origins,
    /// What later moves take along although an earlier move has put something in its place.
    held: HashMap<usize, Now>,
    /// Links that operations took away: nothing may pass through them any more.
    removed_links: Vec<(PathBuf, usize)>,
}

/// A file that an update starts from.
struct Source {
    /// The place that the path names.
    named: SlotId,
    /// What is there, or was when a swap began.
    now: Now,
    /// Whether the place holds another operation's result by now.
    held: bool,
}

impl<'p, 's> Planner<'p, 's> {
    /// Starts from what was observed.
    pub fn new(patch: &'p Patch<'p>, snapshot: &'s Snapshot, options: &'p Options) -> Self {
        Self {
            patch,
            options,
            overlay: Overlay::new(snapshot),
            report: Report::default(),
            origins: Origins::new(),
            held: HashMap::new(),
            removed_links: Vec::new(),
        }
    }

    /// Returns the result of all operations.
    pub fn finish(self) -> (Overlay<'s>, Report, Origins) {
        (self.overlay, self.report, self.origins)
    }

    /// Does one operation, or says why it cannot be done.
    pub fn operation(&mut self, index: usize, operation: &Operation<'_>) -> Result<(), Failure> {
        let done = match &operation.body {
            Body::Add { lines } => self.add(index, operation, lines),
            Body::Delete => self.delete(index, operation),
            Body::Update { move_to, chunks } => match move_to {
                None => self.update(index, operation, chunks),
                Some(to) => self.relocate(index, operation, *to, chunks),
            },
        };
        done.map_err(|refusal| refusal.at(index, operation))
    }

    fn add(&mut self, index: usize, op: &Operation<'_>, lines: &[&str]) -> Result<(), Refusal> {
        let path = self.path(op.path)?;
        let write = refuse(op.path, path, FailureKind::Write);
        let named = destination(op.path, path)?;
        self.check_links(path).map_err(&write)?;
        let slot = self.overlay.edited(named).map_err(&write)?;
        self.overlay.check_parents(slot).map_err(&write)?;
        let (attributes, kind) = self.addable(slot).map_err(&write)?;
        self.note_link(op.path, named, slot);
        let content = Content::New(Rc::new(join(lines)));
        self.put(
            index,
            slot,
            Now::File {
                content,
                attributes,
            },
        );
        self.change(kind, op.path);
        Ok(())
    }

    /// Decides whether an Add may put its file at a place, and as what.
    fn addable(&self, slot: SlotId) -> Result<(Attributes, ChangeKind), Cause> {
        match self.overlay.get(slot) {
            Now::Missing => Ok((Attributes::Fresh, ChangeKind::Added)),
            Now::File { attributes, .. } => {
                if let Some(line) = self.overlay.written_by(slot) {
                    return Err(Cause::TargetTwice { line });
                }
                if self.options.on_existing == OnExisting::Refuse {
                    return Err(Cause::Exists);
                }
                self.check_writable(attributes)?;
                Ok((attributes, ChangeKind::Modified))
            }
            Now::Link(_) => Err(Cause::Exists),
            Now::Directory => Err(Cause::Directory),
            Now::Special(kind) => Err(Cause::Special(kind)),
        }
    }

    fn delete(&mut self, index: usize, op: &Operation<'_>) -> Result<(), Refusal> {
        let path = self.path(op.path)?;
        let delete = refuse(op.path, path, FailureKind::Delete);
        let slot = path.slot.clone().map_err(&delete)?;
        self.check_links(path).map_err(&delete)?;
        match self.overlay.get(slot) {
            Now::Missing if self.overlay.taken_by(slot).is_some() => {
                return Err(delete(Cause::Gone));
            }
            Now::Missing => return Err(delete(Cause::Os { code: ENOENT })),
            Now::Directory => return Err(delete(Cause::Directory)),
            Now::Link(_) => self.removed_links.push((path.absolute.clone(), op.line)),
            Now::File { .. } | Now::Special(_) => {}
        }
        self.take(index, slot, op.line);
        self.change(ChangeKind::Deleted, op.path);
        Ok(())
    }

    fn update(
        &mut self,
        index: usize,
        op: &Operation<'_>,
        chunks: &[Chunk<'_>],
    ) -> Result<(), Refusal> {
        let path = self.path(op.path)?;
        let read = refuse(op.path, path, FailureKind::Read);
        let named = path.slot.clone().map_err(&read)?;
        self.check_links(path).map_err(&read)?;
        let slot = self.overlay.edited(named).map_err(&read)?;
        let (content, attributes) = file(self.overlay.get(slot)).map_err(&read)?;
        let edited = self.edit(index, op, path, &content, chunks)?;
        let Some(bytes) = edited else {
            return self.unchanged(op.path);
        };
        let write = refuse(op.path, path, FailureKind::Write);
        self.check_writable(attributes).map_err(&write)?;
        self.check_hard_links(slot).map_err(&write)?;
        self.note_link(op.path, named, slot);
        self.put_everywhere(
            index,
            slot,
            Now::File {
                content: bytes,
                attributes,
            },
        );
        self.change(ChangeKind::Modified, op.path);
        Ok(())
    }

    /// An update with a `*** Move to:` line.
    fn relocate(
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
        self.check_links(target_path).map_err(&write)?;
        self.overlay.check_parents(target).map_err(&write)?;
        self.make_way(index, target, to).map_err(&write)?;
        let moved = self.detached(op, target, moved)?;
        self.note_move(to, &source, &moved);
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
    fn make_way(&mut self, index: usize, target: SlotId, to: MoveTo<'_>) -> Result<(), Cause> {
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
        if matches!(now, Now::Link(_)) {
            self.report.notes.push(Note::LinkReplaced {
                path: to.path.to_owned(),
            });
        }
        Ok(())
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

    /// Edits the bytes of a file; `None` when that changes nothing.
    fn edit(
        &mut self,
        index: usize,
        op: &Operation<'_>,
        path: &ResolvedPath,
        content: &Content,
        chunks: &[Chunk<'_>],
    ) -> Result<Option<Content>, Refusal> {
        let read = refuse(op.path, path, FailureKind::Read);
        let old: &[u8] = match content {
            Content::New(bytes) => bytes,
            Content::Original(slot) => self.original_bytes(*slot).map_err(read)?,
        };
        let edited = edit::edit(old, chunks, self.options).map_err(|error| Refusal {
            path: op.path.to_owned(),
            absolute: path.absolute.clone(),
            kind: FailureKind::Edit(error),
        })?;
        let path = || op.path.to_owned();
        for ambiguity in edited.warnings {
            self.report.notes.push(Note::Ambiguous {
                path: path(),
                ambiguity,
            });
        }
        for landing in edited
            .landings
            .iter()
            .filter(|it| it.kind != MatchKind::Exact)
        {
            self.report.notes.push(Note::Loose {
                path: path(),
                landing: *landing,
            });
        }
        self.report.landed.push(Landed {
            operation: index,
            landings: edited.landings,
        });
        Ok(match edited.changed {
            Changed::Content => Some(Content::New(Rc::new(edited.bytes))),
            Changed::Nothing => None,
        })
    }

    fn original_bytes(&self, slot: SlotId) -> Result<&'s [u8], Cause> {
        match &self.overlay.snapshot().slot(slot).state {
            SlotState::File(file) => match &file.content {
                Some(Ok(bytes)) => Ok(bytes),
                Some(Err(cause)) => Err(cause.clone()),
                None => Err(Cause::Changed),
            },
            _ => Err(Cause::Changed),
        }
    }

    fn path(&self, path: &str) -> Result<&'s ResolvedPath, Refusal> {
        let resolved = self
            .overlay
            .snapshot()
            .path(path)
            .ok_or_else(|| Refusal::invalid(path))?;
        match resolved.slot {
            Err(Cause::Nul) => Err(Refusal::invalid(path)),
            _ => Ok(resolved),
        }
    }

    fn slot_of(&self, path: &str) -> Option<SlotId> {
        self.overlay
            .snapshot()
            .path(path)
            .and_then(|resolved| resolved.slot.clone().ok())
    }

    /// Refuses a path that passes through a link which an earlier operation took away.
    fn check_links(&self, path: &ResolvedPath) -> Result<(), Cause> {
        let gone = self.removed_links.iter();
        let below = |link: &PathBuf| path.absolute != *link && path.absolute.starts_with(link);
        match gone.into_iter().find(|(link, _)| below(link)) {
            Some((_, line)) => Err(Cause::ParentRemoved { line: *line }),
            None => Ok(()),
        }
    }

    /// Checks that the file whose attributes a result keeps may be written (0444 refuses).
    fn check_writable(&self, attributes: Attributes) -> Result<(), Cause> {
        let Attributes::Like(slot) = attributes else {
            return Ok(());
        };
        match &self.overlay.snapshot().slot(slot).state {
            SlotState::File(file) => file.writable.clone(),
            _ => Ok(()),
        }
    }

    fn check_hard_links(&self, slot: SlotId) -> Result<(), Cause> {
        match &self.overlay.snapshot().slot(slot).state {
            SlotState::File(file)
                if file.links > 1 && self.options.linked_files == LinkedFiles::Refuse =>
            {
                Err(Cause::HardLinked { names: file.links })
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, index: usize, slot: SlotId, now: Now) {
        self.overlay.put(slot, now);
        self.origins.insert(slot, index);
    }

    /// Puts an edited file at its place, and at the other places that name the same file.
    fn put_everywhere(&mut self, index: usize, slot: SlotId, now: Now) {
        if self.options.linked_files == LinkedFiles::Follow {
            for other in self.overlay.snapshot().other_names(slot) {
                if self.overlay.get(other) == self.overlay.original(other) {
                    self.put(index, other, now.clone());
                }
            }
        }
        self.put(index, slot, now);
    }

    fn take(&mut self, index: usize, slot: SlotId, line: usize) {
        self.overlay.take(slot, line);
        self.origins.insert(slot, index);
    }

    fn change(&mut self, kind: ChangeKind, path: &str) {
        self.report.changes.push(Change {
            kind,
            path: path.to_owned(),
        });
    }

    fn unchanged(&mut self, path: &str) -> Result<(), Refusal> {
        match self.options.unchanged {
            Unchanged::Note => self.report.notes.push(Note::Unchanged {
                path: path.to_owned(),
            }),
            Unchanged::Modified => self.change(ChangeKind::Modified, path),
        }
        Ok(())
    }

    fn link_target(&self, link: SlotId) -> PathBuf {
        match &self.overlay.snapshot().slot(link).state {
            SlotState::Link(state) => PathBuf::from(&state.hop.target),
            _ => PathBuf::new(),
        }
    }

    fn note_link(&mut self, path: &str, named: SlotId, slot: SlotId) {
        if named != slot {
            let target = self.link_target(named);
            self.report.notes.push(Note::ThroughLink {
                path: path.to_owned(),
                target,
            });
        }
    }

    fn note_move(&mut self, to: MoveTo<'_>, source: &Source, moved: &Now) {
        if let (Now::Link(link), Now::File { .. }) = (&source.now, moved) {
            let target = self.link_target(*link);
            self.report.notes.push(Note::LinkBecameFile {
                path: to.path.to_owned(),
                target,
            });
        }
    }
}

/// A failure that does not know its operation yet.
struct Refusal {
    path: String,
    absolute: PathBuf,
    kind: FailureKind,
}

impl Refusal {
    fn invalid(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            absolute: PathBuf::from(path),
            kind: FailureKind::InvalidPath,
        }
    }

    fn at(self, index: usize, operation: &Operation<'_>) -> Failure {
        let Self {
            path,
            absolute,
            kind,
        } = self;
        Failure {
            operation: index,
            line: operation.line,
            path,
            absolute,
            kind,
        }
    }
}

/// Makes the function that turns a cause into a refusal of one path.
fn refuse(
    path: &str,
    resolved: &ResolvedPath,
    kind: fn(Cause) -> FailureKind,
) -> impl Fn(Cause) -> Refusal + use<> {
    let path = path.to_owned();
    let absolute = resolved.absolute.clone();
    move |cause| Refusal {
        path: path.clone(),
        absolute: absolute.clone(),
        kind: kind(cause),
    }
}

/// Returns the place of a path that is to be written; a parent that is a
/// dangling link cannot be made (R85).
fn destination(path: &str, resolved: &ResolvedPath) -> Result<SlotId, Refusal> {
    let kind = match &resolved.slot {
        Err(Cause::Os { code: ENOENT }) => FailureKind::CreateParents,
        _ => FailureKind::Write,
    };
    resolved.slot.clone().map_err(refuse(path, resolved, kind))
}

/// Returns the file that is there, or why an update has nothing to read.
fn file(now: Now) -> Result<(Content, Attributes), Cause> {
    match now {
        Now::File {
            content,
            attributes,
        } => Ok((content, attributes)),
        Now::Missing | Now::Link(_) => Err(Cause::Os { code: ENOENT }),
        Now::Directory => Err(Cause::Directory),
        Now::Special(kind) => Err(Cause::Special(kind)),
    }
}

fn join(lines: &[&str]) -> Vec<u8> {
    let size_bytes = lines.iter().map(|line| line.len() + 1).sum();
    let mut content = Vec::with_capacity(size_bytes);
    for line in lines {
        content.extend_from_slice(line.as_bytes());
        content.push(b'\n');
    }
    content
}
