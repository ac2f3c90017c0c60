//! What must not be read is a file, not a name: it may have other names, and
//! get others between runs.
//!
//! Three ways lead past a covered path: another hard link below a root, the new
//! name of something that was moved since an earlier run, and a second mount of
//! the same directory.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use rustix::fs::{AtFlags, CWD, Stat, StatxFlags, statat, statx};
use sandbox_policy::facts::{
    Denial, FileId, LinkTarget, RootFacts, RootKind, RuleFacts, TargetEnd,
};
use sandbox_policy::globs::GlobRule;
use sandbox_policy::rule::{Access, Origin, Rule};
use sandbox_policy::{AbsolutePath, Policy};

use super::kind_of;
use crate::mountinfo::{MountEntry, MountTable};
use crate::resolve::id_of;

/// Inodes to look for, by number: a directory entry tells no more.
#[derive(Default)]
pub(super) struct Sought {
    by_number: BTreeMap<u64, Vec<(Denial, Origin)>>,
}

impl Sought {
    /// Tells whether anything is sought.
    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// Collects what has more than one name, and what earlier runs hid and is
    /// no longer where it was.
    pub(super) fn new(policy: &Policy, rules: &[RuleFacts], known: &[Denial]) -> Self {
        let mut sought = Self::default();
        for rule in rules.iter().filter(|rule| rule.rule.access == Access::Deny) {
            if let Some(denial) = linked(rule) {
                sought.add(denial, rule.rule.origin);
            }
        }
        let globs = policy.denied_globs().iter().map(GlobRule::matcher);
        let globs: Vec<GlobMatcher> = globs.collect();
        let is_denied = |path: &AbsolutePath| {
            policy.access(path) == Access::Deny || globs.iter().any(|glob| glob.is_match(path))
        };
        let in_place = |id| rules.iter().any(|rule| found_id(&rule.target) == Some(id));
        for denial in known {
            if is_denied(&denial.path) && !in_place(denial.id) {
                sought.add(denial.clone(), Origin::Record);
            }
        }
        sought
    }

    fn add(&mut self, denial: Denial, origin: Origin) {
        let of_number = self.by_number.entry(denial.id.ino).or_default();
        of_number.push((denial, origin));
    }

    /// Returns the rule for a directory entry that is one of those, if it is.
    pub(super) fn recognise(&self, number: u64, path: &Path) -> Option<RuleFacts> {
        let candidates = self.by_number.get(&number)?;
        let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let (denial, origin) = candidates
            .iter()
            .find(|(denial, _)| denial.id == id_of(&stat) && denial.born_ns == born_ns(path))?;
        let rule = Rule::new(denial.path.clone(), Access::Deny, *origin);
        at(rule, path, &stat)
    }
}

/// Makes a rule hold at one more place.
fn at(rule: Rule, path: &Path, stat: &Stat) -> Option<RuleFacts> {
    let end = TargetEnd::Found {
        real: AbsolutePath::new(path).ok()?,
        id: id_of(stat),
        kind: kind_of(stat),
    };
    let crossed = Vec::new();
    let target = LinkTarget { crossed, end };
    Some(RuleFacts { rule, target })
}

/// Remembers what a rule denies by what is at a path.
fn denial(rule: &RuleFacts, real: &AbsolutePath, id: FileId) -> Denial {
    Denial {
        path: rule.rule.path.clone(),
        id,
        born_ns: born_ns(real.as_path()),
    }
}

fn found_id(target: &LinkTarget) -> Option<FileId> {
    match target.end {
        TargetEnd::Found { id, .. } => Some(id),
        TargetEnd::Missing { .. } => None,
    }
}

/// Returns a denied file that has another name somewhere.
fn linked(rule: &RuleFacts) -> Option<Denial> {
    let TargetEnd::Found { real, id, kind } = &rule.target.end else {
        return None;
    };
    if *kind == RootKind::Directory {
        return None;
    }
    let stat = statat(CWD, real.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (stat.st_nlink > 1 && id_of(&stat) == *id).then(|| denial(rule, real, *id))
}

/// Lists what is denied below the roots, for the next run.
pub(super) fn below_roots(rules: &[RuleFacts], roots: &[RootFacts]) -> Vec<Denial> {
    let resolved = || roots.iter().filter_map(|root| root.resolved.as_ref());
    let denied = rules.iter().filter(|rule| {
        let is_kept = !matches!(rule.rule.origin, Origin::Secret);
        rule.rule.access == Access::Deny && is_kept
    });
    let found = denied.filter_map(|rule| match &rule.target.end {
        TargetEnd::Found { real, id, .. } if resolved().any(|root| real.is_below(&root.real)) => {
            Some(denial(rule, real, *id))
        }
        _ => None,
    });
    let mut denials: Vec<Denial> = found.collect();
    denials.sort();
    denials.dedup();
    denials
}

fn born_ns(path: &Path) -> Option<i128> {
    let stat = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    let known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let seconds = i128::from(stat.stx_btime.tv_sec);
    known.then(|| seconds * 1_000_000_000 + i128::from(stat.stx_btime.tv_nsec))
}

/// Lists further places of what is denied: where its file system is mounted once
/// more. Without a list of mounts none is known.
pub(super) fn second_mounts(rules: &[RuleFacts]) -> Vec<RuleFacts> {
    let denied: Vec<&RuleFacts> = rules
        .iter()
        .filter(|rule| rule.rule.access == Access::Deny && found_id(&rule.target).is_some())
        .collect();
    if denied.is_empty() {
        return Vec::new();
    }
    let Ok(table) = MountTable::read() else {
        return Vec::new();
    };
    let places = denied.into_iter().flat_map(|rule| {
        let TargetEnd::Found { real, .. } = &rule.target.end else {
            return Vec::new();
        };
        let others = elsewhere(&table, real.as_path());
        others
            .into_iter()
            .filter_map(|place| second_place(rule, &place))
            .collect()
    });
    places.collect()
}

/// Lists the paths by which other mounts show what is at a path.
fn elsewhere(table: &MountTable, path: &Path) -> Vec<PathBuf> {
    let Some(own) = table.of(path) else {
        return Vec::new();
    };
    let Ok(rest) = path.strip_prefix(&own.point) else {
        return Vec::new();
    };
    let inside = own.root.join(rest);
    let shows = |other: &&MountEntry| other.id != own.id && other.device == own.device;
    let others = table.entries().iter().filter(shows);
    others
        .filter_map(|other| Some(other.point.join(inside.strip_prefix(&other.root).ok()?)))
        .map(|place| match place.as_os_str().as_bytes() {
            // Joining nothing leaves a slash behind.
            [path @ .., b'/'] if !path.is_empty() => {
                PathBuf::from(std::ffi::OsStr::from_bytes(path))
            }
            _ => place,
        })
        .collect()
}

/// A mount may be covered by another: only what is really the same counts.
fn second_place(rule: &RuleFacts, place: &Path) -> Option<RuleFacts> {
    let stat = statat(CWD, place, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if found_id(&rule.target) != Some(id_of(&stat)) {
        return None;
    }
    at(rule.rule.clone(), place, &stat)
}
