//! What is kept and what goes: a pure decision on names.

use super::name::Name;

/// The most transactions that are kept for one workspace.
pub const MOST_PER_WORKSPACE: usize = 20;

/// The most bytes that all transactions together may have.
pub const MOST_BYTES: u64 = 64 << 20;

/// The most transactions that are kept for all workspaces: each patch reads their names.
pub const MOST_IN_ALL: usize = 400;

/// The age after which a record in the making was left behind, in nanoseconds: an hour.
pub const STALE: u64 = 3600 * 1_000_000_000;

/// Returns the names that go, oldest first among those of a workspace and then
/// among all. `newest` stays whatever it costs.
pub fn superfluous(names: &[Name], newest: &Name) -> Vec<Name> {
    let mut sorted: Vec<Name> = names
        .iter()
        .filter(|name| *name != newest)
        .copied()
        .collect();
    sorted.sort_by_key(|name| std::cmp::Reverse(name.time));
    let mut kept = vec![*newest];
    let mut bytes = newest.bytes;
    let mut full = false;
    let mut gone = Vec::new();
    for name in sorted {
        let peers = kept.iter().filter(|peer| peer.workspace == name.workspace);
        if peers.count() >= MOST_PER_WORKSPACE {
            gone.push(name);
            continue;
        }
        // Once one does not fit no older one does, or history would have holes.
        full |= bytes.saturating_add(name.bytes) > MOST_BYTES || kept.len() >= MOST_IN_ALL;
        if full {
            gone.push(name);
        } else {
            bytes += name.bytes;
            kept.push(name);
        }
    }
    gone
}

/// Tells whether a record begun at a time was left behind.
pub fn is_stale(begun: u64, now: u64) -> bool {
    now.saturating_sub(begun) > STALE
}

#[cfg(test)]
mod tests {
    use super::super::name::Id;
    use super::*;

    fn name(time: u64, workspace: u64, bytes: u64) -> Name {
        Name {
            time,
            id: Id(time as u32),
            workspace,
            bytes,
        }
    }

    fn times(names: &[Name]) -> Vec<u64> {
        let mut times: Vec<u64> = names.iter().map(|name| name.time).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn each_workspace_keeps_its_last_ones() {
        let mut names: Vec<Name> = (1..=25).map(|time| name(time, 1, 10)).collect();
        names.extend((30..=31).map(|time| name(time, 2, 10)));
        let newest = name(40, 1, 10);
        assert_eq!(times(&superfluous(&names, &newest)), [1, 2, 3, 4, 5, 6]);
        // Whether the newest one is in the list already does not matter.
        names.push(newest);
        assert_eq!(times(&superfluous(&names, &newest)), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn all_workspaces_together_keep_so_many() {
        let many = MOST_IN_ALL as u64 + 3;
        let names: Vec<Name> = (1..=many).map(|time| name(time, time, 1)).collect();
        let newest = name(many + 1, 0, 1);
        assert_eq!(times(&superfluous(&names, &newest)), [1, 2, 3, 4]);
    }

    #[test]
    fn the_oldest_go_when_the_space_is_used_up() {
        let names = [
            name(1, 1, 1),
            name(2, 2, MOST_BYTES / 2),
            name(3, 3, MOST_BYTES / 2),
        ];
        let fits = name(9, 4, 0);
        assert_eq!(times(&superfluous(&names, &fits)), [1]);
        let one_more = name(9, 4, 1);
        assert_eq!(times(&superfluous(&names, &one_more)), [1, 2]);
    }

    #[test]
    fn the_newest_stays_whatever_it_costs() {
        let names = [name(1, 1, 1)];
        let huge = name(2, 1, MOST_BYTES + 1);
        assert_eq!(times(&superfluous(&names, &huge)), [1]);
        let of_a_late_clock = name(0, 1, 1);
        assert!(superfluous(&names, &of_a_late_clock).is_empty());
    }

    #[test]
    fn records_in_the_making_are_given_time() {
        assert!(!is_stale(5, 5 + STALE));
        assert!(is_stale(5, 6 + STALE));
        assert!(!is_stale(u64::MAX, 5), "a clock that was put back");
    }
}
