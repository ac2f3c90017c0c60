//! Limits that people really run into, for the inner form and the sandboxed
//! one: the tree stays as it was, and the message says why.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sandpatch_tests::limited::{self, Ended, Outcome};
use sandpatch_tests::{Identity, Place, Tree, mounts};

const LIMIT: Duration = Duration::from_secs(60);
const FORMS: [&str; 2] = ["--codex-run-as-apply-patch", "--run-as-apply-patch"];

/// Applies a patch behind the words of a wrapper such as `prlimit`.
fn apply(place: &Place, wrapper: &[&str], form: &str, patch: &str) -> Outcome {
    let mut command: Command = match wrapper {
        [] => place.command(place.exe()),
        [program, rest @ ..] => {
            let mut command = place.command(Path::new(program));
            command.args(rest).arg(place.exe());
            command
        }
    };
    command.args([form, "-"]);
    limited::run(command, patch.as_bytes(), LIMIT)
}

/// Refused, with one of the reasons, and nothing is different.
fn refused(place: &Place, before: &Tree, outcome: &Outcome, reasons: &[&str]) {
    let difference = before.difference(&Tree::of(&place.ws()));
    assert_eq!(difference, "", "{outcome}");
    // 3: what may not be written is a matter of policy for the sandboxed form.
    let code = outcome.ended;
    assert!(matches!(code, Ended::Code(1 | 3)), "{outcome}");
    let text = outcome.stderr_text();
    let is_said = reasons.iter().any(|reason| text.contains(reason));
    assert!(is_said, "none of {reasons:?} in: {outcome}");
}

/// Applied, with every file as it is named here, and nothing left behind.
fn applied(place: &Place, outcome: &Outcome, files: &[(&str, &str)]) {
    assert!(outcome.succeeded(), "{outcome}");
    for (name, content) in files {
        let found = fs::read(place.ws().join(name)).expect("read");
        assert!(found == content.as_bytes(), "{name}: {outcome}");
    }
    let tree = Tree::of(&place.ws());
    assert!(tree.litter().is_empty(), "{:?}", tree.litter());
}

fn patch(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

/// A small edit, then a new file of so many bytes.
fn edit_and_add(bytes: usize) -> String {
    let line = format!("+{}\n", "x".repeat(1023));
    let lines = line.repeat(bytes / 1024);
    patch(&format!(
        "*** Update File: f\n@@\n-one\n+two\n*** Add File: new/large\n{lines}"
    ))
}

#[test]
fn a_full_disk() {
    let Some(_own) = mounts::own("a full disk") else {
        return;
    };
    for form in FORMS {
        let place = Place::new(Identity::Caller);
        let _disk = mounts::tmpfs(&place.ws(), "size=1m,mode=755");
        place.write("ws/f", "one\n");
        let before = Tree::of(&place.ws());
        let outcome = apply(&place, &[], form, &edit_and_add(2 << 20));
        refused(&place, &before, &outcome, &["No space left on device"]);
        // Control: what fits is applied.
        let outcome = apply(&place, &[], form, &edit_and_add(1 << 16));
        applied(&place, &outcome, &[("f", "two\n")]);
    }
}

#[test]
fn a_disk_without_inodes() {
    let Some(_own) = mounts::own("a disk without inodes") else {
        return;
    };
    for form in FORMS {
        let place = Place::new(Identity::Caller);
        let _disk = mounts::tmpfs(&place.ws(), "size=1m,mode=755,nr_inodes=6");
        place.write("ws/f", "one\n");
        let before = Tree::of(&place.ws());
        let adds: String = (0..9)
            .map(|n| format!("*** Add File: n{n}\n+x\n"))
            .collect();
        let update = "*** Update File: f\n@@\n-one\n+two\n";
        let outcome = apply(&place, &[], form, &patch(&format!("{update}{adds}")));
        refused(&place, &before, &outcome, &["No space left on device"]);
        let outcome = apply(&place, &[], form, &patch(update));
        applied(&place, &outcome, &[("f", "two\n")]);
    }
}

#[test]
fn a_file_size_limit() {
    for form in FORMS {
        for identity in Identity::all() {
            let place = Place::new(identity);
            // A small patch: the limit is for files that it makes, not for itself.
            let large = |word: &str| "a line\n".repeat(20_000) + word;
            place.write("ws/f", "one\n");
            place.write("ws/large", large("one\n"));
            let before = Tree::of(&place.ws());
            let update = |name: &str| format!("*** Update File: {name}\n@@\n-one\n+two\n");
            let both = patch(&(update("f") + &update("large")));
            let limit = ["prlimit", "--fsize=100000"];
            let outcome = apply(&place, &limit, form, &both);
            refused(&place, &before, &outcome, &["File too large"]);
            let outcome = apply(&place, &limit, form, &patch(&update("f")));
            applied(&place, &outcome, &[("f", "two\n")]);
            place.write("ws/f", "one\n");
            let outcome = apply(&place, &[], form, &both);
            applied(
                &place,
                &outcome,
                &[("f", "two\n"), ("large", &large("two\n"))],
            );
        }
    }
}

#[test]
fn too_few_descriptors() {
    const FILES: usize = 100;
    let updates: String = (0..FILES)
        .map(|n| format!("*** Update File: f{n}\n@@\n-one\n+two\n"))
        .collect();
    let all = patch(&updates);
    let first = patch("*** Update File: f0\n@@\n-one\n+two\n");
    for form in FORMS {
        for identity in Identity::all() {
            let place = Place::new(identity);
            for n in 0..FILES {
                place.write(&format!("ws/f{n}"), "one\n");
            }
            let before = Tree::of(&place.ws());
            let limit = ["prlimit", "--nofile=64:64"];
            let outcome = apply(&place, &limit, form, &all);
            refused(&place, &before, &outcome, &["Too many open files"]);
            let outcome = apply(&place, &limit, form, &first);
            applied(&place, &outcome, &[("f0", "two\n")]);
            // The limit is what refused it.
            place.write("ws/f0", "one\n");
            let outcome = apply(&place, &[], form, &all);
            applied(&place, &outcome, &[("f0", "two\n"), ("f99", "two\n")]);
        }
    }
}

#[test]
fn a_directory_without_write_permission() {
    // Root may write everywhere.
    let identity = *Identity::all().last().expect("an identity");
    let bodies = [
        "*** Update File: f\n@@\n-one\n+two\n*** Add File: locked/new\n+x\n",
        "*** Update File: f\n@@\n-one\n+two\n*** Add File: locked/sub/new\n+x\n",
        "*** Update File: f\n@@\n-one\n+two\n*** Delete File: locked/g\n",
        "*** Update File: f\n@@\n-one\n+two\n*** Update File: locked/g\n*** Move to: g\n",
        "*** Update File: f\n*** Move to: locked/f\n",
    ];
    for form in FORMS {
        let place = Place::new(identity);
        place.write("ws/f", "one\n");
        place.write("ws/locked/g", "one\n");
        let locked = fs::Permissions::from_mode(0o555);
        fs::set_permissions(place.ws().join("locked"), locked).expect("chmod");
        let before = Tree::of(&place.ws());
        for body in bodies {
            let outcome = apply(&place, &[], form, &patch(body));
            refused(&place, &before, &outcome, &["Permission denied"]);
        }
        // Control: the file itself may be written, in place.
        let both =
            "*** Update File: f\n@@\n-one\n+two\n*** Update File: locked/g\n@@\n-one\n+two\n";
        let outcome = apply(&place, &[], form, &patch(both));
        applied(&place, &outcome, &[("f", "two\n"), ("locked/g", "two\n")]);
    }
}

#[test]
fn a_read_only_file_system() {
    let Some(_own) = mounts::own("a read-only file system") else {
        return;
    };
    let bodies = [
        "*** Update File: f\n@@\n-one\n+two\n*** Update File: ro/g\n@@\n-one\n+two\n",
        "*** Update File: f\n@@\n-one\n+two\n*** Add File: ro/new\n+x\n",
        "*** Update File: f\n@@\n-one\n+two\n*** Delete File: ro/g\n",
        "*** Update File: ro/g\n*** Move to: g\n",
    ];
    for form in FORMS {
        let place = Place::new(Identity::Caller);
        place.write("ws/f", "one\n");
        place.write("ws/ro/g", "one\n");
        let _disk = mounts::read_only(&place.ws().join("ro"));
        let before = Tree::of(&place.ws());
        for body in bodies {
            let outcome = apply(&place, &[], form, &patch(body));
            let reasons = ["Read-only file system", "read-only"];
            refused(&place, &before, &outcome, &reasons);
        }
        let outcome = apply(
            &place,
            &[],
            form,
            &patch("*** Update File: f\n@@\n-one\n+two\n"),
        );
        applied(&place, &outcome, &[("f", "two\n"), ("ro/g", "one\n")]);
    }
}
