//! One kill, one recovery, one verdict.

use std::time::Duration;

use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::scenario::NEXT_PATCH;
use sandpatch_tests::trace::{self, Landmark, Plan, Side};
use sandpatch_tests::{Scenario, Tree, degrade};

const LIMIT: Duration = Duration::from_secs(30);

/// By how many calls two runs may differ: a record and a journal hold inode numbers,
/// which take more or fewer bytes, and so does the memory that is asked for.
const MOST_FEWER_CALLS: usize = 3;

/// What comes after a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// `sandpatch undo --recover`, sandboxed.
    Undo,
    /// An unrelated patch, unsandboxed.
    Patch,
    /// An unrelated command: `sandpatch run -- true`.
    Run,
    /// Nothing: what the kill left is looked at.
    Nothing,
}

/// What the tree is in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As before the patch.
    Old,
    /// As after it.
    New,
    /// Neither, or with litter: what is wrong.
    Broken(String),
}

/// Counts of verdicts.
#[derive(Debug, Default)]
pub struct Totals {
    pub old: usize,
    pub new: usize,
    pub broken: Vec<String>,
}

impl Totals {
    pub fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Old => self.old += 1,
            Verdict::New => self.new += 1,
            Verdict::Broken(text) => self.broken.push(text.clone()),
        }
    }

    /// Says how many kills there were and what came of them.
    pub fn report(&self, harness: &Harness, what: &str) {
        eprintln!(
            "crash totals: {}{}, {} calls from the staging on: {} kills {what}: {} old, {} new, {} broken",
            harness.scenario.prefix(),
            harness.scenario.name,
            harness.calls(),
            self.old + self.new + self.broken.len(),
            self.old,
            self.new,
            self.broken.len()
        );
    }

    pub fn assert_whole(&self) {
        let shown: Vec<&str> = self.broken.iter().take(5).map(String::as_str).collect();
        let count = self.broken.len();
        assert!(count == 0, "{count} broken, such as:\n{}", shown.join("\n"));
    }
}

/// True when every kill and every recovery is to be tried.
pub fn is_full() -> bool {
    std::env::var("CRASH_TEST").is_ok_and(|mode| mode == "full")
}

/// A scenario with what it looks like before and after, and how long it is.
pub struct Harness {
    scenario: Scenario,
    old: Tree,
    new: Tree,
    calls: Vec<trace::Call>,
}

impl Harness {
    /// Does the patch twice undisturbed: for its results and for its calls.
    pub fn new(scenario: Scenario) -> Self {
        let (old, new) = scenario.old_and_new();
        scenario.reset();
        let input = scenario.input();
        let watched = trace::run(scenario.command(), &input, Landmark::Staging, Plan::Watch);
        assert!(watched.outcome.succeeded(), "{}", watched.outcome);
        assert_eq!(scenario.tree(), new, "watching changes the result");
        assert!(watched.calls.len() > 20, "{:?}", watched.calls);
        Self {
            scenario,
            old,
            new,
            calls: watched.calls,
        }
    }

    /// How many calls there are from the first staging call on.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Kills the patch at one call, lets the next run come, and judges.
    pub fn kill(&self, index: usize, side: Side, next: NextRun) -> Verdict {
        let at = self.kill_patch(index, side);
        let after = match next {
            NextRun::Nothing => Ok(()),
            NextRun::Undo => self.sandpatch(&["undo", "--recover"]),
            NextRun::Run => self.sandpatch(&["run", "true"]),
            NextRun::Patch => self.scenario.next_patch(),
        };
        self.judge(&format!("{next:?} after {at}"), after)
    }

    /// Kills the patch at one call, then its recovery at each call until one
    /// recovery comes to its end; judges after a last recovery each time.
    pub fn kill_recovery(&self, first: usize, totals: &mut Totals) {
        // A sample looks at other calls each time.
        let (from, step) = if is_full() { (0, 1) } else { (first % 7, 7) };
        for second in (from..).step_by(step) {
            let at = self.kill_patch(first, Side::Before);
            let plan = Plan::Kill(second, Side::Before);
            let input = NEXT_PATCH.as_bytes();
            let recovery = trace::run(self.scenario.inner(), input, Landmark::Start, plan);
            let came_to_its_end = recovery.outcome.ended != Ended::Signal(9);
            // It may have done its own patch before it was killed.
            self.scenario.forget_next_patch();
            let after = self.scenario.next_patch();
            let what = format!("recovery killed at its call {second} after {at}");
            totals.add(&self.judge(&what, after));
            if came_to_its_end {
                return;
            }
        }
    }

    /// Says where the kill was.
    fn kill_patch(&self, index: usize, side: Side) -> String {
        self.scenario.reset();
        let (input, plan) = (self.scenario.input(), Plan::Kill(index, side));
        let killed = trace::run(self.scenario.command(), &input, Landmark::Staging, plan);
        let Some(call) = killed.hit else {
            // Then it has come to its end, and is judged as what it is: done.
            let is_near_the_end = index + MOST_FEWER_CALLS >= self.calls();
            assert!(
                is_near_the_end && killed.outcome.succeeded(),
                "call {index} of {} never came: {}",
                self.calls(),
                killed.outcome
            );
            return format!("no kill, since there was no call {index}");
        };
        // After its last call a process is gone without a signal.
        let is_last = index + 1 == self.calls() && side == Side::After;
        assert!(
            killed.outcome.ended == Ended::Signal(9) || is_last,
            "{}",
            killed.outcome
        );
        format!("the kill {side:?} call {index}, {}", call.name())
    }

    fn judge(&self, at: &str, after: Result<(), String>) -> Verdict {
        let now = self.scenario.tree();
        let problem = match after {
            Err(problem) => problem,
            Ok(()) if !now.litter().is_empty() => format!("left behind: {:?}", now.litter()),
            Ok(()) if now == self.old => return Verdict::Old,
            Ok(()) if now == self.new => return Verdict::New,
            Ok(()) => String::new(),
        };
        let name = format!("{}{}", self.scenario.prefix(), self.scenario.name);
        let differs = now.neither(&self.old, &self.new);
        Verdict::Broken(format!("{name}: {at}: {problem}\n{differs}"))
    }

    fn sandpatch(&self, arguments: &[&str]) -> Result<(), String> {
        let mut command = self.scenario.place.command(self.scenario.place.exe());
        let (subcommand, rest) = arguments.split_first().expect("a subcommand");
        command.arg(subcommand);
        if !degrade::has_openat2() {
            // No sandbox can be built on such a kernel.
            command.args(["--backend", "none"]);
        }
        command.args(rest);
        let outcome = limited::run(command, b"", LIMIT);
        let failed = || format!("the recovery failed: {outcome}");
        outcome.succeeded().then_some(()).ok_or_else(failed)
    }
}
