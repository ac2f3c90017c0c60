//! Makes the effects of a plan: stages all, swaps names, and takes everything
//! back when one of them cannot be made.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;

use safe_fs::{Entry, ErrorKind, FileId, Location, LostAttribute, Roots, Staged, Transaction};

use super::ApplyError;
use super::links;
use super::observe::{Observed, cause_of};
use crate::failure::{Cause, Failure, FailureKind};
use crate::options::Options;
use crate::plan::snapshot::SlotId;
use crate::plan::{Attributes, Effect, Plan};
use crate::report::{Note, Report};
use crate::syntax::ast::{Body, Patch};
use crate::undo::RecordError;
use crate::undo::capture::capture;

/// Mode of a new file before the umask (R33).
const NEW_FILE_MODE: u32 = 0o666;

/// Why a transaction did not come to its end.
pub enum Interrupted {
    /// A file is not what it was when it was read: look again.
    Changed(Box<Failure>),
    /// It cannot be done.
    Failed(ApplyError),
}

/// Makes all effects, or none; what they replace goes into the record.
pub fn commit<'a>(
    patch: &'a Patch<'a>,
    plan: &'a Plan,
    observed: &'a Observed,
    (roots, options): (&'a Roots, &'a Options),
    record: Option<&mut dyn Write>,
) -> Result<Report, Interrupted> {
    let mut commit = Commit {
        patch,
        observed,
        roots,
        options,
        effects: &plan.effects,
        transaction: Transaction::begin(roots, options.durability),
        made: Vec::new(),
        notes: Vec::new(),
        vacated: BTreeSet::new(),
    };
    match commit.run() {
        Ok(()) => {
            // What changed nothing is nothing to take back.
            let is_recorded = record.is_some() && !plan.effects.is_empty();
            let bytes = is_recorded.then(|| commit.replaced());
            let mut report = commit.settle(plan.report.clone())?;
            if let (Some(record), Some(bytes)) = (record, bytes) {
                report.notes.extend(keep(record, bytes).err());
            }
            Ok(report)
        }
        Err(failure) => Err(interrupted(failure, commit.transaction.roll_back())),
    }
}

/// Writes a record; that it cannot be undone is no reason to take a patch back.
fn keep(record: &mut dyn Write, bytes: Result<Vec<u8>, RecordError>) -> Result<(), Note> {
    let written = bytes.and_then(|bytes| record.write_all(&bytes).map_err(RecordError::Write));
    written.map_err(|error| Note::NoUndo {
        why: error.to_string(),
    })
}

/// The bytes of one write, waiting for their name.
enum Ready {
    /// As a new inode.
    Swap(Staged),
    /// To be written into the file that is there.
    InPlace,
}

struct Commit<'a> {
    patch: &'a Patch<'a>,
    observed: &'a Observed,
    roots: &'a Roots,
    options: &'a Options,
    effects: &'a [Effect],
    transaction: Transaction<'a>,
    /// The directories that were made, each after its parent.
    made: Vec<Location>,
    notes: Vec<Note>,
    /// Places whose old entry has been renamed or removed by an earlier effect.
    vacated: BTreeSet<SlotId>,
}

impl Commit<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let effects = self.effects;
        let mut staged = Vec::with_capacity(effects.len());
        for effect in effects {
            staged.push(match effect {
                Effect::Write { .. } => Some(self.stage(effect)?),
                _ => None,
            });
        }
        for (effect, ready) in effects.iter().zip(staged) {
            match (effect, ready) {
                (Effect::Write { .. }, Some(ready)) => self.write(effect, ready)?,
                (Effect::Rename { from, to, .. }, _) => self.rename(effect, *from, *to)?,
                (Effect::Remove { slot, .. }, _) => self.remove(effect, *slot)?,
                (Effect::Write { .. }, None) => {}
                (Effect::Link { slot, target, .. }, _) => self.link(effect, *slot, target)?,
                (
                    Effect::RemoveDirectory {
                        slot, directory, ..
                    },
                    _,
                ) => {
                    self.remove_directory(effect, *slot, *directory)?;
                }
            }
        }
        Ok(())
    }

    fn stage(&mut self, effect: &Effect) -> Result<Ready, Failure> {
        let Effect::Write {
            slot,
            content,
            attributes,
            ..
        } = effect
        else {
            return Ok(Ready::InPlace);
        };
        let directory = self.observed.location(*slot).dir();
        let observed = self.observed;
        let given = match attributes {
            Attributes::Fresh => None,
            Attributes::Like(model) => observed.pinned(*model).map(safe_fs::Attributes::Like),
            Attributes::Saved(slot) => observed.saved(*slot).map(safe_fs::Attributes::Saved),
        };
        let like = given.unwrap_or(safe_fs::Attributes::New {
            mode: NEW_FILE_MODE,
        });
        let keeps_its_own = *attributes == Attributes::Like(*slot);
        let staged = match self.transaction.stage(directory, content, like) {
            Ok(staged) => staged,
            Err(error) if keeps_its_own && is_denied(&error) => return Ok(Ready::InPlace),
            Err(error) => return Err(self.failure(effect, &error)),
        };
        match would_lose(&staged) {
            None => Ok(Ready::Swap(staged)),
            // What is gone is better had again with another owner than not at all.
            Some(_) if matches!(attributes, Attributes::Saved(_)) => {
                let path = self.patch.operations[effect.operation()].path.to_owned();
                let what = staged.lost().iter().map(lost_name).collect();
                self.notes.push(Note::AttributesLost { path, what });
                Ok(Ready::Swap(staged))
            }
            // Writing in place would lose capabilities as well (capabilities(7)).
            Some(_) if keeps_its_own && !loses_capabilities(&staged) => Ok(Ready::InPlace),
            Some(cause) => Err(self.failed(effect, cause)),
        }
    }

    fn write(&mut self, effect: &Effect, ready: Ready) -> Result<(), Failure> {
        let Effect::Write {
            slot,
            content,
            attributes,
            ..
        } = effect
        else {
            return Ok(());
        };
        let staged = match ready {
            Ready::Swap(staged) => staged,
            Ready::InPlace => return self.rewrite(effect, *slot, content),
        };
        let at = self.with_parents(effect, *slot)?;
        let old = self
            .observed
            .pinned(*slot)
            .filter(|_| !self.vacated.contains(slot));
        let Some(old) = old else {
            let done = self.transaction.create(staged, &at);
            return self.checked(effect, done);
        };
        // Other names are searched for before the swap: afterwards none is left to find by.
        let others = match attributes {
            Attributes::Like(model) if model == slot => self.other_names(effect, *slot)?,
            _ => Vec::new(),
        };
        match self.transaction.replace(staged, &at, old) {
            Err(error) if *error.kind() == ErrorKind::Busy => {
                return self.rewrite(effect, *slot, content);
            }
            done => self.checked(effect, done)?,
        }
        for other in &others {
            let done = self.transaction.relink(&at, other, old);
            self.checked(effect, done)?;
        }
        Ok(())
    }

    /// Finds the names inside the roots that share the file at `slot`.
    fn other_names(&mut self, effect: &Effect, slot: SlotId) -> Result<Vec<Location>, Failure> {
        let path = self.patch.operations[effect.operation()].path;
        let names = links::other_names(self.observed, self.roots, self.options, self.effects, slot)
            .map_err(|error| self.failure(effect, &error))?;
        self.notes.extend(names.notes(path));
        Ok(names.found)
    }

    /// Writes into the file that is there, where a new inode cannot take its
    /// place: a mount point, or a directory without write permission.
    fn rewrite(&mut self, effect: &Effect, slot: SlotId, content: &[u8]) -> Result<(), Failure> {
        let Some(old) = self.observed.pinned(slot) else {
            return Err(self.failed(effect, Cause::Changed));
        };
        let at = self.observed.location(slot);
        let done = self.transaction.rewrite(at, old, content);
        self.checked(effect, done)?;
        let path = self.patch.operations[effect.operation()].path.to_owned();
        self.notes.push(Note::InPlace { path: path.clone() });
        // The kernel drops set-id bits when anybody but the owner writes (inode(7)).
        let now = self.roots.entry(self.observed.location(slot));
        if matches!(now, Ok(Entry::File(now)) if now.mode() != old.mode()) {
            let what = vec!["set-id bits".to_owned()];
            self.notes.push(Note::AttributesLost { path, what });
        }
        Ok(())
    }

    fn rename(&mut self, effect: &Effect, from: SlotId, to: SlotId) -> Result<(), Failure> {
        let Some(pinned) = self.observed.pinned(from) else {
            return Err(self.failed(effect, Cause::Changed));
        };
        let at = self.with_parents(effect, to)?;
        let source = self.observed.location(from);
        match self.transaction.rename(source, &at, pinned) {
            Err(error) if *error.kind() == ErrorKind::CrossDevice => {
                let bytes = pinned
                    .read()
                    .map_err(|error| self.failure(effect, &error))?;
                let like = safe_fs::Attributes::Like(pinned);
                let staged = self
                    .transaction
                    .stage(at.dir(), &bytes, like)
                    .map_err(|error| self.failure(effect, &error))?;
                if let Some(cause) = would_lose(&staged) {
                    return Err(self.failed(effect, cause));
                }
                let done = self.transaction.create(staged, &at);
                self.checked(effect, done)?;
                let done = self.transaction.remove(source, pinned);
                self.checked(effect, done)?;
            }
            done => self.checked(effect, done)?,
        }
        self.vacated.insert(from);
        Ok(())
    }

    fn remove(&mut self, effect: &Effect, slot: SlotId) -> Result<(), Failure> {
        let Some(pinned) = self.observed.pinned(slot) else {
            return Err(self.failed(effect, Cause::Changed));
        };
        let done = (self.transaction).remove(self.observed.location(slot), pinned);
        self.checked(effect, done)?;
        self.vacated.insert(slot);
        Ok(())
    }

    /// Makes a symbolic link at a free place.
    fn link(&mut self, effect: &Effect, slot: SlotId, target: &OsStr) -> Result<(), Failure> {
        let at = self.with_parents(effect, slot)?;
        let staged = self.transaction.stage_link(at.dir(), target);
        let staged = self.checked(effect, staged)?;
        let done = self.transaction.create(staged, &at);
        self.checked(effect, done)
    }

    fn remove_directory(
        &mut self,
        effect: &Effect,
        slot: SlotId,
        (dev, ino): (u64, u64),
    ) -> Result<(), Failure> {
        let at = self.observed.location(slot);
        if !at.missing().is_empty() {
            return Ok(());
        }
        let done = (self.transaction).remove_directory(at, FileId { dev, ino });
        self.checked(effect, done)
    }

    /// Returns the record of what the effects replaced, while it is at hand.
    fn replaced(&self) -> Result<Vec<u8>, RecordError> {
        capture(self.effects, self.observed, &self.made, self.roots)?.to_bytes()
    }

    /// Makes the missing directories above a place.
    fn with_parents(&mut self, effect: &Effect, slot: SlotId) -> Result<Location, Failure> {
        let at = self.observed.location(slot);
        if at.missing().is_empty() {
            return Ok(at.clone());
        }
        let made = self.transaction.make_directories(at);
        self.made.extend(at.missing_parents());
        made.map_err(|error| Failure {
            kind: FailureKind::CreateParents(cause_of(&error)),
            ..self.failure(effect, &error)
        })
    }

    fn checked<T>(&self, effect: &Effect, done: Result<T, safe_fs::Error>) -> Result<T, Failure> {
        done.map_err(|error| self.failure(effect, &error))
    }

    fn failure(&self, effect: &Effect, error: &safe_fs::Error) -> Failure {
        // A name that was free is taken now: somebody was faster.
        let cause = match error.kind() {
            ErrorKind::Exists => Cause::Changed,
            _ => cause_of(error),
        };
        self.failed(effect, cause)
    }

    fn failed(&self, effect: &Effect, cause: Cause) -> Failure {
        let index = effect.operation();
        let operation = &self.patch.operations[index];
        let (path, kind) = match (&operation.body, effect) {
            (Body::Delete, _) => (operation.path, FailureKind::Delete(cause)),
            (
                Body::Update {
                    move_to: Some(_), ..
                },
                Effect::Remove { .. },
            ) => (operation.path, FailureKind::RemoveOriginal(cause)),
            (
                Body::Update {
                    move_to: Some(to), ..
                },
                _,
            ) => (to.path, FailureKind::Write(cause)),
            _ => (operation.path, FailureKind::Write(cause)),
        };
        let resolved = self.observed.snapshot().path(path);
        let absolute = resolved
            .map(|path| path.absolute.clone())
            .unwrap_or_default();
        Failure {
            operation: index,
            line: operation.line,
            path: path.to_owned(),
            absolute,
            kind,
        }
    }

    /// Makes the changes stay; what could not be tidied up is reported.
    fn settle(self, mut report: Report) -> Result<Report, Interrupted> {
        report.notes.extend(self.notes.iter().cloned());
        if self.transaction.is_unjournaled() {
            report.notes.push(Note::NoJournal);
        }
        let Some(last) = self.effects.last() else {
            return Ok(report);
        };
        let about = self.failed(last, Cause::Changed);
        match self.transaction.settle() {
            Ok(left) => {
                let note = |error: &safe_fs::Error| Note::LeftBehind {
                    path: error.path().to_path_buf(),
                };
                report.notes.extend(left.iter().map(note));
                Ok(report)
            }
            Err(unsettled) => {
                let kind = FailureKind::Write(cause_of(&unsettled.source));
                Err(interrupted(
                    Failure { kind, ..about },
                    unsettled.rolled_back,
                ))
            }
        }
    }
}

/// Says why a transaction ended, and whether that left anything.
fn interrupted(failure: Failure, rolled_back: Result<(), safe_fs::Error>) -> Interrupted {
    match rolled_back {
        Err(source) => Interrupted::Failed(ApplyError::NotRolledBack {
            failure: Box::new(failure),
            source,
        }),
        Ok(()) if is_changed(&failure) => Interrupted::Changed(Box::new(failure)),
        Ok(()) => Interrupted::Failed(ApplyError::Failed(vec![failure])),
    }
}

const CAPABILITIES: &str = "security.capability";

/// Returns the refusal of a new inode that could not be given all that the old one has.
fn would_lose(staged: &Staged) -> Option<Cause> {
    let lost: Vec<String> = staged.lost().iter().map(lost_name).collect();
    let what = lost.join(", ");
    (!lost.is_empty()).then_some(Cause::WouldLose { what })
}

fn lost_name(lost: &LostAttribute) -> String {
    match lost {
        LostAttribute::Owner => "owner".to_owned(),
        LostAttribute::Group => "group".to_owned(),
        LostAttribute::Mode => "mode".to_owned(),
        LostAttribute::Xattr(name) if name == CAPABILITIES => "file capabilities".to_owned(),
        LostAttribute::Xattr(name) => name.display().to_string(),
        _ => "extended attributes".to_owned(),
    }
}

fn loses_capabilities(staged: &Staged) -> bool {
    let is_it =
        |lost: &LostAttribute| matches!(lost, LostAttribute::Xattr(it) if it == CAPABILITIES);
    staged.lost().iter().any(is_it)
}

fn is_denied(error: &safe_fs::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnly
    )
}

fn is_changed(failure: &Failure) -> bool {
    matches!(
        &failure.kind,
        FailureKind::Write(Cause::Changed)
            | FailureKind::Delete(Cause::Changed)
            | FailureKind::RemoveOriginal(Cause::Changed)
            | FailureKind::CreateParents(Cause::Changed)
    )
}
