//! What people and attackers do between a kill and the next run.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use nix::libc;
use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::trace::{self, Call, Landmark, Plan, Side};
use sandpatch_tests::{Identity, Outcome, Place, Tree};

const LIMIT: Duration = Duration::from_secs(30);
const JOURNAL: &str = ".sandpatch-journal";

const PATCH: &str = "*** Begin Patch\n*** Update File: sub/f\n@@\n-a\n+A\n\
    *** Update File: sub2/g\n@@\n-b\n+B\n*** End Patch\n";
const OTHER: &str = "*** Begin Patch\n*** Add File: sub2/other\n+x\n*** End Patch\n";

/// A workspace with two files in two directories.
fn place(identity: Identity) -> Place {
    let place = Place::new(identity);
    place.write("ws/sub/f", "a\n");
    place.write("ws/sub2/g", "b\n");
    place
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.ws().join(name)).unwrap()
}

fn inner(place: &Place) -> std::process::Command {
    let mut command = place.command(place.exe());
    command.args(["--codex-run-as-apply-patch", "-"]);
    command
}

fn sandpatch(place: &Place, arguments: &[&str], input: &str) -> Outcome {
    let mut command = place.command(place.exe());
    command.args(arguments);
    limited::run(command, input.as_bytes(), LIMIT)
}

/// Kills a patch just before a call of this number, the `nth` of them.
fn kill_at(place: &Place, patch: &str, number: i64, nth: usize) {
    let watched = calls_of(place, patch);
    let is_it = |(_, call): &(usize, &Call)| call.number == number;
    let (index, _) = watched.iter().enumerate().filter(is_it).nth(nth).unwrap();
    let plan = Plan::Kill(index, Side::Before);
    let killed = trace::run(inner(place), patch.as_bytes(), Landmark::Staging, plan);
    assert!(killed.hit.is_some(), "{}", killed.outcome);
}

/// Returns the calls of an undisturbed run, and puts everything back.
fn calls_of(place: &Place, patch: &str) -> Vec<Call> {
    let watched = trace::run(
        inner(place),
        patch.as_bytes(),
        Landmark::Staging,
        Plan::Watch,
    );
    assert!(watched.outcome.succeeded(), "{}", watched.outcome);
    place.write("ws/sub/f", "a\n");
    place.write("ws/sub2/g", "b\n");
    watched.calls
}

/// Between the two swaps: one file is new, the other old.
fn half_done(place: &Place) {
    kill_at(place, PATCH, libc::SYS_renameat2, 1);
    assert_eq!(
        (read(place, "sub/f"), read(place, "sub2/g")),
        ("A\n".into(), "b\n".into())
    );
}

#[test]
fn an_undo_ends_the_interrupted_patch_and_nothing_else() {
    for identity in Identity::all() {
        let place = place(identity);
        let first = "*** Begin Patch\n*** Add File: first\n+1\n*** End Patch\n";
        assert!(sandpatch(&place, &["apply", "-"], first).succeeded());
        half_done(&place);
        let undone = sandpatch(&place, &["undo"], "");
        assert!(undone.succeeded(), "{undone}");
        assert_eq!(
            (read(&place, "sub/f"), read(&place, "first")),
            ("a\n".into(), "1\n".into())
        );
        assert!(sandpatch(&place, &["undo"], "").succeeded());
        assert!(!place.ws().join("first").exists());
    }
}

#[test]
fn an_undo_without_a_record_ends_the_interrupted_patch() {
    let place = place(Identity::Caller);
    half_done(&place);
    let undone = sandpatch(&place, &["undo"], "");
    assert!(undone.succeeded(), "{undone}");
    assert_eq!(read(&place, "sub/f"), "a\n");
    assert!(!place.ws().join(JOURNAL).exists());
}

#[test]
fn a_check_says_that_something_is_pending() {
    let place = place(Identity::Caller);
    half_done(&place);
    for option in ["--check", "--diff"] {
        let checked = sandpatch(&place, &["apply", option, "-"], OTHER);
        assert_eq!(checked.ended, Ended::Code(1), "{checked}");
        assert!(
            checked.stderr_text().contains("undo --recover"),
            "{checked}"
        );
    }
    assert!(place.ws().join(JOURNAL).exists());
}

/// The journal then lies beside the first file.
#[test]
fn a_workspace_that_takes_no_journal_is_recovered_by_whatever_comes_next() {
    let identity = *Identity::all().last().unwrap();
    if identity == Identity::Caller {
        return sandpatch_tests::skip::skip_allowed(
            "unwritable workspace",
            "only root may be two users",
        );
    }
    let next: [(&[&str], &str); 3] = [
        (&["undo", "--recover"], ""),
        (&["apply", "-"], OTHER),
        (&["--codex-run-as-apply-patch", "-"], OTHER),
    ];
    for (arguments, input) in next {
        let place = place(identity);
        nix::unistd::chown(&place.ws(), Some(nix::unistd::Uid::from_raw(0)), None).unwrap();
        half_done(&place);
        let after = sandpatch(&place, arguments, input);
        assert!(after.succeeded(), "{after}");
        assert_eq!(
            (read(&place, "sub/f"), read(&place, "sub2/g")),
            ("a\n".into(), "b\n".into())
        );
        assert_eq!(
            Tree::of(&place.ws()).litter(),
            Vec::<std::path::PathBuf>::new()
        );
    }
}

#[test]
fn a_directory_that_was_renamed_is_asked_for() {
    let place = place(Identity::Caller);
    half_done(&place);
    fs::rename(place.ws().join("sub"), place.ws().join("moved")).unwrap();
    let during = Tree::of(&place.ws());
    for (arguments, input) in [(["undo", "--recover"], ""), (["apply", "-"], OTHER)] {
        let refused = sandpatch(&place, &arguments, input);
        assert_eq!(refused.ended, Ended::Code(1), "{refused}");
        assert!(refused.stderr_text().contains("put it back"), "{refused}");
    }
    assert_eq!(Tree::of(&place.ws()), during);
    // Another directory of the name is not the one, as when a mount is missing.
    place.mkdir("ws/sub");
    let refused = sandpatch(&place, &["undo", "--recover"], "");
    assert_eq!(refused.ended, Ended::Code(1), "{refused}");
    fs::remove_dir(place.ws().join("sub")).unwrap();
    fs::rename(place.ws().join("moved"), place.ws().join("sub")).unwrap();
    assert!(sandpatch(&place, &["undo", "--recover"], "").succeeded());
    assert_eq!(read(&place, "sub/f"), "a\n");
}

#[test]
fn a_workspace_that_was_moved_is_recovered_where_it_is() {
    let place = place(Identity::Caller);
    half_done(&place);
    let moved = place.top().join("moved");
    fs::rename(place.ws(), &moved).unwrap();
    fs::create_dir(place.ws()).unwrap();
    let moved_text = moved.to_str().unwrap();
    let recovered = sandpatch(&place, &["undo", "--recover", "-C", moved_text], "");
    assert!(recovered.succeeded(), "{recovered}");
    assert_eq!(fs::read_to_string(moved.join("sub/f")).unwrap(), "a\n");
    assert_eq!(Tree::of(&moved).litter(), Vec::<std::path::PathBuf>::new());
}

/// An undo that is killed at its very end cannot say that its record has served.
#[test]
fn an_undo_that_was_finished_by_the_next_run_is_known_as_done() {
    let place = place(Identity::Caller);
    let first = "*** Begin Patch\n*** Add File: first\n+1\n*** End Patch\n";
    assert!(sandpatch(&place, &["apply", "-"], first).succeeded());
    assert!(sandpatch(&place, &["apply", "-"], PATCH).succeeded());
    // As the record of an undo that could not be removed: it is there once more.
    let records = place.top().join("home/state/sandpatch/undo");
    let kept = newest(&records);
    let bytes = fs::read(&kept).unwrap();
    assert!(sandpatch(&place, &["undo"], "").succeeded());
    assert!(!kept.exists());
    fs::write(&kept, bytes).unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o600)).unwrap();
    let again = sandpatch(&place, &["undo"], "");
    assert_eq!(again.ended, Ended::Code(1), "{again}");
    assert!(again.stderr_text().contains("undone already"), "{again}");
    assert_eq!(
        (read(&place, "sub/f"), read(&place, "first")),
        ("a\n".into(), "1\n".into())
    );
    assert!(sandpatch(&place, &["undo"], "").succeeded());
    assert!(!place.ws().join("first").exists());
}

/// Names of records sort by their time.
fn newest(records: &Path) -> std::path::PathBuf {
    let names = fs::read_dir(records).unwrap();
    names.map(|name| name.unwrap().path()).max().unwrap()
}

#[test]
fn a_check_finds_a_journal_that_lies_beside_a_file() {
    let identity = *Identity::all().last().unwrap();
    if identity == Identity::Caller {
        return sandpatch_tests::skip::skip_allowed("a check", "only root may be two users");
    }
    let place = place(identity);
    nix::unistd::chown(&place.ws(), Some(nix::unistd::Uid::from_raw(0)), None).unwrap();
    half_done(&place);
    let checked = sandpatch(&place, &["apply", "--check", "-"], OTHER);
    assert_eq!(checked.ended, Ended::Code(1), "{checked}");
    assert!(
        checked.stderr_text().contains("undo --recover"),
        "{checked}"
    );
}

#[test]
fn a_terminal_does_not_act_on_names_in_messages() {
    let place = place(Identity::Caller);
    let patch = "*** Begin Patch\n*** Update File: a\u{1b}[31mb\n@@\n-x\n+y\n*** End Patch\n";
    let refused = sandpatch(&place, &["apply", "-"], patch);
    assert_eq!(refused.ended, Ended::Code(1));
    assert!(!refused.stderr_text().contains('\u{1b}'), "{refused}");
    assert!(refused.stderr_text().contains("u{1b}"), "{refused}");
}

/// What another user wrote says only what that user may do.
#[test]
fn root_does_not_recover_for_somebody_else() {
    let identity = *Identity::all().last().unwrap();
    if identity == Identity::Caller {
        return sandpatch_tests::skip::skip_allowed(
            "a user's journal",
            "only root may be two users",
        );
    }
    let place = place(identity);
    half_done(&place);
    let owner = fs::metadata(place.ws().join(JOURNAL)).unwrap().uid();
    let during = Tree::of(&place.ws());
    let as_root = |arguments: &[&str]| {
        let mut command = std::process::Command::new(place.exe());
        command.args(arguments).current_dir(place.ws());
        limited::run(command, OTHER.as_bytes(), LIMIT)
    };
    let refused = as_root(&["--codex-run-as-apply-patch", "-"]);
    assert_eq!(refused.ended, Ended::Code(1), "{refused}");
    assert!(refused.stderr_text().contains("--as-user"), "{refused}");
    assert_eq!(Tree::of(&place.ws()), during);
    let user = format!("{owner}:{owner}");
    let recovered = as_root(&["undo", "--recover", "--as-user", &user]);
    assert!(recovered.succeeded(), "{recovered}");
    assert_eq!(read(&place, "sub/f"), "a\n");
}

#[test]
fn notes_that_have_the_journals_name_stay() {
    let place = place(Identity::Caller);
    let journal = place.ws().join(JOURNAL);
    for text in ["my notes\n", "sandpatch journal 1\nmy notes\n"] {
        fs::write(&journal, text).unwrap();
        let refused = sandpatch(&place, &["apply", "-"], OTHER);
        assert_eq!(refused.ended, Ended::Code(1), "{refused}");
        assert_eq!(fs::read_to_string(&journal).unwrap(), text);
        assert!(!Path::new(&place.ws().join("sub2/other")).exists());
    }
}
