//! What a command can try.

use std::fs;

use crate::{NAMES, each, names, sandboxed, text};

/// Every way tries one name; the same way must work with the name `other`, and
/// says so.
fn nobody_makes(way: &str) {
    each(|place| {
        place.mkdir("ws/stuff");
        for name in NAMES {
            let script = format!("N={name}; {way}");
            let outcome = sandboxed(place, &[], &script);
            assert!(!outcome.succeeded(), "{name}: {outcome}");
            assert_eq!(names(&place.ws()), ["stuff"], "{name}: {outcome}");
        }
        let control = sandboxed(place, &[], &format!("N=other; {way}"));
        assert!(control.succeeded(), "{control}");
        assert_eq!(names(&place.ws()), ["other", "stuff"], "{control}");
    });
}

#[test]
fn a_directory() {
    nobody_makes("mkdir $N");
}

#[test]
fn something_in_a_directory() {
    nobody_makes("mkdir -p $N/hooks");
}

#[test]
fn a_file() {
    nobody_makes("echo evil > $N");
}

#[test]
fn a_symbolic_link() {
    nobody_makes("ln -sT stuff $N");
}

#[test]
fn a_hard_link() {
    nobody_makes("echo x > t; ln -T t $N; r=$?; rm t; exit $r");
}

#[test]
fn a_fifo() {
    nobody_makes("mkfifo $N");
}

#[test]
fn a_directory_moved_there() {
    nobody_makes("mkdir t; mv -T t $N; r=$?; rm -rf t; exit $r");
}

#[test]
fn a_file_moved_there() {
    nobody_makes("echo x > t; mv -T t $N; r=$?; rm -f t; exit $r");
}

/// The way fails with a held name, and works with an empty directory of the
/// command's own.
fn nobody_touches(way: &str) {
    each(|place| {
        for name in NAMES {
            let outcome = sandboxed(place, &[], &format!("N={name}; {way}"));
            assert!(!outcome.succeeded(), "{name}: {outcome}");
            assert!(names(&place.ws()).is_empty(), "{name}: {outcome}");
        }
        let control = sandboxed(place, &[], &format!("N=other; mkdir other; {way}"));
        assert!(control.succeeded(), "{control}");
    });
}

#[test]
fn what_stands_in_cannot_be_removed() {
    nobody_touches("rmdir $N");
}

#[test]
fn what_stands_in_cannot_be_renamed() {
    nobody_touches("mv -T $N elsewhere");
}

#[test]
fn what_stands_in_cannot_be_filled() {
    nobody_touches("echo evil > $N/config");
}

#[test]
fn what_stands_in_cannot_be_changed() {
    nobody_touches("chmod 700 $N");
}

#[test]
fn what_stands_in_is_not_what_the_host_has() {
    each(|place| {
        let script = "stat -c '%d %i' .git; stat -c %d .";
        let outcome = sandboxed(place, &[], script);
        let said = text(&outcome);
        let (there, around) = said.trim().split_once('\n').expect("two lines");
        let (device, _) = there.split_once(' ').expect("two numbers");
        // Of another file system: what locks it inside, locks nothing outside.
        assert_ne!(device, around, "{outcome}");
        let listing = sandboxed(place, &[], "ls -A .git .codex .agents | grep -v :");
        assert_eq!(text(&listing).trim(), "", "{listing}");
    });
}

#[test]
fn what_a_dangling_link_would_lead_to() {
    each(|place| {
        place.link("ws/.git", "gone");
        let script = "mkdir gone; mkdir gone/hooks; echo evil > gone/config; mv -T .git x; ls -A x";
        let outcome = sandboxed(place, &[], script);
        assert!(!outcome.succeeded(), "{outcome}");
        assert_eq!(names(&place.ws()), [".git"], "{outcome}");
        let link = fs::read_link(place.ws().join(".git")).expect("a link");
        assert_eq!(link.to_str(), Some("gone"));
        assert!(sandboxed(place, &[], "mkdir other").succeeded());
    });
}

#[test]
fn a_sandbox_in_a_sandbox_leaves_it_alone() {
    each(|place| {
        let exe = place.exe().display();
        let script = format!("{exe} run -- sh -c 'mkdir .git'; mkdir .git; mkdir done");
        let outcome = sandboxed(place, &[], &script);
        assert!(outcome.succeeded(), "{outcome}");
        assert_eq!(names(&place.ws()), ["done"], "{outcome}");
    });
}
