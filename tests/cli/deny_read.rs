//! What `--deny-read` hides, by whatever name or way.

use sandpatch_tests::limited::{Ended, Outcome};
use sandpatch_tests::{Identity, Place};

use crate::as_user::run;

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

#[test]
fn a_pattern_hides_deep_hidden_and_ignored_files_and_nothing_else() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        let hidden = ["a/b/c/.env", ".hid/.env", "node_modules/p/.env", ".env"];
        for path in hidden {
            place.write(&format!("ws/{path}"), "secret\n");
        }
        place.write("ws/.gitignore", "node_modules\n");
        place.write("ws/a/x.env", "open\n");
        let script = format!("cat {} a/x.env", hidden.join(" "));
        let outcome = run(&place, &["--deny-read", "**/.env"], &script);
        assert_eq!(text(&outcome), "open\n", "{outcome}");
        let outcome = run(&place, &["--deny-read", "nothing/*"], &script);
        assert_eq!(text(&outcome), "secret\n".repeat(4) + "open\n", "control");
    }
}

#[test]
fn another_link_and_a_new_name_are_hidden_too() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/cfg/key", "secret\n");
        place.write("ws/open", "open\n");
        let ws = place.ws();
        std::fs::hard_link(ws.join("cfg/key"), ws.join("other")).unwrap();
        let flags = ["--deny-read", "cfg/key"];
        let outcome = run(
            &place,
            &flags,
            "cat cfg/key other open; mv cfg cfg2; ls cfg2",
        );
        assert_eq!(text(&outcome), "open\n", "{outcome}");
        std::fs::remove_file(ws.join("other")).unwrap();
        std::fs::rename(ws.join("cfg"), ws.join("moved")).unwrap();
        let outcome = run(&place, &flags, "cat moved/key open");
        assert_eq!(text(&outcome), "open\n", "{outcome}");
        let outcome = run(&place, &[], "cat moved/key open");
        assert_eq!(text(&outcome), "secret\nopen\n", "control");
    }
}

#[test]
fn something_readable_below_something_hidden_is_shown_and_held() {
    for identity in Identity::all() {
        let place = Place::new(identity);
        place.write("ws/d/secret", "secret\n");
        place.write("ws/d/shown", "shown\n");
        let flags = ["--deny-read", "d", "--readable", "d/shown"];
        let script = "cat d/secret d/shown; ls d; echo x > d/shown; echo x > d/new";
        let outcome = run(&place, &flags, script);
        assert_eq!(text(&outcome), "shown\n", "{outcome}");
        assert_eq!(
            std::fs::read(place.ws().join("d/shown")).unwrap(),
            b"shown\n"
        );
        assert!(!place.ws().join("d/new").exists());
    }
}

#[test]
fn a_bad_pattern_is_a_usage_error() {
    let place = Place::new(Identity::Caller);
    let outcome = run(&place, &["--deny-read", "a/[b"], "true");
    assert_eq!(outcome.ended, Ended::Code(2), "{outcome}");
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(
        said.starts_with("Error: --deny-read a/[b: pattern "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}
