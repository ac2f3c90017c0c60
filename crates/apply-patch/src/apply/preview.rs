//! What a plan would do, told without doing it.
//!
//! The effects become the sections of a diff. What they leave out, since an
//! application does not need it, is read here: the content of what goes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use safe_fs::Roots;

use super::ApplyError;
use super::commit::Interrupted;
use super::links::{self, OtherNames};
use super::observe::{Observed, cause_of};
use crate::diff::{self, FileDiff, Mode, Side};
use crate::failure::{Failure, FailureKind};
use crate::options::Options;
use crate::plan::snapshot::{SlotId, SlotState};
use crate::plan::{Attributes, Effect, Plan};
use crate::report::{NotShown, Note, Report};
use crate::syntax::ast::Patch;

/// What a patch would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// What would be reported.
    pub report: Report,
    /// The changes as a unified diff.
    pub diff: Vec<u8>,
}

/// Returns the report that the plan would lead to.
pub fn check(
    patch: &Patch<'_>,
    plan: Plan,
    observed: &Observed,
    roots: &Roots,
    options: &Options,
) -> Result<Report, Interrupted> {
    let mut report = plan.report;
    for effect in &plan.effects {
        let names = followers(patch, &plan.effects, effect, observed, roots, options)?;
        report
            .notes
            .extend(names.notes(patch.operations[effect.operation()].path));
    }
    Ok(report)
}

/// Returns the report and the diff that the plan would lead to.
pub fn preview(
    patch: &Patch<'_>,
    plan: Plan,
    observed: &Observed,
    roots: &Roots,
    options: &Options,
) -> Result<Preview, Interrupted> {
    let mut sections = Sections::new(&plan, observed, roots);
    let mut report = plan.report.clone();
    for effect in &plan.effects {
        let names = followers(patch, &plan.effects, effect, observed, roots, options)?;
        report
            .notes
            .extend(names.notes(patch.operations[effect.operation()].path));
        sections.effect(effect, &names);
    }
    let (mut files, notes) = (sections.files, sections.notes);
    files.sort_by(|one, other| one.path().cmp(other.path()));
    report.notes.extend(notes);
    for file in &files {
        report.notes.extend(not_shown(file));
    }
    let diff = diff::render(&files);
    Ok(Preview { report, diff })
}

fn not_shown(file: &FileDiff<'_>) -> Vec<Note> {
    let elsewhere = file.path().is_absolute().then_some(NotShown::Elsewhere);
    let binary = file.is_binary().then_some(NotShown::Binary);
    let note = |why| Note::NotShown {
        path: file.path().to_path_buf(),
        why,
    };
    elsewhere.into_iter().chain(binary).map(note).collect()
}

/// Finds the names that get the content of a file that is written at its own place.
fn followers(
    patch: &Patch<'_>,
    effects: &[Effect],
    effect: &Effect,
    observed: &Observed,
    roots: &Roots,
    options: &Options,
) -> Result<OtherNames, Interrupted> {
    let Effect::Write {
        slot, attributes, ..
    } = effect
    else {
        return Ok(OtherNames::default());
    };
    if *attributes != Attributes::Like(*slot) {
        return Ok(OtherNames::default());
    }
    links::other_names(observed, roots, options, effects, *slot).map_err(|error| {
        let index = effect.operation();
        let operation = &patch.operations[index];
        Interrupted::Failed(ApplyError::Failed(vec![Failure {
            operation: index,
            line: operation.line,
            path: operation.path.to_owned(),
            absolute: observed.location(*slot).path().to_path_buf(),
            kind: FailureKind::Write(cause_of(&error)),
        }]))
    })
}

/// The sections of a diff while they are being gathered.
struct Sections<'a> {
    observed: &'a Observed,
    roots: &'a Roots,
    /// What the plan removes.
    removed: HashSet<SlotId>,
    /// Places whose old entry a section before has moved or removed.
    vacated: HashSet<SlotId>,
    files: Vec<FileDiff<'a>>,
    notes: Vec<Note>,
}

impl<'a> Sections<'a> {
    fn new(plan: &Plan, observed: &'a Observed, roots: &'a Roots) -> Self {
        let removed = plan.effects.iter().filter_map(|effect| match effect {
            Effect::Remove { slot, .. } => Some(*slot),
            _ => None,
        });
        Self {
            observed,
            roots,
            removed: removed.collect(),
            vacated: HashSet::new(),
            files: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn effect(&mut self, effect: &Effect, names: &OtherNames) {
        match effect {
            Effect::Rename { from, to, .. } => {
                let path = |slot| self.roots.real_path(self.observed.location(slot));
                self.files.push(FileDiff::Renamed {
                    from: path(*from),
                    to: path(*to),
                });
                self.vacated.insert(*from);
            }
            Effect::Write {
                slot,
                content,
                attributes,
                ..
            } => self.write(*slot, content, *attributes, names),
            Effect::Remove { slot, .. } => {
                if self.vacated.insert(*slot)
                    && let Some(old) = self.side(*slot)
                {
                    self.files.push(FileDiff::Deleted(old));
                }
            }
            // A patch makes no links and removes no directories.
            Effect::Link { .. } | Effect::RemoveDirectory { .. } => {}
        }
    }

    fn write(&mut self, slot: SlotId, content: &[u8], attributes: Attributes, names: &OtherNames) {
        let new = Side {
            path: self.roots.real_path(self.observed.location(slot)),
            mode: self.mode(attributes),
            bytes: Cow::Owned(content.to_vec()),
        };
        if self.is_free(slot) {
            let file = match self.moved(attributes) {
                Some(old) => FileDiff::Modified { old, new },
                None => FileDiff::Added(new),
            };
            return self.files.push(file);
        }
        let Some(old) = self.side(slot) else { return };
        for other in &names.found {
            self.follow(self.roots.real_path(other), &old, &new);
        }
        if old.mode == Mode::Link {
            // Git changes the type of a file in two steps.
            self.files.push(FileDiff::Deleted(old));
            self.files.push(FileDiff::Added(new));
        } else {
            self.files.push(FileDiff::Modified { old, new });
        }
    }

    /// Another name of a written file follows, wherever it goes.
    fn follow(&mut self, path: PathBuf, old: &Side<'a>, new: &Side<'a>) {
        let renamed = self.files.iter_mut().find_map(|file| match file {
            FileDiff::Renamed { from, to } if *from == path => Some((to.clone(), file)),
            _ => None,
        });
        let at = |side: &Side<'a>, path: PathBuf| Side {
            path,
            ..side.clone()
        };
        match renamed {
            Some((to, file)) => {
                let (old, new) = (at(old, path), at(new, to));
                *file = FileDiff::Modified { old, new };
            }
            None => {
                let (old, new) = (at(old, path.clone()), at(new, path));
                self.files.push(FileDiff::Modified { old, new });
            }
        }
    }

    fn is_free(&self, slot: SlotId) -> bool {
        let state = &self.observed.snapshot().slot(slot).state;
        self.vacated.contains(&slot) || matches!(state, SlotState::Missing)
    }

    /// Takes the old side of a file that goes where its attributes come from.
    fn moved(&mut self, attributes: Attributes) -> Option<Side<'a>> {
        let Attributes::Like(model) = attributes else {
            return None;
        };
        if !self.removed.contains(&model) || self.vacated.contains(&model) {
            return None;
        }
        let old = self.side(model)?;
        self.vacated.insert(model);
        Some(old)
    }

    fn mode(&self, attributes: Attributes) -> Mode {
        match attributes {
            Attributes::Fresh => Mode::File,
            Attributes::Like(model) | Attributes::Saved(model) => self
                .observed
                .pinned(model)
                .map_or(Mode::File, |pinned| Mode::of_permissions(pinned.mode())),
        }
    }

    /// Returns what is at a place, or notes why it cannot be shown.
    fn side(&mut self, slot: SlotId) -> Option<Side<'a>> {
        let observed = self.observed;
        let path = self.roots.real_path(observed.location(slot));
        let shown = match &observed.snapshot().slot(slot).state {
            SlotState::File(file) => match (&file.content, observed.pinned(slot)) {
                (Some(Ok(bytes)), _) => Ok(Cow::Borrowed(bytes.as_slice())),
                (_, Some(pinned)) => pinned
                    .read()
                    .map(Cow::Owned)
                    .map_err(|_| NotShown::Unreadable),
                (_, None) => Err(NotShown::Unreadable),
            }
            .map(|bytes| (self.mode(Attributes::Like(slot)), bytes)),
            SlotState::Link(link) => {
                let target: &Path = Path::new(&link.hop.target);
                Ok((Mode::Link, Cow::Borrowed(target.as_os_str().as_bytes())))
            }
            SlotState::Missing | SlotState::Directory | SlotState::Special(_) => {
                Err(NotShown::Special)
            }
        };
        match shown {
            Ok((mode, bytes)) => Some(Side { path, mode, bytes }),
            Err(why) => {
                self.notes.push(Note::NotShown { path, why });
                None
            }
        }
    }
}
