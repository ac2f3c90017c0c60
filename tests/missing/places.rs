//! Where nothing is put, and what is said of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use sandpatch_tests::{Ended, Identity, Place};

use crate::running::Running;
use crate::{NAMES, each, names, sandboxed};

#[test]
fn switched_off_they_can_be_made_and_that_is_said() {
    each(|place| {
        let outcome = sandboxed(
            place,
            &["--missing-names", "off", "--verbose"],
            "mkdir .git",
        );
        assert!(outcome.succeeded(), "{outcome}");
        assert!(outcome.stderr_text().contains("not protected"), "{outcome}");
        assert_eq!(names(&place.ws()), [".git"]);
    });
}

#[test]
fn what_is_held_is_not_said_to_be_open() {
    each(|place| {
        let outcome = sandboxed(place, &["--verbose"], "true");
        assert!(outcome.succeeded(), "{outcome}");
        assert!(
            !outcome.stderr_text().contains("not protected"),
            "{outcome}"
        );
    });
}

#[test]
fn emulating_is_refused() {
    each(|place| {
        let outcome = sandboxed(place, &["--missing-names", "emulate"], "touch ran");
        assert_eq!(outcome.ended, Ended::Code(2), "{outcome}");
        assert!(names(&place.ws()).is_empty());
    });
}

#[test]
fn a_directory_of_the_callers_own_that_takes_no_names_is_told() {
    // Root makes names everywhere.
    for identity in Identity::all() {
        if identity.label() == "root" {
            continue;
        }
        let place = Place::new(identity);
        fs::set_permissions(place.ws(), fs::Permissions::from_mode(0o555)).expect("chmod");
        let outcome = sandboxed(&place, &["--verbose"], "echo ran");
        assert!(outcome.succeeded(), "{outcome}");
        let said = outcome.stderr_text();
        for name in NAMES {
            assert!(said.contains(name), "{outcome}");
        }
        assert!(names(&place.ws()).is_empty());
    }
}

#[test]
fn a_directory_of_somebody_else_needs_nothing() {
    for identity in Identity::all() {
        if !matches!(identity, Identity::Uid(_)) {
            continue;
        }
        let place = Place::new(identity);
        nix::unistd::chown(&place.ws(), Some(0.into()), Some(0.into())).expect("chown");
        let outcome = sandboxed(&place, &["--verbose"], "mkdir .git");
        assert_eq!(outcome.ended, Ended::Code(1), "{outcome}");
        assert!(
            !outcome.stderr_text().contains("not protected"),
            "{outcome}"
        );
        assert!(names(&place.ws()).is_empty());
    }
}

#[test]
fn nothing_is_put_into_tmp_itself() {
    each(|place| {
        let before = tmp_names();
        let flags = ["--writable", "/tmp", "--verbose"];
        let running = Running::start(place, &flags, "true");
        assert_eq!(tmp_names(), before);
        // The control: the workspace has them.
        assert_eq!(names(&place.ws()).len(), NAMES.len());
        assert!(running.end().1.success());
    });
}

/// Which protected names the host's `/tmp` has.
fn tmp_names() -> Vec<&'static str> {
    let exists = |name: &&str| fs::symlink_metadata(format!("/tmp/{name}")).is_ok();
    NAMES.into_iter().filter(exists).collect()
}

#[test]
fn the_umask_of_the_caller_does_not_show() {
    each(|place| {
        let exe = place.exe().display();
        let line = format!("umask 077; {exe} run -- sh -c 'umask; mkdir .git; mkdir new'");
        let outcome = crate::on_host(place, &line);
        assert!(outcome.succeeded(), "{outcome}");
        // The command has it as it was.
        assert_eq!(crate::text(&outcome), "0077\n");
        let mode = fs::metadata(place.ws().join("new"))
            .expect("stat")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        assert_eq!(names(&place.ws()), ["new"]);
    });
}

#[test]
fn root_hands_over_what_it_puts_into_directories_of_others() {
    if !Identity::all().contains(&Identity::Uid(sandpatch_tests::identity::ORDINARY_UID)) {
        return;
    }
    let place = Place::new(Identity::Uid(sandpatch_tests::identity::ORDINARY_UID));
    let mut command = std::process::Command::new(place.exe());
    command.current_dir(place.ws());
    command.args([
        "run",
        "--",
        "sh",
        "-c",
        "echo up > up; while [ ! -e go ]; do sleep 0.05; done",
    ]);
    let mut child = command.spawn().expect("start");
    crate::running::eventually("it runs", || place.ws().join("up").exists());
    let made = crate::on_host(
        &place,
        "mkdir -p .codex && echo mine > .codex/f && touch go",
    );
    if !made.succeeded() {
        child.kill().expect("kill");
    }
    assert!(made.succeeded(), "{made}");
    assert!(child.wait().expect("wait").success());
    assert_eq!(names(&place.ws()), [".codex", "go", "up"]);
}
