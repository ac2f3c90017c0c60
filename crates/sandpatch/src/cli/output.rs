//! How far to go with a patch.

use std::ffi::OsString;

use clap::Args;

/// The switches as they are typed.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct OutputSwitches {
    /// Says what the patch would do, and touches nothing
    #[arg(long)]
    check: bool,

    /// Prints what the patch would change as a unified diff, and touches nothing
    #[arg(long)]
    diff: bool,
}

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To the end.
    Apply,
    /// To the plan.
    Check,
    /// To the plan, and show it as a diff.
    Diff,
}

impl OutputSwitches {
    /// Returns how far to go; a diff is a check that shows more.
    pub const fn action(self) -> Action {
        match self {
            Self { diff: true, .. } => Action::Diff,
            Self { check: true, .. } => Action::Check,
            _ => Action::Apply,
        }
    }

    /// Returns the switches as arguments, for the inner stage.
    pub fn arguments(self) -> Vec<OsString> {
        let all = [(self.check, "--check"), (self.diff, "--diff")];
        let given = all.into_iter().filter(|(given, _)| *given);
        given.map(|(_, name)| OsString::from(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::HandOff;

    #[test]
    fn switches_mean_the_same_behind_the_hand_off() {
        for [check, diff] in [[false, false], [true, false], [false, true], [true, true]] {
            let switches = OutputSwitches { check, diff };
            let mut arguments = switches.arguments();
            arguments.extend(["--root=/a".into(), "--codes=own".into()]);
            let back = HandOff::try_parse_from(arguments).unwrap().output;
            assert_eq!(back.action(), switches.action());
        }
    }
}
