//! What the caller wants, before anything is known about the host.

use serde::{Deserialize, Serialize};

use std::ffi::{OsStr, OsString};

use crate::globs::GlobRule;
use crate::path::AbsolutePath;
use crate::plan::decide;
pub use crate::rule::Access;
use crate::rule::{Origin, Rule};

/// Names directly below a writable root that stay read-only: they hold code or
/// settings that run outside the sandbox later.
pub const PROTECTED_NAMES: [&str; 3] = [".git", ".codex", ".agents"];

/// Names in a git directory by which it runs programs or leads elsewhere; they
/// are held also where the rest of the directory may be written.
pub const GUARDED_NAMES: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

/// The name of a git directory, or of the file that points to one.
pub const GIT: &str = ".git";

/// Which network the sandboxed program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Network {
    /// Its own, with nothing but a loopback interface.
    #[default]
    None,
    /// The host's.
    Host,
}

/// Which `/tmp` the sandboxed program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tmp {
    /// An empty writable one that is thrown away after the run.
    #[default]
    Private,
    /// The host's, writable.
    Host,
    /// The host's, read-only.
    None,
}

/// How protected names that do not exist are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MissingNames {
    /// By empty directories, for the time of a run.
    #[default]
    Placeholder,
    /// Not at all: the program can make them.
    Off,
}

/// What the sandbox is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Purpose {
    /// Any program that the caller names.
    Command,
    /// The patch stage: our own code, which refuses protected names itself.
    Patch,
}

/// What is held below a writable root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    /// The protected names stay read-only.
    ProtectedNames,
    /// The root is a git directory: [`GUARDED_NAMES`] stay read-only.
    GitDirectory,
    /// Nothing below the root is held.
    Nothing,
}

/// One place that the sandboxed program may change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WritableRoot {
    path: AbsolutePath,
    protection: Protection,
    origin: Origin,
}

impl WritableRoot {
    /// Returns the logical path.
    pub fn path(&self) -> &AbsolutePath {
        &self.path
    }

    /// Returns what is held below the root.
    pub fn protection(&self) -> Protection {
        self.protection
    }

    /// Returns who made it a root.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

/// Everything that a caller may decide about a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
    denied_globs: Vec<GlobRule>,
    names: Vec<OsString>,
    opens_git: bool,
    network: Network,
    tmp: Tmp,
    missing: MissingNames,
}

impl Policy {
    /// Makes a policy of rules alone: what no rule names cannot be read, there
    /// is no network, and `/tmp` is what the rules say.
    pub fn of_rules(rules: impl IntoIterator<Item = Rule>) -> Self {
        let policy = Self {
            rules: Vec::new(),
            denied_globs: Vec::new(),
            names: PROTECTED_NAMES.map(OsString::from).to_vec(),
            opens_git: false,
            network: Network::None,
            tmp: Tmp::None,
            missing: MissingNames::Placeholder,
        };
        rules.into_iter().fold(policy, Self::with_rule)
    }

    /// Makes the default policy: everything readable, `cwd` writable, no
    /// network, a private `/tmp`.
    pub fn workspace(cwd: AbsolutePath) -> Self {
        Self::read_only().with_rule(Rule::new(cwd, Access::Write, Origin::Workspace))
    }

    /// Makes a policy without any writable root.
    pub fn read_only() -> Self {
        let everything = AbsolutePath::filesystem_root();
        Self::of_rules([Rule::new(everything, Access::Read, Origin::Default)])
            .with_tmp(Tmp::Private)
    }

    /// Adds a rule; a path that has the same access already keeps its origin.
    #[must_use]
    pub fn with_rule(mut self, rule: Rule) -> Self {
        let same = |known: &Rule| known.path == rule.path && known.access == rule.access;
        if !self.rules.iter().any(same) {
            self.rules.push(rule);
        }
        self
    }

    /// Hides what matches a pattern when the run begins.
    #[must_use]
    pub fn with_denied_glob(mut self, glob: GlobRule) -> Self {
        if !self.denied_globs.contains(&glob) {
            self.denied_globs.push(glob);
        }
        self
    }

    /// Adds a writable root of the command line; naming one twice changes nothing.
    #[must_use]
    pub fn with_writable(self, path: AbsolutePath) -> Self {
        self.with_rule(Rule::new(path, Access::Write, Origin::Flag("--writable")))
    }

    /// Hides secrets, except those that a flag names or that lie below what one
    /// names: a default never outranks what was typed.
    #[must_use]
    pub fn with_secrets(self, secrets: impl IntoIterator<Item = AbsolutePath>) -> Self {
        let typed: Vec<AbsolutePath> = self
            .rules
            .iter()
            .filter(|rule| matches!(rule.origin, Origin::Flag(_)) && rule.access != Access::Deny)
            .map(|rule| rule.path.clone())
            .collect();
        let hidden = secrets
            .into_iter()
            .filter(|secret| !typed.iter().any(|path| secret.is_within(path)));
        hidden
            .map(|path| Rule::new(path, Access::Deny, Origin::Secret))
            .fold(self, Self::with_rule)
    }

    /// Protects one more name below every writable root.
    #[must_use]
    pub fn with_protected_name(mut self, name: OsString) -> Self {
        if !self.names.contains(&name) {
            self.names.push(name);
        }
        self
    }

    /// Stops protecting a name; of `.git` the hooks and the settings stay held.
    #[must_use]
    pub fn without_protected_name(mut self, name: &OsStr) -> Self {
        self.names.retain(|known| known != name);
        self.opens_git |= name == GIT;
        self
    }

    /// Replaces the network.
    #[must_use]
    pub fn with_network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Replaces the `/tmp`.
    #[must_use]
    pub fn with_tmp(mut self, tmp: Tmp) -> Self {
        self.tmp = tmp;
        self
    }

    /// Replaces how missing names are held.
    #[must_use]
    pub fn with_missing_names(mut self, missing: MissingNames) -> Self {
        self.missing = missing;
        self
    }

    /// Returns the rules, in the order in which they were added.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the patterns of what is hidden.
    pub fn denied_globs(&self) -> &[GlobRule] {
        &self.denied_globs
    }

    /// Returns the names that are held below every writable root.
    pub fn protected_names(&self) -> &[OsString] {
        &self.names
    }

    /// Tells whether git directories may be written but for [`GUARDED_NAMES`].
    pub fn opens_git(&self) -> bool {
        self.opens_git
    }

    /// Tells whether anything is held below writable roots.
    fn protects(&self) -> bool {
        !self.names.is_empty() || self.opens_git
    }

    /// Returns the network.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Returns the `/tmp`.
    pub fn tmp(&self) -> Tmp {
        self.tmp
    }

    /// Returns how missing names are held.
    pub fn missing_names(&self) -> MissingNames {
        self.missing
    }

    /// Returns what may be done where no rule but the one for `/` says anything.
    pub fn base(&self) -> Access {
        let root = AbsolutePath::filesystem_root();
        let rules = self.rules.iter().filter(|rule| rule.path == root);
        let strongest = rules.map(|rule| rule.access).max();
        strongest.unwrap_or(Access::Deny)
    }

    /// Returns the writable roots, with the host's `/tmp` when that is one.
    ///
    /// Nothing is held directly in `/tmp`: a `.git` there would change how
    /// tools of other programs behave.
    pub fn writable_roots(&self) -> Vec<WritableRoot> {
        let tmp = AbsolutePath::of_kernel("/tmp");
        let written = self.rules.iter().filter(|rule| self.grants(rule));
        let mut roots: Vec<WritableRoot> = written
            .map(|rule| WritableRoot {
                path: rule.path.clone(),
                protection: match rule.path.file_name() {
                    Some(name) if name == GIT => Protection::GitDirectory,
                    _ if rule.path == tmp || !self.protects() => Protection::Nothing,
                    _ => Protection::ProtectedNames,
                },
                origin: rule.origin,
            })
            .collect();
        if self.tmp == Tmp::Host && !roots.iter().any(|root| root.path == tmp) {
            roots.push(WritableRoot {
                path: tmp,
                protection: Protection::Nothing,
                origin: Origin::Flag("--tmp host"),
            });
        }
        roots
    }

    /// Returns the rules that take something away or give it back for reading:
    /// all but writable roots and the one for `/`.
    pub fn narrowing_rules(&self) -> impl Iterator<Item = &Rule> {
        let root = AbsolutePath::filesystem_root();
        self.rules
            .iter()
            .filter(move |rule| rule.access != Access::Write && rule.path != root)
    }

    /// A write rule counts unless a denial has the very same path.
    fn grants(&self, rule: &Rule) -> bool {
        let denied = |other: &Rule| other.path == rule.path && other.access == Access::Deny;
        rule.access == Access::Write && !self.rules.iter().any(denied)
    }

    /// Returns what the policy says of a logical path, without any fact of the
    /// host: protected names count below every writable root.
    pub fn access(&self, path: &AbsolutePath) -> Access {
        let rules = self.rules.iter().map(|rule| (&rule.path, rule.access));
        let implied = self.implied();
        let implied = implied.iter().map(|rule| (&rule.path, rule.access));
        decide(rules.chain(implied), self.base(), path)
    }

    /// Lists the names that are held below the writable roots, unless a rule
    /// opens the very same path.
    fn implied(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        for root in self.writable_roots() {
            let names: Vec<&OsStr> = match root.protection {
                Protection::ProtectedNames => self.names.iter().map(OsString::as_os_str).collect(),
                Protection::GitDirectory => GUARDED_NAMES.map(OsStr::new).to_vec(),
                Protection::Nothing => Vec::new(),
            };
            let paths = names
                .into_iter()
                .filter_map(|name| root.path.child(name).ok());
            let opened = self.opens_git && root.protection == Protection::ProtectedNames;
            let git = root.path.child(OsStr::new(GIT)).ok().filter(|_| opened);
            let guarded = git.into_iter().flat_map(|git| {
                let names = GUARDED_NAMES.iter();
                names.filter_map(move |name| git.child(OsStr::new(name)).ok())
            });
            let paths = paths.chain(guarded);
            rules.extend(
                paths
                    .filter(|path| !self.rules.iter().any(|rule| rule.path == *path))
                    .map(|path| Rule::new(path, Access::Read, Origin::Protected)),
            );
        }
        rules
    }
}
