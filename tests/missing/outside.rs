//! What the host sees and does while a command runs.

use std::fs;
use std::time::{Duration, SystemTime};

use sandpatch_tests::Place;

use crate::running::Running;
use crate::{NAMES, each, names, on_host, sandboxed, text};

fn host(place: &Place, line: &str) -> String {
    let outcome = on_host(place, line);
    assert!(outcome.succeeded(), "{line}: {outcome}");
    text(&outcome)
}

#[test]
fn git_sees_nothing_of_it() {
    each(|place| {
        place.write("ws/file", "text\n");
        host(place, "git init -q . && git add file");
        let running = Running::start(place, &[], "true");
        // The control: it is there.
        assert!(names(&place.ws()).contains(&".codex".to_owned()));
        let status = "git status --short --untracked-files=all";
        assert_eq!(host(place, status), "A  file\n");
        host(place, "git add -A");
        assert_eq!(host(place, status), "A  file\n");
        assert!(running.end().1.success());
        assert_eq!(names(&place.ws()), [".git", "file"]);
    });
}

#[test]
fn a_repository_above_is_found_through_it() {
    each(|place| {
        place.mkdir("ws/sub");
        host(place, "git init -q .");
        let running = Running::start(place, &["-C", "sub"], "true");
        assert_eq!(names(&place.ws().join("sub")).len(), NAMES.len());
        let top = host(place, "cd sub && git rev-parse --show-toplevel");
        assert_eq!(top.trim(), place.ws().to_str().expect("UTF-8"));
        assert!(running.end().1.success());
    });
}

#[test]
fn what_the_host_makes_meanwhile_is_kept() {
    each(|place| {
        let running = Running::start(place, &["--verbose"], "ls -A .git .codex | grep -v :");
        host(
            place,
            "git init -q . && mkdir -p .codex && echo mine > .codex/f",
        );
        let (said, _) = running.end();
        assert_eq!(said.trim(), "", "the command sees what the host made");
        assert_eq!(names(&place.ws()), [".codex", ".git"]);
        assert_eq!(host(place, "cat .codex/f"), "mine\n");
        assert_eq!(host(place, "git status --short"), "?? .codex/\n");
        // They are ordinary directories now, and protected as such.
        assert_eq!(host(place, "stat -c %a .codex"), "755\n");
        let next = sandboxed(
            place,
            &[],
            "echo evil > .codex/f || echo evil > .git/config",
        );
        assert!(!next.succeeded(), "{next}");
        assert_eq!(host(place, "cat .codex/f"), "mine\n");
    });
}

#[test]
fn what_the_host_made_is_told() {
    each(|place| {
        let script = "echo up > up; while [ ! -e go ]; do sleep 0.05; done";
        let mut command = crate::run_with(place, &["--verbose"], script);
        command.stderr(std::process::Stdio::piped());
        let child = command.spawn().expect("start");
        crate::running::eventually("it runs", || place.ws().join("up").exists());
        host(place, "echo mine > .codex/f && touch go");
        let output = child.wait_with_output().expect("wait");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let codex = place.ws().join(".codex");
        assert!(
            said.contains(&format!("{} came up", codex.display())),
            "{said}"
        );
        assert!(!said.contains(".git came up"), "{said}");
    });
}

#[test]
fn an_empty_directory_of_the_user_stays() {
    each(|place| {
        for name in NAMES {
            place.mkdir(&format!("ws/{name}"));
        }
        let outcome = sandboxed(place, &[], "rmdir .git; mkdir .git/hooks; mkdir other");
        assert!(outcome.succeeded(), "{outcome}");
        let expected = [".agents", ".codex", ".git", "other"];
        assert_eq!(names(&place.ws()), expected);
        assert!(names(&place.ws().join(".git")).is_empty());
    });
}

#[test]
fn the_time_of_the_root_is_kept() {
    each(|place| {
        let ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let root = fs::File::open(place.ws()).expect("open");
        root.set_modified(ago).expect("set the time");
        let modified = || {
            fs::metadata(place.ws())
                .and_then(|it| it.modified())
                .expect("time")
        };
        assert!(sandboxed(place, &[], "mkdir .git; true").succeeded());
        assert_eq!(modified(), ago);
        // The control: what the command itself did shows.
        assert!(sandboxed(place, &[], "mkdir other").succeeded());
        assert!(modified() > ago);
    });
}
