//! One failing call at a time.
//!
//! `FAULT_TEST=full` (`scripts/crash-test`) tries every error at every call;
//! without it the calls of a long patch fail with one of them each, by turns.
//! The totals go to standard error.

use std::collections::BTreeMap;
use std::path::Path;

use nix::errno::Errno;
use nix::libc;
use sandpatch_tests::limited::Ended;
use sandpatch_tests::trace::{self, Call, Landmark, Plan, Traced};
use sandpatch_tests::{Scenario, Tree, degrade};

const ERRORS: [Errno; 6] = [
    Errno::EIO,
    Errno::EACCES,
    Errno::EMFILE,
    Errno::ENOSPC,
    Errno::EDQUOT,
    Errno::EINTR,
];

/// Calls of the allocator, the signal machinery and the end: they have no
/// failure that a patch could be blamed for.
const OUT_OF_SCOPE: [i64; 14] = [
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_futex,
    libc::SYS_gettid,
    libc::SYS_exit_group,
    libc::SYS_exit,
];

const JOURNAL: &str = ".sandpatch-journal";

struct Harness {
    scenario: Scenario,
    old: Tree,
    new: Tree,
    calls: Vec<Call>,
}

/// How often the patch was refused, and how often it was applied nevertheless.
#[derive(Debug, Default)]
struct Totals {
    refused: usize,
    applied: usize,
    by_call: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Harness {
    fn new(scenario: Scenario) -> Self {
        let (old, new) = scenario.old_and_new();
        scenario.reset();
        let patch = scenario.patch.as_bytes();
        let watched = trace::run(scenario.inner(), patch, Landmark::Staging, Plan::Watch);
        assert!(watched.outcome.succeeded(), "{}", watched.outcome);
        Self {
            scenario,
            old,
            new,
            calls: watched.calls,
        }
    }

    fn fail(&self, index: usize, errno: Errno) -> Traced {
        self.scenario.reset();
        let patch = self.scenario.patch.as_bytes();
        let plan = Plan::Fail(index, errno);
        trace::run(self.scenario.inner(), patch, Landmark::Staging, plan)
    }

    /// Makes one call fail; adds what is wrong with what came of it.
    fn check(&self, index: usize, errno: Errno, totals: &mut Totals) {
        let traced = self.fail(index, errno);
        let call = traced.hit.expect("the call came");
        *totals.by_call.entry(call.name()).or_default() += 1;
        let problem = match traced.outcome.ended {
            Ended::Code(0) => {
                totals.applied += 1;
                self.problem_of_success(&traced, call)
            }
            Ended::Code(1) => {
                totals.refused += 1;
                self.problem_of_refusal(&traced, call, errno)
            }
            ended => Some(format!("ended with {ended}")),
        };
        let problem = problem.or_else(|| self.problem_of_the_next_run());
        let name = self.scenario.name;
        if let Some(problem) = problem {
            let now = self.scenario.tree();
            totals.wrong.push(format!(
                "{name}: call {index}, {} fails with {errno:?}: {problem}\n{}{}",
                call.name(),
                traced.outcome,
                now.neither(&self.old, &self.new),
            ));
        }
    }

    fn problem_of_success(&self, traced: &Traced, call: Call) -> Option<String> {
        let now = self.scenario.tree();
        let litter = now.litter();
        let text = traced.outcome.stderr_text();
        // A directory that may not be read hides the other names of a file.
        if litter.is_empty() && text.contains(" keep the old content") {
            return self.problem_of_kept_names(&now);
        }
        if litter.is_empty() {
            return (now != self.new).then(|| "code 0, but the tree is not the new one".to_owned());
        }
        // What could not be removed in the end is named, and nothing else stays
        // but the journal that lets the next run remove it.
        let is_named = |name: &&Path| {
            let name = name.file_name().unwrap_or_default();
            text.contains(&*name.to_string_lossy())
        };
        let is_kept = |name: &&Path| is_named(name) || name.ends_with(JOURNAL);
        if call.number != libc::SYS_unlinkat
            || !litter.iter().all(is_kept)
            || !litter.iter().any(is_named)
        {
            return Some(format!("left behind: {litter:?}"));
        }
        let only = Tree::difference(&self.new, &now).lines().count();
        (only != litter.len()).then(|| "more than litter differs".to_owned())
    }

    /// All is new but one other name of a file, which the note tells.
    fn problem_of_kept_names(&self, now: &Tree) -> Option<String> {
        let difference = self.new.difference(now);
        let is_about_it = |line: &str| line.starts_with("hard2: ") || line.contains("\"hard2\"");
        (!difference.lines().all(is_about_it)).then_some(difference)
    }

    fn problem_of_refusal(&self, traced: &Traced, call: Call, errno: Errno) -> Option<String> {
        let now = self.scenario.tree();
        // A report that cannot be written: applied, but not reported.
        let is_report = call.number == libc::SYS_write && call.arguments[0] == 1;
        let expected = if is_report { &self.new } else { &self.old };
        if now != *expected {
            return Some("code 1, but the tree changed".to_owned());
        }
        let text = traced.outcome.stderr_text();
        // What may not be done is done otherwise, in place or without the
        // attributes; what forbids that is the reason that is given.
        let others = ["(hard links)", "would be lost"];
        if errno == Errno::EACCES && others.iter().any(|reason| text.contains(reason)) {
            return None;
        }
        let cause = std::io::Error::from(errno).to_string();
        (!text.contains(&cause)).then(|| format!("the message lacks {cause:?}"))
    }

    /// Whatever was left, the next patch removes.
    fn problem_of_the_next_run(&self) -> Option<String> {
        let before = self.scenario.tree();
        let litter = before.litter();
        if litter.is_empty() {
            return None;
        }
        let failed = self.scenario.next_patch().err();
        let after = self.scenario.tree();
        let is_whole = after == self.old || after == self.new;
        failed.or_else(|| (!is_whole).then(|| "not recovered by the next patch".to_owned()))
    }
}

/// The errors to try at one call: all, or one by turns in a long patch.
fn errors_at(index: usize, calls: usize) -> Vec<Errno> {
    const SHORT: usize = 100;
    let is_full = std::env::var_os("FAULT_TEST").is_some_and(|value| value == "full");
    if is_full || calls < SHORT {
        return ERRORS.to_vec();
    }
    vec![ERRORS[index % ERRORS.len()]]
}

fn every_call(scenario: Scenario) {
    let harness = Harness::new(scenario);
    let mut totals = Totals::default();
    for (index, call) in harness.calls.iter().enumerate() {
        if OUT_OF_SCOPE.contains(&call.number) {
            continue;
        }
        for errno in errors_at(index, harness.calls.len()) {
            harness.check(index, errno, &mut totals);
        }
    }
    let Totals {
        refused,
        applied,
        by_call,
        wrong,
    } = &totals;
    let name = harness.scenario.name;
    let count = wrong.len();
    eprintln!(
        "fault totals: {name}: {refused} refused, {applied} applied, {count} wrong: {by_call:?}"
    );
    let heads = wrong.iter().filter_map(|text| text.lines().next());
    let heads: Vec<&str> = heads.take(40).collect();
    let shown: Vec<&str> = wrong.iter().take(5).map(String::as_str).collect();
    let (heads, shown) = (heads.join("\n"), shown.join("\n"));
    assert!(
        wrong.is_empty(),
        "{count} wrong:\n{heads}\nsuch as:\n{shown}"
    );
    assert!(*refused > 0 && *applied > 0, "{totals:?}");
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
fn two_operations_on_an_old_kernel() {
    degrade::without_unnamed_files_and_exchange();
    degrade::without_openat2();
    every_call(Scenario::two());
}

#[test]
fn twenty_operations_on_a_poor_file_system() {
    degrade::without_unnamed_files_and_exchange();
    every_call(Scenario::twenty());
}

#[test]
fn in_place() {
    every_call(Scenario::in_place());
}
