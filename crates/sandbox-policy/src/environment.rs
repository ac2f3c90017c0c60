//! Keeps the variables that name a temporary directory useful.
//!
//! A program that is told to use a directory which it cannot write fails in
//! ways that hide the reason, so these are the only variables a run changes.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::path::AbsolutePath;
use crate::plan::Plan;
use crate::policy::Access;

/// The variables that name a directory for temporary files.
pub const TEMPORARY_DIRECTORY_VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Replaces each variable that names a place which cannot be written inside by
/// `/tmp`, when that can.
pub fn with_usable_tmp(
    mut vars: Vec<(OsString, OsString)>,
    plan: &Plan,
) -> Vec<(OsString, OsString)> {
    if !is_usable(OsStr::new("/tmp"), plan) {
        return vars;
    }
    for (name, value) in &mut vars {
        let concerned = TEMPORARY_DIRECTORY_VARIABLES
            .iter()
            .any(|known| name == known);
        if concerned && !value.is_empty() && !is_usable(value, plan) {
            *value = OsString::from("/tmp");
        }
    }
    vars
}

/// Tells whether a directory exists inside and can be written: a root, a place
/// below one, or the private `/tmp` itself (what lay below that is hidden).
fn is_usable(value: &OsStr, plan: &Plan) -> bool {
    let Ok(path) = AbsolutePath::new(Path::new(value)) else {
        return false;
    };
    let path = plan.real_path(&path);
    plan.access(&path) == Access::Write && !plan.is_hidden(&path)
}
