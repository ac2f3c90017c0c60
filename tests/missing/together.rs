//! Several runs in one workspace.

use std::process::{Child, Stdio};

use crate::running::Running;
use crate::{each, names, run_with};

/// Tries everything, and says what is there in the end.
const ATTACK: &str = "mkdir .git; rmdir .git; echo evil > .git/config; mkdir t; mv -T t .git; \
                      rm -rf t; stat -f -c %T .git";

#[test]
fn the_end_of_one_opens_nothing_for_another() {
    each(|place| {
        let first = Running::start(place, &[], "true");
        let second = Running::start(place, &[], ATTACK);
        assert!(first.end().1.success());
        assert!(place.ws().join(".git").is_dir());
        let (said, _) = second.end();
        assert_eq!(said.trim(), "tmpfs", "the cover is gone");
        assert!(names(&place.ws()).is_empty());
    });
}

#[test]
fn the_end_of_the_second_opens_nothing_for_the_first() {
    each(|place| {
        let first = Running::start(place, &[], ATTACK);
        let second = Running::start(place, &[], "true");
        assert!(second.end().1.success());
        let (said, _) = first.end();
        assert_eq!(said.trim(), "tmpfs", "the cover is gone");
        assert!(names(&place.ws()).is_empty());
    });
}

#[test]
fn the_kill_of_one_opens_nothing_for_another() {
    each(|place| {
        let killed = Running::start(place, &[], "true");
        let other = Running::start(place, &[], ATTACK);
        killed.kill();
        let (said, _) = other.end();
        assert_eq!(said.trim(), "tmpfs", "the cover is gone");
        crate::running::eventually("nothing is left", || names(&place.ws()).is_empty());
    });
}

#[test]
fn fifty_at_once_all_work_and_leave_nothing() {
    each(|place| {
        let start = |_| -> Child {
            let script =
                "! mkdir .git && ! mkdir .codex/x && ! echo evil > .agents && mkdir -p made";
            let mut command = run_with(place, &[], script);
            command.stderr(Stdio::piped()).stdin(Stdio::null());
            command.spawn().expect("start")
        };
        let running: Vec<Child> = (0..50).map(start).collect();
        for child in running {
            let output = child.wait_with_output().expect("wait");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
        }
        assert_eq!(names(&place.ws()), ["made"]);
    });
}
