//! The command line as it is typed; what it means is decided elsewhere.

mod output;
mod policy;
pub mod switches;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use output::{Action, Form, OutputSwitches};
pub use policy::{
    Backend, CommandFlags, MissingNamesMode, NetworkMode, PolicyFlags, Secrets, TmpMode,
};
pub use switches::{Dialect, PatchSwitches};

use crate::patch::inner::Task;
use crate::state::Id;

/// Applies `*** Begin Patch` patches, and runs commands, inside a sandbox that it builds for each run.
#[derive(Debug, Parser)]
#[command(name = "sandpatch", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str =
    "Exit codes of apply: 0 applied (or would apply), 1 does not apply, 2 usage, 3 refused by policy,
125 no sandbox. Of run: the command's own, 128+n for signal n, 126 not executable,
127 not found, 125 no sandbox. Of undo: 0 undone, listed or recovered, 1 nothing to undo
or not undone, 2 usage, 3 refused by policy, 125 no sandbox.

As --run-as-apply-patch PATCH (or -) the first argument applies a patch as `apply` does;
under the names apply_patch, applypatch and apply-patch it is the reference's patch tool.";

const AFTER_HELP_OF_UNDO: &str =
    "Without ID, --list and --recover the newest transaction of the directory is taken back. When a
file is not as the patch left it, nothing is changed, and each such file is named. Directories
that the patch could write by --writable need not be named again.

The last 20 transactions of each directory are kept, 64 MiB in all, in $XDG_STATE_HOME/sandpatch
or ~/.local/state/sandpatch; none where a writable root holds that directory.

Exit codes: 0 undone, listed or recovered, 1 nothing to undo or not undone, 2 usage,
3 refused by policy, 125 no sandbox.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Applies a patch, sandboxed to the current directory
    Apply(Apply),
    /// Runs a command that can write only below the current directory
    Run(Run),
    /// Takes back a patch that was applied in the current directory, entirely or not at all
    #[command(after_help = AFTER_HELP_OF_UNDO)]
    Undo(Undo),
}

/// `sandpatch apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// The patch: a file, `-` for standard input (the default), or the text itself
    #[arg(value_name = "FILE|-|TEXT")]
    pub patch: Option<OsString>,

    /// How far to go, and how to say what came of it.
    #[command(flatten)]
    pub output: OutputSwitches,

    /// Where results may differ.
    #[command(flatten)]
    pub switches: PatchSwitches,

    /// Where it may write, and how that is enforced.
    #[command(flatten)]
    pub policy: PolicyFlags,
}

/// `sandpatch run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Where it may write, and how that is enforced.
    #[command(flatten)]
    pub policy: PolicyFlags,

    /// What the command sees beside files.
    #[command(flatten)]
    pub flags: CommandFlags,

    /// Reports what is not covered also where standard error is no terminal
    #[arg(short, long)]
    pub verbose: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `sandpatch undo`.
#[derive(Debug, Args)]
pub struct Undo {
    /// The transaction to take back, as --list shows it; without it the newest
    #[arg(value_name = "ID", conflicts_with_all = ["list", "recover"])]
    pub id: Option<Id>,

    /// Prints one line for each transaction, the newest first
    #[arg(long, conflicts_with = "recover")]
    list: bool,

    /// Ends what an interrupted patch began: all of it is done then, or none
    #[arg(long)]
    recover: bool,

    /// Prints one JSON object instead of text (docs/report.md)
    #[arg(long)]
    json: bool,

    /// Where it may write, and how that is enforced.
    #[command(flatten)]
    pub policy: PolicyFlags,
}

/// What is asked of `sandpatch undo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undoing {
    /// A list.
    List,
    /// The end of an interrupted patch.
    Recover,
    /// This transaction taken back, or the newest.
    Take(Option<Id>),
}

impl Undo {
    /// Returns what is asked for.
    pub const fn what(&self) -> Undoing {
        match self {
            Self { list: true, .. } => Undoing::List,
            Self { recover: true, .. } => Undoing::Recover,
            Self { id, .. } => Undoing::Take(*id),
        }
    }

    /// Returns how to answer.
    pub const fn form(&self) -> Form {
        match self.json {
            true => Form::Json,
            false => Form::Text,
        }
    }
}

/// What the outer stage tells the inner one, as arguments after `-`.
///
/// It is versioned by [`HAND_OFF`], and every value has a place of its own, so
/// that paths need no quoting.
#[derive(Debug, Clone, Parser)]
#[command(name = "hand-off", no_binary_name = true, disable_help_flag = true)]
pub struct HandOff {
    /// What to do.
    #[arg(long, value_enum, default_value_t = Task::Patch)]
    pub task: Task,

    /// How far to go, and how to say what came of it.
    #[command(flatten)]
    pub output: OutputSwitches,

    /// Where results may differ.
    #[command(flatten)]
    pub switches: PatchSwitches,

    /// A writable root, by its real path.
    #[arg(long = "root", value_name = "DIR", required = true)]
    pub roots: Vec<PathBuf>,

    /// Whose exit codes to use.
    #[arg(long, value_enum)]
    pub codes: Codes,

    /// Records what the patch replaces in the descriptor that is handed on.
    #[arg(long)]
    pub record: bool,

    /// Says nothing but what is noteworthy, on standard error.
    #[arg(long)]
    pub quiet: bool,

    /// Why nothing is recorded.
    #[arg(long)]
    pub no_undo: Option<String>,
}

/// Whose exit codes to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Codes {
    /// 0, 1, 2, 3
    Own,
    /// 0, 1, 2
    Reference,
}

/// The first argument of a hand-off; a surplus argument of any other text is ignored (R5).
pub const HAND_OFF: &str = "--hand-off=1";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        super::Cli::command().debug_assert();
        super::HandOff::command().debug_assert();
    }
}
