//! Which of its personalities the executable takes on: a pure table of the
//! name and the first argument it was started with.
//!
//! The name selects a role. It never grants anything.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use linux_sandbox::bubblewrap::INNER_STAGE_SWITCH;

/// Applies the patch that follows, sandboxed, in the safe dialect.
pub const RUN_AS_APPLY_PATCH: &str = "--run-as-apply-patch";

/// Applies the patch that follows under the confinement it finds itself in.
pub const INNER_STAGE: &str = "--codex-run-as-apply-patch";

/// What this process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The patch tool under one of its alias names.
    ApplyPatchAlias,
    /// The patch tool by its first argument.
    RunAsApplyPatch,
    /// The stage that runs inside the sandbox.
    InnerStage,
    /// The stage that completes a sandbox of bubblewrap's.
    SandboxStage,
    /// The reference's sandbox helper.
    LinuxSandboxHelper,
    /// The command line for people.
    CommandLine,
}

/// Base names that select a role.
const NAMES: &[(&str, Role)] = &[
    ("apply_patch", Role::ApplyPatchAlias),
    ("applypatch", Role::ApplyPatchAlias),
    ("apply-patch", Role::ApplyPatchAlias),
    ("codex-linux-sandbox", Role::LinuxSandboxHelper),
];

/// First arguments that select a role, unless the name has.
const FLAGS: &[(&str, Role)] = &[
    (RUN_AS_APPLY_PATCH, Role::RunAsApplyPatch),
    (INNER_STAGE, Role::InnerStage),
    (INNER_STAGE_SWITCH, Role::SandboxStage),
];

impl Role {
    /// Returns the role for a whole argument vector, and the arguments that are left for it.
    pub fn of(argv: Vec<OsString>) -> (Self, Vec<OsString>) {
        let mut rest = argv.into_iter();
        let name = rest.next().unwrap_or_default();
        let rest: Vec<OsString> = rest.collect();
        if let Some(role) = by_name(&name) {
            return (role, rest);
        }
        match rest.first().and_then(|first| lookup(FLAGS, first)) {
            Some(role) => (role, rest[1..].to_vec()),
            None => (Self::CommandLine, rest),
        }
    }
}

fn by_name(argv0: &OsStr) -> Option<Role> {
    lookup(NAMES, Path::new(argv0).file_name()?)
}

fn lookup(table: &[(&str, Role)], key: &OsStr) -> Option<Role> {
    table
        .iter()
        .find(|(text, _)| key == *text)
        .map(|(_, role)| *role)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(argv: &[&str]) -> (Role, Vec<String>) {
        let (role, rest) = Role::of(argv.iter().map(OsString::from).collect());
        (
            role,
            rest.into_iter()
                .map(|arg| arg.into_string().unwrap())
                .collect(),
        )
    }

    #[test]
    fn names_come_first() {
        for name in ["apply_patch", "/x/applypatch", "./apply-patch"] {
            assert_eq!(
                role(&[name, INNER_STAGE]),
                (Role::ApplyPatchAlias, vec![INNER_STAGE.into()])
            );
        }
        assert_eq!(
            role(&["/a/codex-linux-sandbox", "--", "x"]).0,
            Role::LinuxSandboxHelper
        );
    }

    #[test]
    fn flags_select_only_in_first_place() {
        assert_eq!(
            role(&["sandpatch", RUN_AS_APPLY_PATCH, "p"]),
            (Role::RunAsApplyPatch, vec!["p".into()])
        );
        assert_eq!(
            role(&["sandpatch", INNER_STAGE]),
            (Role::InnerStage, vec![])
        );
        assert_eq!(
            role(&["/proc/self/fd/7", INNER_STAGE_SWITCH, "8"]),
            (Role::SandboxStage, vec!["8".into()])
        );
        assert_eq!(
            role(&["sandpatch", "run", INNER_STAGE]).0,
            Role::CommandLine
        );
    }

    #[test]
    fn anything_else_is_the_command_line() {
        assert_eq!(role(&["sandpatch"]), (Role::CommandLine, vec![]));
        assert_eq!(role(&[]), (Role::CommandLine, vec![]));
        assert_eq!(role(&["apply_patch.sh", "x"]).0, Role::CommandLine);
    }
}
