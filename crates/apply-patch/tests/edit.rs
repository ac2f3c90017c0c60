//! Edits from the outside: a file and the body of an update in, bytes out.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use apply_patch::edit::{Changed, EditError, Edited};
use apply_patch::locate::{ChunkFailure, Difference, FailureKind, MatchKind};
use apply_patch::options::{OnAmbiguous, Options};
use apply_patch::syntax::ast::Body;
use apply_patch::{edit, parse};
use proptest::prelude::*;
use similar::TextDiff;

fn run(file: &[u8], body: &str, options: Options) -> Result<Edited, EditError> {
    let text = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch\n");
    let patch = parse(&text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .patch;
    match &patch.operations[0].body {
        Body::Update { chunks, .. } => edit(file, chunks, &options),
        other => panic!("{other:?}"),
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Applies in the safe dialect.
fn safe(file: impl AsRef<[u8]>, body: &str) -> String {
    shown(&run(file.as_ref(), body, Options::safe()).unwrap().bytes)
}

/// Applies in the codex dialect.
fn codex(file: impl AsRef<[u8]>, body: &str) -> String {
    shown(&run(file.as_ref(), body, Options::codex()).unwrap().bytes)
}

fn failures(file: &str, body: &str, options: Options) -> Vec<ChunkFailure> {
    match run(file.as_bytes(), body, options) {
        Err(EditError::Chunks(failures)) => failures,
        other => panic!("{other:?}"),
    }
}

fn failure(file: &str, body: &str) -> FailureKind {
    failures(file, body, Options::safe()).remove(0).kind
}

fn kind(file: &str, body: &str) -> MatchKind {
    run(file.as_bytes(), body, Options::safe())
        .unwrap()
        .landings[0]
        .kind
}

#[test]
fn lines_keep_their_own_ends() {
    assert_eq!(safe("a\r\nb\nc\r\n", "-b\n+B\n+C"), r"a\r\nB\nC\nc\r\n");
    assert_eq!(safe("a\r\nb\nc\r\n", "-a\n+A"), r"A\r\nb\nc\r\n");
    assert_eq!(safe("a\nb\r\n", " b\n+c"), r"a\nb\r\nc\r\n");
    assert_eq!(safe("b\r\nc\n", "+a\n b"), r"a\r\nb\r\nc\n");
    assert_eq!(safe("a\rb\r", "-b\n+B\n+C"), r"a\rB\rC\r");
    assert_eq!(safe("a\rb\nc\n", "-c\n+C\n+D"), r"a\rb\nC\nD\n");
    assert_eq!(safe("a\r\nb\r\n", "-b"), r"a\r\n");
    assert_eq!(safe("a\n", "-a\n+x\ry"), r"x\ry\n");
}

#[test]
fn the_final_newline_is_kept_or_added() {
    for (file, body, kept, added) in [
        ("a\nb", "-a\n+A", r"A\nb", r"A\nb\n"),
        ("a\r\nb", "-b\n+B", r"a\r\nB", r"a\r\nB\r\n"),
        ("a\nb", " b\n+c", r"a\nb\nc", r"a\nb\nc\n"),
        ("a\r\nb", "@@\n+c", r"a\r\nb\r\nc", r"a\r\nb\r\nc\r\n"),
        ("a\nb", "-b", r"a\n", r"a\n"),
        ("a", " a", r"a", r"a\n"),
        ("a", "+b\n a", r"b\na", r"b\na\n"),
        ("a\n\n\n", "-a\n+A", r"A\n\n\n", r"A\n\n\n"),
        ("", "@@\n+a", r"a\n", r"a\n"),
        ("a\nb\n", "-a\n-b", "", ""),
    ] {
        assert_eq!(safe(file, body), kept, "{file:?} {body:?}");
        assert_eq!(codex(file, body), added, "{file:?} {body:?}");
    }
    let mark = "\\ No newline at end of file";
    assert_eq!(codex("a\n", &format!("-a\n+b\n{mark}")), "b");
    assert_eq!(safe("a", &format!("-a\n{mark}\n+b")), r"b\n");
}

#[test]
fn encodings_are_kept() {
    assert_eq!(
        safe(b"caf\xe9\nprice 5\n", "-price 5\n+price 7"),
        r"caf\xe9\nprice 7\n"
    );
    assert_eq!(safe("\u{feff}a\n", "-a\n+b"), r"\xef\xbb\xbfb\n");
    assert_eq!(
        safe(b"\xff\xfea\0\n\0", "-a\n+\u{e9}"),
        r"\xff\xfe\xe9\x00\n\x00"
    );
    assert_eq!(safe(b"a\0b\nc\n", "-c\n+d"), r"a\x00b\nd\n");
    assert_eq!(safe("a\n", "-a\n+\u{e9}"), r"\xc3\xa9\n");
    let error = run(b"caf\xe9\na\n", "-a\n+\u{e9}", Options::safe()).unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
    assert!(run(b"\xff\xfea", "-a\n+b", Options::safe()).is_err());
}

#[test]
fn an_exact_match_beats_a_looser_one_above() {
    assert_eq!(safe("  x\nmid\nx\n", "-x\n+y"), r"  x\nmid\ny\n");
    assert_eq!(kind("a  \n", "-a\n+b"), MatchKind::TrailingSpace);
    assert_eq!(kind("\ta\n", "-  a\n+b"), MatchKind::Indentation);
    assert_eq!(kind("a \u{2013} b\n", "-a - b\n+b"), MatchKind::Punctuation);
    assert_eq!(
        kind("cafe\u{301}\n", "-caf\u{e9}\n+b"),
        MatchKind::Normalisation
    );
    assert_eq!(
        safe("\ta\n\tb  \n\tc\n", " a\n-b\n+B\n c"),
        r"\ta\nB\n\tc\n"
    );
}

#[test]
fn headers_narrow_the_place() {
    let file = "[a]\nt = 1\n[b]\nt = 1\n";
    assert_eq!(
        safe(file, "@@ [b]\n-t = 1\n+t = 2"),
        r"[a]\nt = 1\n[b]\nt = 2\n"
    );
    assert_eq!(
        safe(file, "@@ [b] @@\n-t = 1\n+t = 2"),
        r"[a]\nt = 1\n[b]\nt = 2\n"
    );
    assert_eq!(
        safe("A\nold\nA\nA\nold\n", "@@ A\n@@ A\n-old\n+new"),
        r"A\nold\nA\nA\nnew\n"
    );
    let missing = FailureKind::HeaderNotFound {
        header: "[c]".to_owned(),
    };
    assert_eq!(failure(file, "@@ [c]\n-t = 1"), missing);
    let closed = failures(file, "@@ [b] @@\n-t = 1", Options::codex());
    assert_eq!(
        closed[0].message("/f"),
        "Failed to find context '[b] @@' in /f"
    );
}

#[test]
fn additions_go_where_they_are_sent() {
    assert_eq!(safe("a\nb\nc\n", "@@ a\n+1\n@@ b\n+2"), r"a\n1\nb\n2\nc\n");
    assert_eq!(safe("a\nb\n", "@@\n+1\n@@\n+2"), r"a\nb\n1\n2\n");
    assert_eq!(safe("a\nb\n", "@@\n+1\n@@\n-a\n+A"), r"A\nb\n1\n");
    assert_eq!(
        safe("a\nb\nc\n", "@@ a\n+1\n*** End of File"),
        r"a\nb\nc\n1\n"
    );
    assert_eq!(
        safe("a\nb\nc\n", "@@ -1,0 +2 @@\n+1\n@@ -3,0 +5 @@\n+2"),
        r"a\n1\nb\nc\n2\n"
    );
    assert_eq!(safe("a\n\n", "@@\n+b"), r"a\n\nb\n");
}

#[test]
fn line_numbers_choose_among_equal_places() {
    let file = "x\ny\nx\ny\nx\n";
    assert_eq!(safe(file, "@@ -3 +3 @@\n-x\n+X"), r"x\ny\nX\ny\nx\n");
    assert_eq!(safe(file, "@@ -90 +90 @@\n-x\n+X"), r"x\ny\nx\ny\nX\n");
    // The header may be a line of the file after all.
    assert_eq!(
        safe("x\n-1 +1 @@\nx\n", "@@ -1 +1 @@\n-x\n+X"),
        r"x\n-1 +1 @@\nX\n"
    );
}

#[test]
fn chunks_at_the_end_stand_there_or_nowhere() {
    assert_eq!(safe("x\ny\nx\n", "-x\n+X\n*** End of File"), r"x\ny\nX\n");
    assert_eq!(safe("x\nx", "-x\n+X\n*** End of File"), r"x\nX");
    assert_eq!(safe("x\n\n", "-x\n+X\n\n*** End of File"), r"X\n\n");
    for options in [Options::safe(), Options::codex()] {
        let found = failures("a\nx\ny\n", "-x\n+X\n*** End of File", options).remove(0);
        let expected = vec!["x".to_owned()];
        assert_eq!(
            found.kind,
            FailureKind::NotAtEnd {
                expected,
                found: Some(2)
            }
        );
        assert_eq!(
            found.message("/f"),
            "Failed to find expected lines in /f:\nx"
        );
    }
}

#[test]
fn blank_separators_never_steer() {
    let file = "alpha\nb\nalpha\n\nc\n";
    assert_eq!(codex(file, "-alpha\n+A\n"), r"A\nb\nalpha\n\nc\n");
    assert_eq!(
        codex(file, "-alpha\n+A\n\n@@\n-c\n+C"),
        r"A\nb\nalpha\n\nC\n"
    );
    assert_eq!(safe("a\n\nb\n", "\n@@\n-a\n+A"), r"A\n\nb\n");
    // One that is written out counts, unless the file does not have it (R66).
    assert_eq!(safe("a\nb\n", "-a\n+A\n "), r"A\nb\n");
    assert_eq!(safe("a\nx\na\n\n", "-a\n+A\n "), r"a\nx\nA\n\n");
    assert!(matches!(
        failure("a\n", "@@\n-\n+x"),
        FailureKind::NotFound { .. }
    ));
}

#[test]
fn ambiguity_is_refused_or_reported() {
    let file = "[a]\nt = 1\n[b]\nt = 1\n";
    let FailureKind::Ambiguous { candidates, .. } = failure(file, "-t = 1\n+t = 2") else {
        panic!("not refused");
    };
    assert_eq!((candidates.lines, candidates.more), (vec![2, 4], false));
    let edited = run(file.as_bytes(), "-t = 1\n+t = 2", Options::codex()).unwrap();
    assert_eq!(shown(&edited.bytes), r"[a]\nt = 2\n[b]\nt = 1\n");
    assert_eq!(edited.warnings[0].candidates.lines, [2, 4]);
}

#[test]
fn later_chunks_settle_what_is_otherwise_ambiguous() {
    let file = "t\nonly\nt\nlast\n";
    assert_eq!(
        safe(file, "-t\n+T\n@@\n-only\n+ONLY"),
        r"T\nONLY\nt\nlast\n"
    );
    assert_eq!(
        safe(file, "-only\n+ONLY\n@@\n-t\n+T"),
        r"t\nONLY\nT\nlast\n"
    );
    assert!(matches!(
        failure(file, "-t\n+T\n@@\n-last\n+L"),
        FailureKind::Ambiguous { .. }
    ));
}

#[test]
fn all_failing_chunks_are_reported_with_their_cause() {
    let file = "one\ntwo\n\tthree(3)\nfour\n";
    let body = "@@\n-two\n+TWO\n@@\n-one\n+ONE\n@@\n-gone\n-    three(1)\n+x\n@@\n-FOUR\n+four";
    let found = failures(file, body, Options::safe());
    assert_eq!(
        found
            .iter()
            .map(|failure| failure.chunk)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert!(matches!(
        found[0].kind,
        FailureKind::OutOfOrder { found: 1, .. }
    ));
    assert!(matches!(
        found[2].kind,
        FailureKind::AlreadyApplied { found: 4, .. }
    ));
    assert!(found[1].details()[0].contains("chunk 3 (line 9 of the patch)"));
    let near = failures("a\n\tx = 'y'\nb\n", " a\n-\tx = \"y\"\n+z", Options::safe()).remove(0);
    let near = near.nearest.unwrap();
    assert_eq!((near.line, near.differing.line), (1, 2));
    assert_eq!(near.differing.difference, Difference::Quotes);
}

#[test]
fn an_edit_without_effect_is_known_as_such() {
    let edited = run(b"a\nb\n", " a\n-b\n+b", Options::safe()).unwrap();
    assert_eq!(edited.changed, Changed::Nothing);
}

fn lines(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let text = prop::collection::vec(prop::sample::select(words), 0..20);
    (text, any::<bool>()).prop_map(|(lines, terminated)| {
        let text = lines.join("\n");
        if terminated && !text.is_empty() {
            text + "\n"
        } else {
            text
        }
    })
}

const WORDS: &[&str] = &[
    "a",
    "b",
    "b",
    " b",
    "}",
    "*** End Patch",
    "@@",
    "-x",
    "+y",
    "z\tz",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_patch_made_from_a_difference_gives_the_new_text(
        old in lines(WORDS), new in lines(WORDS), radius in 0usize..4
    ) {
        prop_assume!(old != new);
        let body = TextDiff::from_lines(&old, &new).unified_diff().context_radius(radius).to_string();
        let edited = run(old.as_bytes(), body.trim_end_matches('\n'), Options::safe());
        match edited {
            Ok(edited) => prop_assert_eq!(shown(&edited.bytes), shown(new.as_bytes()), "{}", body),
            Err(error) => prop_assert!(false, "{error:?}\n{body}"),
        }
    }

    #[test]
    fn untouched_lines_keep_their_bytes(
        before in any::<Vec<u8>>(), after in any::<Vec<u8>>(), last in any::<Option<u8>>()
    ) {
        let mut file = before.clone();
        file.extend_from_slice(b"\nthe only such line\r\n");
        file.extend_from_slice(&after);
        file.extend(last);
        if let Ok(edited) = run(&file, "-the only such line\n+changed", Options::safe()) {
            let mut expected = before;
            expected.extend_from_slice(b"\nchanged\r\n");
            expected.extend_from_slice(&after);
            expected.extend(last);
            prop_assert_eq!(edited.bytes, expected);
        } else {
            prop_assert!(matches!(before.first(), Some(0xfe | 0xff | 0)));
        }
    }

    #[test]
    fn nothing_makes_an_edit_panic(file in any::<Vec<u8>>(), small in lines(WORDS), body in lines(WORDS)) {
        for file in [file.as_slice(), small.as_bytes()] {
            for on_ambiguous in [OnAmbiguous::First, OnAmbiguous::Refuse] {
                let options = Options { on_ambiguous, ..Options::codex() };
                let text = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
                let Ok(parsed) = parse(&text) else { continue };
                for operation in &parsed.patch.operations {
                    if let Body::Update { chunks, .. } = &operation.body {
                        let _ = edit(file, chunks, &options);
                    }
                }
            }
        }
    }
}
