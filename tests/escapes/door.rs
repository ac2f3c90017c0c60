//! The doors through which a patch comes in, and what each must answer.

use std::fs;
use std::process::Command;
use std::time::Duration;

use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::{Identity, Outcome, Place, Snapshot};

const LIMIT: Duration = Duration::from_secs(10);

/// A way to hand a patch to the executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `sandpatch apply -`
    Apply,
    /// `sandpatch --run-as-apply-patch PATCH`
    RunAs,
    /// `sandpatch --codex-run-as-apply-patch PATCH`, with no sandbox around it
    Inner,
}

impl Door {
    /// Every door.
    pub const ALL: [Self; 3] = [Self::Apply, Self::RunAs, Self::Inner];

    /// The exit code of a refusal: the reference's doors know only 1.
    fn refusal(self) -> Ended {
        match self {
            Self::Apply | Self::RunAs => Ended::Code(3),
            Self::Inner => Ended::Code(1),
        }
    }

    /// Applies `patch` in the place's workspace.
    pub fn apply(self, place: &Place, patch: &str) -> Outcome {
        let mut command: Command = place.command(place.exe());
        match self {
            Self::Apply => command.args(["apply", "-"]),
            Self::RunAs => command.args(["--run-as-apply-patch", patch]),
            Self::Inner => command.args(["--codex-run-as-apply-patch", patch]),
        };
        let input = if self == Self::Apply { patch } else { "" };
        limited::run(command, input.as_bytes(), LIMIT)
    }
}

/// One escape: what stands in the place, what is tried, and its control.
pub struct Escape<'a> {
    /// Lays out the place.
    pub setup: &'a dyn Fn(&Place),
    /// The operations that must be refused; `@TOP@` is the place's directory.
    pub bad: &'a str,
    /// The path that the reason must name, as far as it is written in `bad`.
    pub path: &'a str,
    /// The same operations on an allowed target, which must succeed.
    pub good: &'a str,
}

impl Escape<'_> {
    /// Tries the escape through every door as every identity.
    pub fn is_refused(&self) {
        self.ends_with(Door::refusal);
    }

    /// Tries it likewise where the files, not the policy, stand in the way.
    pub fn does_not_apply(&self) {
        self.ends_with(|_| Ended::Code(1));
    }

    fn ends_with(&self, expected: impl Fn(Door) -> Ended) {
        for identity in Identity::all() {
            for door in Door::ALL {
                let place = Place::new(identity);
                place.write("out/secret", "original\n");
                (self.setup)(&place);
                let context = format!("{door:?} as {}", identity.label());
                self.refuse(door, &place, expected(door), &context);
                self.control(door, &place, &context);
            }
        }
    }

    fn refuse(&self, door: Door, place: &Place, expected: Ended, context: &str) {
        let before = (Snapshot::of(&place.ws()), Snapshot::of(&place.out()));
        let outcome = door.apply(place, &envelope(place, self.bad));
        let text = outcome.stderr_text();
        assert_eq!(outcome.ended, expected, "{context}: {outcome}");
        assert!(
            text.lines().any(|line| line.contains(self.path)),
            "{context}: no line names `{}`: {outcome}",
            self.path
        );
        assert!(!text.contains("panicked"), "{context}: {outcome}");
        assert!(outcome.stdout.is_empty(), "{context}: {outcome}");
        let after = (Snapshot::of(&place.ws()), Snapshot::of(&place.out()));
        assert_eq!(before.0.difference(&after.0), "", "{context}: workspace");
        assert_eq!(before.1.difference(&after.1), "", "{context}: outside");
    }

    fn control(&self, door: Door, place: &Place, context: &str) {
        let before = (Snapshot::of(&place.ws()), Snapshot::of(&place.out()));
        let outcome = door.apply(place, &envelope(place, self.good));
        assert!(outcome.succeeded(), "{context}: control: {outcome}");
        let after = (Snapshot::of(&place.ws()), Snapshot::of(&place.out()));
        assert_ne!(before.0, after.0, "{context}: the control changed nothing");
        assert_eq!(before.1.difference(&after.1), "", "{context}: outside");
    }
}

/// Applies a patch that must succeed, through every door as every identity,
/// and hands the place to `check` afterwards.
pub fn applies(setup: &dyn Fn(&Place), operations: &str, check: &dyn Fn(&Place, &str)) {
    for identity in Identity::all() {
        for door in Door::ALL {
            let place = Place::new(identity);
            place.write("out/secret", "original\n");
            setup(&place);
            let context = format!("{door:?} as {}", identity.label());
            let outcome = door.apply(&place, &envelope(&place, operations));
            assert!(outcome.succeeded(), "{context}: {outcome}");
            check(&place, &context);
        }
    }
}

/// Asserts the bytes of one file of a place.
pub fn has_bytes(place: &Place, relative: &str, expected: &str, context: &str) {
    let bytes = fs::read(place.top().join(relative))
        .unwrap_or_else(|error| panic!("{context}: read {relative}: {error}"));
    assert_eq!(
        String::from_utf8_lossy(&bytes),
        expected,
        "{context}: {relative}"
    );
}

fn envelope(place: &Place, operations: &str) -> String {
    let top = place.top().to_str().expect("the place has an ASCII path");
    let operations = operations.replace("@TOP@", top);
    format!("*** Begin Patch\n{operations}*** End Patch\n")
}

/// The operation that replaces `original` with `hacked`.
pub fn update(path: &str) -> String {
    format!("*** Update File: {path}\n@@\n-original\n+hacked\n")
}

/// The operation that adds a one-line file.
pub fn add(path: &str) -> String {
    format!("*** Add File: {path}\n+hacked\n")
}

/// The operation that deletes a file.
pub fn delete(path: &str) -> String {
    format!("*** Delete File: {path}\n")
}

/// The operation that moves a file and edits it.
pub fn moved(from: &str, to: &str) -> String {
    format!("*** Update File: {from}\n*** Move to: {to}\n@@\n-original\n+hacked\n")
}
