//! A failure on its way from the rule that finds it to the operation it belongs to.

use std::path::PathBuf;

use super::operation::ENOENT;
use super::snapshot::{ResolvedPath, SlotId};
use crate::failure::{Cause, Failure, FailureKind};
use crate::syntax::ast::Operation;

/// A failure that does not know its operation yet.
pub(super) struct Refusal {
    pub(super) path: String,
    pub(super) absolute: PathBuf,
    pub(super) kind: FailureKind,
}

impl Refusal {
    pub(super) fn invalid(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            absolute: PathBuf::from(path),
            kind: FailureKind::InvalidPath,
        }
    }

    pub(super) fn at(self, index: usize, operation: &Operation<'_>) -> Failure {
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
pub(super) fn refuse(
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
pub(super) fn destination(path: &str, resolved: &ResolvedPath) -> Result<SlotId, Refusal> {
    let kind = match &resolved.slot {
        Err(Cause::Os { code: ENOENT }) => FailureKind::CreateParents,
        _ => FailureKind::Write,
    };
    resolved.slot.clone().map_err(refuse(path, resolved, kind))
}
