//! Where the rules lead that take something away, or give reading back.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, readlinkat, statat};
use sandbox_policy::facts::{LinkTarget, RootFacts, RuleFacts};
use sandbox_policy::rule::{Access, Origin, Rule};
use sandbox_policy::{AbsolutePath, Policy};

use super::names::link_target;
use crate::error::{Context, Errno, Error, Step};
use crate::resolve::{Links, walk};

/// What the rules lead to.
#[derive(Default)]
pub(super) struct FoundRules {
    pub(super) rules: Vec<RuleFacts>,
    /// Links on the way to what stays visible, with their texts.
    pub(super) links: Vec<(AbsolutePath, OsString)>,
}

/// Looks at every rule that narrows the policy.
///
/// What the caller cannot reach is left out: nobody inside has more rights.
pub(super) fn look_at_rules(policy: &Policy, roots: &[RootFacts]) -> Result<FoundRules, Error> {
    let is_restricted = policy.base() == Access::Deny;
    let mut found = FoundRules::default();
    for rule in policy.narrowing_rules() {
        if let Some(target) = look_at_rule(rule)? {
            if is_restricted && rule.access == Access::Read {
                found.add_links(&target)?;
            }
            let rule = rule.clone();
            found.rules.push(RuleFacts { rule, target });
        }
    }
    if is_restricted {
        for root in roots.iter().filter(|root| root.resolved.is_some()) {
            let path = root.logical.as_path();
            let walked = walk(path, Links::Follow).and_then(link_target);
            found.add_links(&walked.during_on(Step::ResolveRoot, path)?)?;
        }
    }
    found.links.sort();
    found.links.dedup();
    Ok(found)
}

/// Looks at a path that a pattern denies; what is gone again needs no rule.
pub(super) fn look_at_match(path: &Path) -> Option<RuleFacts> {
    let logical = AbsolutePath::new(path).ok()?;
    let target = walk(path, Links::Follow).and_then(link_target).ok()?;
    let rule = Rule::new(logical, Access::Deny, Origin::Glob);
    Some(RuleFacts { rule, target })
}

fn look_at_rule(rule: &Rule) -> Result<Option<LinkTarget>, Error> {
    let path = rule.path.as_path();
    if rule.origin == Origin::Secret && is_missing(path) {
        return Ok(None);
    }
    match walk(path, Links::Follow).and_then(link_target) {
        Err(Errno(libc::EACCES)) => Ok(None),
        // A loop leads nowhere, whoever follows it.
        Err(Errno(libc::ELOOP)) => Ok(None),
        other => other.map(Some).during_on(Step::ResolveRule, path),
    }
}

/// Asks in one call whether anything is there: most secrets are not.
fn is_missing(path: &Path) -> bool {
    let looked = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    matches!(looked, Err(rustix::io::Errno::NOENT))
}

impl FoundRules {
    fn add_links(&mut self, target: &LinkTarget) -> Result<(), Error> {
        for (link, _) in &target.crossed {
            let path = link.as_path();
            let text = readlinkat(CWD, path, Vec::new());
            let text = text.during_on(Step::ResolveRule, path)?.into_bytes();
            self.links.push((link.clone(), OsString::from_vec(text)));
        }
        Ok(())
    }
}
