//! The dialect switches as they are typed, handed on and understood.

use std::ffi::OsString;

use apply_patch::options::{
    Durability, FinalNewline, LinkedFiles, OnAmbiguous, OnExisting, Options, Unchanged,
};
use clap::{Args, ValueEnum};

/// Where the results of one patch may differ from another's.
#[derive(Debug, Clone, Copy, Args)]
pub struct PatchSwitches {
    /// The set of defaults for the switches below
    #[arg(long, value_enum, default_value_t = Dialect::Safe, value_name = "NAME")]
    pub dialect: Dialect,

    /// An Add or a Move onto an existing file
    #[arg(long, value_enum, value_name = "WHAT")]
    pub on_existing: Option<Existing>,

    /// A chunk that fits several places equally well
    #[arg(long, value_enum, value_name = "WHAT")]
    pub on_ambiguous: Option<Ambiguous>,

    /// A last line without a line end
    #[arg(long, value_enum, value_name = "WHAT")]
    pub final_newline: Option<Newline>,

    /// The other names of a hard-linked file
    #[arg(long, value_enum, value_name = "WHAT")]
    pub linked_files: Option<Linked>,

    /// Waits until everything has reached the disk (fsync), against power failures
    #[arg(long)]
    pub durable: bool,
}

/// A set of defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// What could lose or misplace something is refused
    Safe,
    /// Results as the reference tool's, wherever nothing is lost
    Codex,
}

impl Dialect {
    /// Returns its name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// An Add or a Move onto an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Existing {
    /// The patch does not apply
    Refuse,
    /// The file is replaced, and reported as modified
    Replace,
}

/// A chunk that fits several places equally well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ambiguous {
    /// The patch does not apply
    Refuse,
    /// The first place is taken, with a warning
    First,
}

/// A last line without a line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Newline {
    /// The file keeps what it had
    Keep,
    /// A line end is added
    Add,
}

/// The other names of a hard-linked file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Linked {
    /// Names inside the roots get the new content too
    Follow,
    /// Only the named path changes
    Break,
    /// The patch does not apply
    Refuse,
}

impl PatchSwitches {
    /// Returns the plain switches of a dialect.
    pub const fn of(dialect: Dialect) -> Self {
        Self {
            dialect,
            on_existing: None,
            on_ambiguous: None,
            final_newline: None,
            linked_files: None,
            durable: false,
        }
    }

    /// Returns what the switches mean to the engine.
    pub fn options(&self) -> Options {
        let base = match self.dialect {
            Dialect::Safe => Options::safe(),
            Dialect::Codex => Options::codex(),
        };
        Options {
            on_existing: self.on_existing.map_or(base.on_existing, |it| match it {
                Existing::Refuse => OnExisting::Refuse,
                Existing::Replace => OnExisting::Replace,
            }),
            on_ambiguous: self.on_ambiguous.map_or(base.on_ambiguous, |it| match it {
                Ambiguous::Refuse => OnAmbiguous::Refuse,
                Ambiguous::First => OnAmbiguous::First,
            }),
            final_newline: self
                .final_newline
                .map_or(base.final_newline, |it| match it {
                    Newline::Keep => FinalNewline::Keep,
                    Newline::Add => FinalNewline::Add,
                }),
            linked_files: self.linked_files.map_or(base.linked_files, |it| match it {
                Linked::Follow => LinkedFiles::Follow,
                Linked::Break => LinkedFiles::Break,
                Linked::Refuse => LinkedFiles::Refuse,
            }),
            closed_header: base.closed_header,
            durability: match self.durable {
                true => Durability::Disk,
                false => Durability::Process,
            },
            unchanged: match self.dialect {
                Dialect::Safe => Unchanged::Note,
                Dialect::Codex => Unchanged::Modified,
            },
        }
    }

    /// Returns the switches as arguments, for the inner stage.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![argument("dialect", self.dialect)];
        arguments.extend(self.on_existing.map(|it| argument("on-existing", it)));
        arguments.extend(self.on_ambiguous.map(|it| argument("on-ambiguous", it)));
        arguments.extend(self.final_newline.map(|it| argument("final-newline", it)));
        arguments.extend(self.linked_files.map(|it| argument("linked-files", it)));
        arguments.extend(self.durable.then(|| "--durable".into()));
        arguments
    }
}

/// Spells `--name=value`.
pub fn argument(name: &str, value: impl ValueEnum) -> OsString {
    let value = value.to_possible_value();
    let text = value.as_ref().map_or("", |value| value.get_name());
    OsString::from(format!("--{name}={text}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Codes, HandOff};

    #[test]
    fn switches_survive_the_hand_off() {
        let switches = PatchSwitches {
            dialect: Dialect::Codex,
            on_existing: Some(Existing::Refuse),
            on_ambiguous: None,
            final_newline: Some(Newline::Keep),
            linked_files: Some(Linked::Break),
            durable: true,
        };
        let mut arguments = switches.arguments();
        arguments.push("--root=/a b/c".into());
        arguments.push(argument("codes", Codes::Reference));
        let back = HandOff::try_parse_from(arguments).unwrap();
        assert_eq!(back.switches.options(), switches.options());
        assert_eq!(back.roots, [std::path::PathBuf::from("/a b/c")]);
        assert_eq!(back.codes, Codes::Reference);
    }
}
