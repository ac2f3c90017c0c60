//! `SIGKILL` at every system call of a patch.
//!
//! For each call from the first staging call on, one run is killed there; the
//! next run recovers; then the tree is the old one or the new one, entirely,
//! with no name of sandpatch's own in it. The next run is `sandpatch undo
//! --recover`, another patch or a command, in turn. Recovery itself is killed at
//! each of its calls, too, and done again. An undo is a transaction like a
//! patch, and is killed like one.
//!
//! `CRASH_TEST=full` (`scripts/crash-test`) does all recoveries after a kill on
//! either side of each call, and kills the recoveries of more of them at every
//! call; without it a sample of the same. The totals go to standard error.
//!
//! Tracing knows the registers of x86-64 only; elsewhere there is no test here.
#![cfg(target_arch = "x86_64")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test helpers fail the test that called them, and report totals"
)]

mod afterwards;
mod harness;

use harness::{Harness, NextRun, Totals, Verdict, is_full};
use sandpatch_tests::trace::Side;
use sandpatch_tests::{Scenario, degrade};

/// Kills a patch at every call; every tree must be whole after the next run.
fn every_call(scenario: Scenario) {
    let harness = Harness::new(scenario);
    let mut totals = Totals::default();
    for side in [Side::Before, Side::After] {
        for index in 0..harness.calls() {
            for next in next_runs(index, side) {
                totals.add(&harness.kill(index, side, next));
            }
        }
    }
    totals.report(&harness, "killed and recovered");
    totals.assert_whole();
    assert!(totals.old > 0 && totals.new > 0, "{totals:?}");
}

/// The recoveries to try after one kill: each kind is tried on each side of
/// the calls by turns, or all always.
fn next_runs(index: usize, side: Side) -> Vec<NextRun> {
    let all = [NextRun::Patch, NextRun::Undo, NextRun::Run];
    match side {
        _ if is_full() => all.to_vec(),
        // After one call is before the next, but for the calls of the program
        // itself in between: the sample looks from before.
        Side::Before => vec![all[index % 3]],
        Side::After => Vec::new(),
    }
}

#[test]
fn one_operation() {
    every_call(Scenario::one());
}

#[test]
fn two_operations() {
    every_call(Scenario::two());
}

#[test]
fn twenty_operations() {
    every_call(Scenario::twenty());
}

#[test]
fn in_place() {
    every_call(Scenario::in_place());
}

#[test]
fn undo_of_two_operations() {
    every_call(Scenario::two().undone());
}

#[test]
fn undo_of_twenty_operations() {
    every_call(Scenario::twenty().undone());
}

#[test]
fn undo_in_place() {
    every_call(Scenario::in_place().undone());
}

#[test]
fn undo_of_twenty_operations_on_a_poor_file_system() {
    degrade::without_unnamed_files_and_exchange();
    every_call(Scenario::twenty().undone());
}

#[test]
fn twenty_operations_on_a_poor_file_system() {
    degrade::without_unnamed_files_and_exchange();
    every_call(Scenario::twenty());
}

#[test]
fn two_operations_on_an_old_kernel() {
    degrade::without_unnamed_files_and_exchange();
    degrade::without_openat2();
    every_call(Scenario::two());
}

/// Kills the recovery of a killed patch at each of its calls.
fn killed_recovery(scenario: Scenario, sample: usize) {
    let harness = Harness::new(scenario);
    let sample = if is_full() { 40 } else { sample };
    let step = (harness.calls() / sample).max(1);
    let mut totals = Totals::default();
    for first in (step / 2..harness.calls()).step_by(step) {
        harness.kill_recovery(first, &mut totals);
    }
    totals.report(&harness, "recovery killed and done again");
    totals.assert_whole();
    assert!(totals.old + totals.new > 0, "{totals:?}");
}

#[test]
fn recovery_of_two_operations_is_killed() {
    killed_recovery(Scenario::two(), 20);
}

#[test]
fn recovery_of_twenty_operations_is_killed() {
    killed_recovery(Scenario::twenty(), 8);
}

#[test]
fn recovery_of_two_operations_on_a_poor_file_system_is_killed() {
    degrade::without_unnamed_files_and_exchange();
    killed_recovery(Scenario::two(), 10);
}

#[test]
fn recovery_of_an_undo_is_killed() {
    killed_recovery(Scenario::two().undone(), 10);
}

#[test]
fn recovery_in_place_is_killed() {
    killed_recovery(Scenario::in_place(), 20);
}

/// The control of all the others: without the next run, kills leave mixtures
/// and litter, and this harness sees both.
#[test]
fn without_recovery_the_harness_sees_what_is_broken() {
    for scenario in [Scenario::two(), Scenario::twenty(), Scenario::in_place()] {
        let harness = Harness::new(scenario);
        let mut totals = Totals::default();
        for index in 0..harness.calls() {
            totals.add(&harness.kill(index, Side::Before, NextRun::Nothing));
        }
        totals.report(&harness, "killed and NOT recovered (control)");
        assert!(!totals.broken.is_empty(), "nothing broken: {totals:?}");
        let is_littered = |text: &String| text.contains("left behind");
        assert!(
            totals.broken.iter().any(is_littered),
            "no litter: {totals:?}"
        );
    }
}

/// A kill before anything was staged, and one after everything was done.
#[test]
fn the_ends_of_the_range_are_the_old_and_the_new_tree() {
    let harness = Harness::new(Scenario::twenty());
    for next in [NextRun::Nothing, NextRun::Patch] {
        let first = harness.kill(0, Side::Before, next);
        assert_eq!(first, Verdict::Old, "{next:?}");
        let last = harness.calls() - 1;
        let last = harness.kill(last, Side::Before, next);
        assert_eq!(last, Verdict::New, "{next:?}");
    }
}

/// The next run after a kill that left nothing to recover is killed, too.
#[test]
fn a_next_run_with_nothing_to_recover_is_killed() {
    let harness = Harness::new(Scenario::two());
    let mut totals = Totals::default();
    harness.kill_recovery(0, &mut totals);
    totals.report(&harness, "next run killed");
    totals.assert_whole();
    assert!(totals.old > 10 && totals.new == 0, "{totals:?}");
}
