//! The one ordering rule: broad before narrow, and on one path the stricter
//! rule last, so that a later operation only ever refines an earlier one.

use crate::path::AbsolutePath;
use crate::policy::Access;

/// Orders operations by the path they act on, then by their access.
pub(crate) fn sort<T>(operations: &mut [T], key: impl Fn(&T) -> (AbsolutePath, Access)) {
    operations.sort_by_cached_key(|operation| {
        let (path, access) = key(operation);
        (path.depth(), path, access)
    });
}

/// Returns the access of a path: the longest matching rule wins, and on a tie
/// deny beats write and write beats read; without any rule it is `base`.
pub(crate) fn decide<'a>(
    rules: impl IntoIterator<Item = (&'a AbsolutePath, Access)>,
    base: Access,
    path: &AbsolutePath,
) -> Access {
    let matching = rules.into_iter().filter(|(rule, _)| path.is_within(rule));
    let best = matching.max_by_key(|(rule, access)| (rule.depth(), *access));
    best.map_or(base, |(_, access)| access)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str, access: Access) -> (AbsolutePath, Access) {
        (AbsolutePath::new(text).unwrap(), access)
    }

    #[test]
    fn broad_before_narrow_then_deny_last() {
        let mut rules = vec![
            rule("/a/b/c", Access::Read),
            rule("/a", Access::Deny),
            rule("/b", Access::Write),
            rule("/a", Access::Read),
            rule("/a", Access::Write),
            rule("/a/b", Access::Write),
        ];
        sort(&mut rules, Clone::clone);
        let expected = vec![
            rule("/a", Access::Read),
            rule("/a", Access::Write),
            rule("/a", Access::Deny),
            rule("/b", Access::Write),
            rule("/a/b", Access::Write),
            rule("/a/b/c", Access::Read),
        ];
        assert_eq!(rules, expected);
    }

    #[test]
    fn longest_match_wins_and_ties_go_to_the_stricter_rule() {
        let rules = [
            rule("/a", Access::Write),
            rule("/a/x", Access::Read),
            rule("/a/y", Access::Write),
            rule("/a/y", Access::Deny),
        ];
        let access = |path: &str| {
            let path = AbsolutePath::new(path).unwrap();
            let rules = rules.iter().map(|(path, access)| (path, *access));
            decide(rules, Access::Read, &path)
        };
        assert_eq!(access("/a/b"), Access::Write);
        assert_eq!(access("/a/x/b"), Access::Read);
        assert_eq!(access("/a/y"), Access::Deny);
        assert_eq!(access("/c"), Access::Read);
    }
}
