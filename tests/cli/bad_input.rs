//! Input that is no patch: one clear error, the right code, nothing touched.
//! The control: a good patch goes through the same door in the same place.

use std::time::Duration;

use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::{Identity, Outcome, Place, Snapshot};

const LIMIT: Duration = Duration::from_secs(60);

/// The doors, and whether each reads its standard input through a `-`.
const DOORS: [&[&str]; 3] = [
    &["apply", "-"],
    &["--run-as-apply-patch", "-"],
    &["--codex-run-as-apply-patch", "-"],
];

const GOOD: &[u8] = b"*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** End Patch\n";

/// Feeds `patch` to every door; each must fail with one of `codes`.
fn refused_with(codes: &[i32], patch: &[u8]) {
    for door in DOORS {
        let place = Place::new(Identity::Caller);
        place.write("ws/f", "old\n");
        let before = Snapshot::of(&place.ws());
        let outcome = feed(&place, door, patch);
        let text = outcome.stderr_text();
        let expected = codes.iter().any(|code| outcome.ended == Ended::Code(*code));
        assert!(expected, "{door:?}: {outcome}");
        assert!(!text.trim().is_empty(), "{door:?}: silent: {outcome}");
        assert!(!text.contains("panicked"), "{door:?}: {outcome}");
        assert!(text.len() < 4096, "{door:?}: {} bytes of error", text.len());
        assert!(outcome.stdout.is_empty(), "{door:?}: {outcome}");
        assert_eq!(
            before.difference(&Snapshot::of(&place.ws())),
            "",
            "{door:?}"
        );
        let control = feed(&place, door, GOOD);
        assert!(control.succeeded(), "{door:?}: control: {control}");
    }
}

fn feed(place: &Place, door: &[&str], patch: &[u8]) -> Outcome {
    let mut command = place.command(place.exe());
    command.args(door);
    limited::run(command, patch, LIMIT)
}

#[test]
fn empty() {
    // Nothing at all is a usage error to the reference, a bad patch to others.
    refused_with(&[1, 2], b"");
}

#[test]
fn not_utf8() {
    refused_with(
        &[1],
        b"*** Begin Patch\n*** Update File: \xff\xfe\n@@\n-old\n+\xff\n",
    );
}

#[test]
fn truncated() {
    refused_with(&[1], b"*** Begin Patch\n*** Update File: f\n@@\n-old\n+ne");
}

#[test]
fn truncated_after_a_complete_operation() {
    refused_with(
        &[1],
        b"*** Begin Patch\n*** Add File: g\n+x\n*** Update File: f\n@@\n-old\n",
    );
}

#[test]
fn binary_junk() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let junk: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    })
    .take(200_000)
    .collect();
    refused_with(&[1], &junk);
}

#[test]
fn a_hundred_megabytes_without_a_header() {
    refused_with(&[1], &b"+xxxxxxxxx\n".repeat(100_000_000 / 11));
}

#[test]
fn ten_megabytes_for_a_missing_file() {
    let mut patch = b"*** Begin Patch\n*** Update File: missing\n@@\n".to_vec();
    patch.extend(b"+xxxxxxxxx\n".repeat(10_000_000 / 11));
    patch.extend_from_slice(b"*** End Patch\n");
    refused_with(&[1], &patch);
}

#[test]
fn a_path_with_nul() {
    refused_with(
        &[1],
        b"*** Begin Patch\n*** Add File: a\0b\n+x\n*** End Patch\n",
    );
}

#[test]
fn a_path_component_of_300_characters() {
    let name = "n".repeat(300);
    let patch = format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n");
    refused_with(&[1], patch.as_bytes());
}

#[test]
fn a_path_of_5000_characters() {
    let name = "d/".repeat(2500);
    let patch = format!("*** Begin Patch\n*** Add File: {name}f\n+x\n*** End Patch\n");
    refused_with(&[1], patch.as_bytes());
}

#[test]
fn one_bad_operation_spoils_the_good_one_before_it() {
    let patch =
        "*** Begin Patch\n*** Add File: g\n+x\n*** Update File: f\n@@\n-no\n+x\n*** End Patch\n";
    refused_with(&[1], patch.as_bytes());
}
