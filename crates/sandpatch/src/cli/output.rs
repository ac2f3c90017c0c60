//! How far to go with a patch, and how to say what came of it.

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

    /// Prints one JSON object instead of text (docs/report.md)
    #[arg(long)]
    json: bool,
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

/// How to say what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text for people and models.
    Text,
    /// One object for programs.
    Json,
}

impl OutputSwitches {
    /// Returns the switches that ask for an answer in this form.
    pub const fn of(form: Form) -> Self {
        Self {
            check: false,
            diff: false,
            json: matches!(form, Form::Json),
        }
    }

    /// Returns how far to go; a diff is a check that shows more.
    pub const fn action(self) -> Action {
        match self {
            Self { diff: true, .. } => Action::Diff,
            Self { check: true, .. } => Action::Check,
            _ => Action::Apply,
        }
    }

    /// Returns how to say what came of it.
    pub const fn form(self) -> Form {
        match self.json {
            true => Form::Json,
            false => Form::Text,
        }
    }

    /// Returns the switches as arguments, for the inner stage.
    pub fn arguments(self) -> Vec<OsString> {
        let all = [
            (self.check, "--check"),
            (self.diff, "--diff"),
            (self.json, "--json"),
        ];
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
        for [check, diff, json] in [
            [false, false, false],
            [true, false, true],
            [false, true, false],
            [true, true, true],
        ] {
            let switches = OutputSwitches { check, diff, json };
            let mut arguments = switches.arguments();
            arguments.extend(["--root=/a".into(), "--codes=own".into()]);
            let back = HandOff::try_parse_from(arguments).unwrap().output;
            assert_eq!(
                (back.action(), back.form()),
                (switches.action(), switches.form())
            );
        }
    }
}
