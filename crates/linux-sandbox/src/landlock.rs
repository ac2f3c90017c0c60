//! The second opinion on every file: Landlock rules that name the same places
//! as the mounts, by inode.
//!
//! Mounts alone let a program write to a FIFO outside, or open an inherited
//! descriptor again for writing through `/proc`; Landlock stops both. `/proc`
//! itself gets no write right, and is mounted read-only beside: programs that
//! tune themselves there (`oom_score_adj`, `coredump_filter`) are refused.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Stat, fstat};

use crate::error::Errno;
use crate::report::LandlockStatus;

/// The newest kernel interface whose rights are asked for: 6 added scopes.
const WANTED: ABI = ABI::V6;

/// Which rights a place gets.
#[derive(Clone, Copy)]
pub(crate) enum Rights {
    /// Reading and executing.
    Read,
    /// Everything but making device nodes.
    Full,
    /// Everything that a single file can be asked for.
    File,
    /// Reading, writing and controlling a device.
    Device,
}

impl Rights {
    fn access(self) -> BitFlags<AccessFs> {
        match self {
            Self::Read => AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir,
            Self::Full => AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
            Self::File => AccessFs::from_file(WANTED),
            Self::Device => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev,
        }
    }
}

/// Restricts this process to what the places allow, for good.
pub(crate) fn restrict(places: &[(OwnedFd, Rights)]) -> Result<LandlockStatus, Errno> {
    let status = build(places).map_err(|error| errno_of(&error))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(LandlockStatus::Full),
        RulesetStatus::PartiallyEnforced => Ok(LandlockStatus::Partial),
        RulesetStatus::NotEnforced => Err(Errno(libc::ENOSYS)),
    }
}

fn build(places: &[(OwnedFd, Rights)]) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    for (fd, rights) in places {
        rules = add(rules, fd.as_fd(), *rights)?;
    }
    for fd in standard_devices() {
        rules = add(rules, fd, Rights::Device)?;
    }
    // This also sets `no_new_privs`.
    rules.restrict_self()
}

fn add(
    rules: RulesetCreated,
    fd: BorrowedFd<'_>,
    rights: Rights,
) -> Result<RulesetCreated, RulesetError> {
    rules.add_rule(PathBeneath::new(fd, rights.access()))
}

/// Returns those of the standard descriptors that are terminals or harmless
/// nodes such as `/dev/null`: a program may open them again by name
/// (`> /dev/stderr`), which for any other file outside of the roots stays
/// refused.
fn standard_devices() -> impl Iterator<Item = BorrowedFd<'static>> {
    let standard = [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ];
    standard
        .into_iter()
        .filter(|fd| fstat(fd).is_ok_and(|stat| is_harmless(&stat)))
}

/// Tells a terminal or an endless node by its number: virtual consoles and
/// serial lines, `/dev/tty` and the console, pseudo-terminals; null, zero, full,
/// random, urandom.
pub(crate) fn is_harmless(stat: &Stat) -> bool {
    if FileType::from_raw_mode(stat.st_mode) != FileType::CharacterDevice {
        return false;
    }
    let device = stat.st_rdev;
    match (rustix::fs::major(device), rustix::fs::minor(device)) {
        (4 | 5 | 136..=143 | 204, _) => true,
        (1, minor) => matches!(minor, 3 | 5 | 7 | 8 | 9),
        _ => false,
    }
}

/// Digs the error number out of the library's nested errors.
fn errno_of(error: &RulesetError) -> Errno {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        let number = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error);
        if let Some(number) = number {
            return Errno(number);
        }
        next = error.source();
    }
    Errno(libc::EINVAL)
}
