//! The policy flags: what may be read and changed, and how that is enforced.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Policy flags that every subcommand has.
#[derive(Debug, Clone, Default, Args)]
pub struct PolicyFlags {
    /// Works in DIR, which is then the writable root
    #[arg(short = 'C', long = "cd", value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Makes PATH a further writable root (may be repeated)
    #[arg(long, value_name = "PATH")]
    pub writable: Vec<PathBuf>,

    /// Lets PATH be read: below a writable root it is then read-only, and where a default hides it,
    /// it is shown (may be repeated)
    #[arg(long, value_name = "PATH")]
    pub readable: Vec<PathBuf>,

    /// Hides PATH, or every file whose path matches a pattern (**/.env), from reading and changing
    /// (may be repeated)
    #[arg(long, value_name = "PATH|PATTERN")]
    pub deny_read: Vec<PathBuf>,

    /// Protects one more NAME directly below every writable root (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub protect: Vec<OsString>,

    /// Stops protecting NAME; of .git the hooks and settings stay read-only (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub unprotect: Vec<OsString>,

    /// Becomes this user first, before anything is opened (root only)
    #[arg(long, value_name = "NAME|UID[:GID]")]
    pub as_user: Option<String>,

    /// How the sandbox is built
    #[arg(long, value_enum, default_value_t = Backend::Auto, value_name = "NAME")]
    pub backend: Backend,
}

/// Policy flags of what runs or explains a command.
#[derive(Debug, Clone, Args)]
pub struct CommandFlags {
    /// The network that the command sees
    #[arg(long, value_enum, default_value_t = NetworkMode::None, value_name = "MODE")]
    pub network: NetworkMode,

    /// The /tmp that the command sees
    #[arg(long, value_enum, default_value_t = TmpMode::Private, value_name = "MODE")]
    pub tmp: TmpMode,

    /// Whether keys and tokens in the home directory can be read
    #[arg(long, value_enum, default_value_t = Secrets::Hide, value_name = "MODE")]
    pub secrets: Secrets,

    /// How protected names that do not exist are kept from being made
    #[arg(long, value_enum, default_value_t = MissingNamesMode::Placeholder, value_name = "MODE")]
    pub missing_names: MissingNamesMode,
}

/// How missing protected names are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MissingNamesMode {
    /// By an empty directory that is there while the command runs
    Placeholder,
    /// Not at all
    Off,
}

/// Whether secrets can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Secrets {
    /// No: they are answered with "permission denied"
    Hide,
    /// Yes, like everything else
    Show,
}

/// How the sandbox is built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The first that works
    #[default]
    Auto,
    /// Built in: namespaces and mounts
    Native,
    /// By the first bwrap on PATH that works, and checked from inside
    Bubblewrap,
    /// No sandbox at all
    None,
}

/// What network there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NetworkMode {
    /// A loopback interface of its own
    None,
    /// The host's network
    Host,
}

/// What /tmp is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TmpMode {
    /// Empty, thrown away afterwards
    Private,
    /// The host's, writable
    Host,
    /// The host's, readable
    None,
}
