//! One operation on the overlay: the rules of each section of a patch.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::overlay::{Attributes, Content, Now, Overlay};
use super::refusal::{Refusal, destination, refuse};
use super::snapshot::{ResolvedPath, SlotId, SlotState, Snapshot};
use crate::edit::{self, Changed, Landing};
use crate::failure::{Cause, Failure, FailureKind};
use crate::locate::{Ambiguity, MatchKind};
use crate::options::{LinkedFiles, OnExisting, Options, Unchanged};
use crate::report::{Change, ChangeKind, Landed, Note, Report};
use crate::syntax::ast::{Body, Chunk, Operation, Patch};

/// Linux's number for "no such file or directory".
pub(super) const ENOENT: i32 = 2;

/// Which operation last touched each place.
pub type Origins = BTreeMap<SlotId, usize>;

/// The operations of one patch, applied to the overlay one after another.
pub struct Planner<'p, 's> {
    pub(super) patch: &'p Patch<'p>,
    pub(super) options: &'p Options,
    pub(super) overlay: Overlay<'s>,
    pub(super) report: Report,
    origins: Origins,
    /// What later moves take along although an earlier move has put something in its place.
    pub(super) held: BTreeMap<usize, Now>,
    /// Links that operations took away: nothing may pass through them any more.
    pub(super) removed_links: Vec<(PathBuf, usize)>,
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
            held: BTreeMap::new(),
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

    pub(super) fn update(
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
        self.check_dangling(named, slot).map_err(&read)?;
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

    /// Edits the bytes of a file; `None` when that changes nothing.
    pub(super) fn edit(
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
        self.note_places(index, op, edited.warnings, edited.landings);
        Ok(match edited.changed {
            Changed::Content => Some(Content::New(Rc::new(edited.bytes))),
            Changed::Nothing => None,
        })
    }

    /// Tells where the chunks landed, and what was doubtful about it.
    fn note_places(
        &mut self,
        index: usize,
        op: &Operation<'_>,
        warnings: Vec<Ambiguity>,
        landings: Vec<Landing>,
    ) {
        let path = || op.path.to_owned();
        let ambiguous = warnings.into_iter().map(|ambiguity| Note::Ambiguous {
            path: path(),
            ambiguity,
        });
        self.report.notes.extend(ambiguous);
        let loose = landings.iter().filter(|it| it.kind != MatchKind::Exact);
        self.report.notes.extend(loose.map(|landing| Note::Loose {
            path: path(),
            landing: *landing,
        }));
        self.report.landed.push(Landed {
            operation: index,
            line: op.line,
            path: path(),
            landings,
        });
    }

    pub(super) fn original_bytes(&self, slot: SlotId) -> Result<&'s [u8], Cause> {
        match &self.overlay.snapshot().slot(slot).state {
            SlotState::File(file) => match &file.content {
                Some(Ok(bytes)) => Ok(bytes),
                Some(Err(cause)) => Err(cause.clone()),
                None => Err(Cause::Changed),
            },
            _ => Err(Cause::Changed),
        }
    }

    pub(super) fn path(&self, path: &str) -> Result<&'s ResolvedPath, Refusal> {
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

    pub(super) fn slot_of(&self, path: &str) -> Option<SlotId> {
        self.overlay
            .snapshot()
            .path(path)
            .and_then(|resolved| resolved.slot.clone().ok())
    }

    /// Refuses a path that passes through a link which an earlier operation took away.
    pub(super) fn check_links(&self, path: &ResolvedPath) -> Result<(), Cause> {
        let gone = self.removed_links.iter();
        let below = |link: &PathBuf| path.absolute != *link && path.absolute.starts_with(link);
        match gone.into_iter().find(|(link, _)| below(link)) {
            Some((_, line)) => Err(Cause::ParentRemoved { line: *line }),
            None => Ok(()),
        }
    }

    /// Checks that the file whose attributes a result keeps may be written (0444 refuses).
    pub(super) fn check_writable(&self, attributes: Attributes) -> Result<(), Cause> {
        let Attributes::Like(slot) = attributes else {
            return Ok(());
        };
        match &self.overlay.snapshot().slot(slot).state {
            SlotState::File(file) => file.writable.clone(),
            _ => Ok(()),
        }
    }

    pub(super) fn check_hard_links(&self, slot: SlotId) -> Result<(), Cause> {
        match &self.overlay.snapshot().slot(slot).state {
            SlotState::File(file)
                if file.links > 1 && self.options.linked_files == LinkedFiles::Refuse =>
            {
                Err(Cause::HardLinked { names: file.links })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn put(&mut self, index: usize, slot: SlotId, now: Now) {
        self.overlay.put(slot, now);
        self.origins.insert(slot, index);
    }

    /// Puts an edited file at its place, and at the other places that still name the same file.
    pub(super) fn put_everywhere(&mut self, index: usize, slot: SlotId, now: Now) {
        if self.options.linked_files == LinkedFiles::Follow {
            for other in self.overlay.snapshot().other_names(slot) {
                if self.overlay.one_file(slot, other) {
                    self.put(index, other, now.clone());
                }
            }
        }
        self.put(index, slot, now);
    }

    pub(super) fn take(&mut self, index: usize, slot: SlotId, line: usize) {
        self.overlay.take(slot, line);
        self.origins.insert(slot, index);
    }

    pub(super) fn change(&mut self, kind: ChangeKind, path: &str) {
        self.report.changes.push(Change {
            kind,
            path: path.to_owned(),
        });
    }

    pub(super) fn unchanged(&mut self, path: &str) -> Result<(), Refusal> {
        match self.options.unchanged {
            Unchanged::Note => self.report.notes.push(Note::Unchanged {
                path: path.to_owned(),
            }),
            Unchanged::Modified => self.change(ChangeKind::Modified, path),
        }
        Ok(())
    }

    pub(super) fn link_target(&self, link: SlotId) -> PathBuf {
        match &self.overlay.snapshot().slot(link).state {
            SlotState::Link(state) => state.ends_at.clone(),
            _ => PathBuf::new(),
        }
    }

    /// Says of a link that leads nowhere that it is one.
    pub(super) fn check_dangling(&self, named: SlotId, slot: SlotId) -> Result<(), Cause> {
        match &self.overlay.snapshot().slot(named).state {
            SlotState::Link(link) if named != slot && self.overlay.get(slot) == Now::Missing => {
                Err(Cause::Dangling {
                    hop: Box::new(link.hop.clone()),
                })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn note_link(&mut self, path: &str, named: SlotId, slot: SlotId) {
        if named != slot {
            let target = self.link_target(named);
            self.report.notes.push(Note::ThroughLink {
                path: path.to_owned(),
                target,
            });
        }
    }
}

/// Returns the file that is there, or why an update has nothing to read.
pub(super) fn file(now: Now) -> Result<(Content, Attributes), Cause> {
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
