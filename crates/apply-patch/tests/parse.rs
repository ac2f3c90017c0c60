//! The grammar, from the outside: what is accepted, what is refused and how.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use apply_patch::parse;
use apply_patch::syntax::ast::{Body, Chunk, ChunkLine, LineHint, MoveTo, NoNewline, Operation};
use apply_patch::syntax::{Hint, Parser, Wrapper};

fn wrapped(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

fn operations(text: &str) -> Vec<Operation<'_>> {
    match parse(text) {
        Ok(parsed) => parsed.patch.operations,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn chunks(body: &str) -> Vec<Chunk<'static>> {
    let text: &'static str = Box::leak(wrapped(&format!("*** Update File: f\n{body}")).into());
    match operations(text).remove(0).body {
        Body::Update { chunks, .. } => chunks,
        other => panic!("{other:?}"),
    }
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn body_error(body: &str) -> String {
    error(&wrapped(body))
}

#[test]
fn all_kinds_of_operations_are_read() {
    let text = wrapped(
        "*** Add File: a\n+one\n+\n*** Delete File: d\n*** Update File: u\n*** Move to: v\n@@ fn f\n \
         x\n-y\n+z\n*** End of File\n",
    );
    let ops = operations(&text);
    assert_eq!(
        ops[0],
        Operation {
            path: "a",
            line: 2,
            body: Body::Add {
                lines: vec!["one", ""]
            }
        }
    );
    assert_eq!(
        ops[1],
        Operation {
            path: "d",
            line: 5,
            body: Body::Delete
        }
    );
    let chunk = Chunk {
        line: 8,
        headers: vec!["fn f"],
        lines: vec![
            ChunkLine::Context("x"),
            ChunkLine::Remove("y"),
            ChunkLine::Add("z"),
        ],
        end_of_file: true,
        ..Chunk::default()
    };
    let move_to = Some(MoveTo { path: "v", line: 7 });
    let body = Body::Update {
        move_to,
        chunks: vec![chunk],
    };
    assert_eq!(
        ops[2],
        Operation {
            path: "u",
            line: 6,
            body
        }
    );
}

#[test]
fn an_empty_envelope_has_no_operations() {
    assert!(operations("*** Begin Patch\n*** End Patch").is_empty());
}

#[test]
fn line_ends_lose_two_carriage_returns_at_most() {
    let ops =
        parse("*** Begin Patch\r\n*** Add File: a\r\n+x\r\r\n+y\r\r\r\n*** End Patch").unwrap();
    assert_eq!(
        ops.patch.operations[0].body,
        Body::Add {
            lines: vec!["x", "y\r"]
        }
    );
}

#[test]
fn envelopes_are_taken_off() {
    let inner = "*** Begin Patch\n*** Add File: a\n+```\n+EOF\n*** End Patch";
    let heredoc = |command, tag| Wrapper::Heredoc { command, tag };
    let cases = [
        (inner.to_owned(), vec![]),
        (format!("\u{feff}{inner}\n"), vec![Wrapper::ByteOrderMark]),
        (
            format!("<<EOF\n{inner}\nxyzEOF"),
            vec![heredoc(None, "EOF")],
        ),
        (
            format!("<<-\"P-1\" \n\n{inner}\n\nP-1\n"),
            vec![heredoc(None, "P-1")],
        ),
        (
            format!("apply_patch <<'EOF'\n{inner}\nEOF\n"),
            vec![heredoc(Some("apply_patch"), "EOF")],
        ),
        (
            format!("```\n{inner}\n```"),
            vec![Wrapper::Fence { info: "" }],
        ),
        (
            format!("Here it is:\n\n````diff\n<<X\n{inner}\nX\n````\nDone.\n"),
            vec![Wrapper::Fence { info: "diff" }, heredoc(None, "X")],
        ),
    ];
    for (text, unwrapped) in cases {
        let parsed = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(parsed.unwrapped, unwrapped, "{text}");
        assert_eq!(parsed.patch, parse(inner).unwrap().patch);
    }
}

#[test]
fn tabs_that_the_shell_drops_are_dropped() {
    let text = "<<-E\n\t*** Begin Patch\n\t*** Add File: a\n\t+\tx\n\t*** End Patch\n\tE";
    assert_eq!(operations(text)[0].body, Body::Add { lines: vec!["\tx"] });
}

#[test]
fn what_is_no_patch_is_named() {
    const FIRST: &str = "Invalid patch: The first line of the patch must be '*** Begin Patch'";
    const LAST: &str = "Invalid patch: The last line of the patch must be '*** End Patch'";
    let whole = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
    let cases = [
        (String::new(), LAST, Hint::Empty),
        (" \n\t\n".to_owned(), LAST, Hint::Empty),
        (
            r#"{"input": "*** Begin Patch\n*** End Patch"}"#.to_owned(),
            FIRST,
            Hint::JsonWrapped,
        ),
        (
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n".to_owned(),
            FIRST,
            Hint::UnifiedDiff,
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x".to_owned(),
            LAST,
            Hint::Truncated,
        ),
        (
            format!("Here:\n{whole}"),
            FIRST,
            Hint::TextBefore { line: 2 },
        ),
        (
            format!("{whole}\n\nDone."),
            LAST,
            Hint::TextAfter { line: 6 },
        ),
        (
            format!("{whole}\n{whole}"),
            LAST,
            Hint::TextAfter { line: 5 },
        ),
        (format!("```\n{whole}\n"), FIRST, Hint::Fence),
        (format!("<<EOF\n{whole}\n"), FIRST, Hint::Heredoc),
        (
            format!("apply_patch <<EOF\n{whole}\nEOF\nrm x\n"),
            FIRST,
            Hint::Heredoc,
        ),
        (
            "*** Begin Patch\r*** End Patch".to_owned(),
            FIRST,
            Hint::TextBefore { line: 1 },
        ),
    ];
    for (text, message, hint) in &cases[..cases.len() - 1] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.to_string(), *message, "{text}");
        assert_eq!(error.hint(), Some(hint), "{text}");
    }
    let (text, message, _) = &cases[cases.len() - 1];
    assert_eq!(error(text), *message);
}

#[test]
fn headers_are_exact() {
    let refused = |line: &str| {
        format!(
            "Invalid patch hunk on line 2: '{line}' is not a valid hunk header. Valid hunk \
             headers: '*** Add File: {{path}}', '*** Delete File: {{path}}', '*** Update File: \
             {{path}}'"
        )
    };
    for line in [
        "*** Add File:n",
        "*** add file: n",
        "**** Add File: n",
        "*** Add File:",
        "junk",
    ] {
        assert_eq!(body_error(&format!("{line} \n+x\n")), refused(line));
    }
    assert_eq!(
        operations(&wrapped("  *** Add File:  n \u{a0}\n"))[0].path,
        " n"
    );
    let error = parse("*** Begin Patch\ndiff --git a/f b/f\n*** End Patch").unwrap_err();
    assert_eq!(error.hint(), Some(&Hint::UnifiedDiff));
}

#[test]
fn blank_lines_separate_and_do_not_stand_in_new_files() {
    let text =
        wrapped("\n*** Environment ID: e\n\n*** Add File: a\n+x\n\n\n*** Delete File: b\n\n");
    let parsed = parse(&text).unwrap();
    assert_eq!(parsed.patch.environment_id, Some("e"));
    assert_eq!(parsed.patch.operations.len(), 2);
    let text = wrapped("*** Add File: a\n+x\n\n \n+y\n");
    let error = parse(&text).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("Invalid patch hunk on line 4: '' is not a valid hunk")
    );
    assert_eq!(error.hint(), Some(&Hint::LonePlus));
}

#[test]
fn environment_identifiers_are_checked() {
    let message = |body| body_error(body);
    assert_eq!(
        message("*** Environment ID:  \n"),
        "Invalid patch: apply_patch environment_id cannot be empty"
    );
    assert_eq!(
        message("*** Environment ID:a\n*** Environment ID: b\n"),
        "Invalid patch: apply_patch environment_id cannot be specified more than once"
    );
    assert!(message("*** Delete File: a\n*** Environment ID: b\n").contains("hunk on line 3"));
}

#[test]
fn update_bodies_are_checked() {
    let unexpected = |number: usize, line: &str| {
        format!(
            "Invalid patch hunk on line {number}: Unexpected line found in update hunk: '{line}'. \
             Every line should start with ' ' (context line), '+' (added line), or '-' (removed \
             line)"
        )
    };
    let expected = |number: usize, line: &str| {
        format!(
            "Invalid patch hunk on line {number}: Expected update hunk to start with a @@ context \
             marker, got: '{line}'"
        )
    };
    let plain = |number: usize, text: &str| format!("Invalid patch hunk on line {number}: {text}");
    let no_lines = "Update hunk does not contain any lines";
    let empty = "Update file hunk for path 'f' is empty";
    let cases = [
        ("", plain(2, empty)),
        ("\n\n", plain(2, empty)),
        ("*** End of File\n", plain(2, empty)),
        ("*** Move to: g\n*** End of File\n", plain(2, empty)),
        ("*** Delete File: g\n", plain(2, empty)),
        ("@@\n", plain(4, no_lines)),
        ("@@\n*** End of File\n", plain(4, no_lines)),
        (
            "@@\n*** Update File: g\n",
            unexpected(4, "*** Update File: g"),
        ),
        ("@@H\n", unexpected(3, "@@H")),
        ("@@ H\n@@\n", unexpected(4, "@@")),
        ("*** Move to:g\n", unexpected(3, "*** Move to:g")),
        ("*** Move to: \n", unexpected(3, "*** Move to: ")),
        (
            "*** Move to: g\n*** Move to: h\n",
            unexpected(4, "*** Move to: h"),
        ),
        ("@@\n-x\n*** Move to: g\n", expected(5, "*** Move to: g")),
        ("@@\n x\ny\n", expected(5, "y")),
        ("@@\n x\n\t\n", expected(5, "\t")),
        ("@@\n-x\n*** End of File\n-y\n", expected(6, "-y")),
        (
            "@@\n-x\n*** End of File\n*** End of File\n",
            expected(6, "*** End of File"),
        ),
        (
            "@@\n\\ No newline at end of file\n",
            unexpected(4, "\\ No newline at end of file"),
        ),
        (
            "@@\n x\n\\ No newline at end of file\n+y\n",
            expected(6, "+y"),
        ),
    ];
    for (body, message) in cases {
        assert_eq!(
            body_error(&format!("*** Update File: f\n{body}")),
            message,
            "{body:?}"
        );
    }
}

#[test]
fn an_update_that_only_moves_is_a_rename() {
    let text = wrapped("*** Update File: f\n*** Move to: g\n\n*** Delete File: h\n");
    let move_to = Some(MoveTo { path: "g", line: 3 });
    assert_eq!(
        operations(&text)[0].body,
        Body::Update {
            move_to,
            chunks: vec![]
        }
    );
}

#[test]
fn headers_stack_and_line_numbers_are_hints() {
    let found =
        chunks("@@ A\n@@ B\n@@ -10,2 +11 @@ fn f\n-x\n@@ -3 +3 @\n-y\n@@ -0,0 +1,2 @@\n+z\n");
    assert_eq!(found[0].headers, ["A", "B"]);
    let raw = "-10,2 +11 @@ fn f";
    assert_eq!(
        found[0].hint,
        Some(LineHint {
            raw,
            old_start: 10,
            old_lines: 2
        })
    );
    assert_eq!(
        (found[1].headers.as_slice(), found[1].hint),
        (&["-3 +3 @"][..], None)
    );
    assert_eq!(found[2].hint.map(|hint| hint.old_lines), Some(0));
}

#[test]
fn separators_are_counted_or_dropped() {
    let found = chunks("\n\n@@\n-x\n\n \n\n\n@@\n-y\n+\n\n");
    assert_eq!(
        (
            found[0].line,
            found[0].lines.len(),
            found[0].blank_tail_lines
        ),
        (5, 5, 2)
    );
    assert_eq!((found[1].lines.len(), found[1].blank_tail_lines), (3, 1));
    let context = chunks("\n-x\n");
    assert_eq!(
        context[0].lines,
        [ChunkLine::Context(""), ChunkLine::Remove("x")]
    );
}

#[test]
fn missing_final_newlines_are_read_for_each_side() {
    let said = |body: &str| chunks(&format!("@@\n{body}"))[0].no_newline;
    let mark = "\\ No newline at end of file\n";
    assert_eq!(
        said(&format!("-x\n{mark}+y\n")),
        NoNewline {
            old: true,
            new: false
        }
    );
    assert_eq!(
        said(&format!("-x\n+y\n{mark}")),
        NoNewline {
            old: false,
            new: true
        }
    );
    assert_eq!(
        said(&format!("-x\n{mark}+y\n{mark}")),
        NoNewline {
            old: true,
            new: true
        }
    );
    assert_eq!(
        said(&format!("-x\n+y\n z\n{mark}")),
        NoNewline {
            old: true,
            new: true
        }
    );
}

#[test]
fn a_missing_final_newline_and_the_end_of_file_say_the_same() {
    let mark = "\\ No newline at end of file\n";
    for body in [
        format!(" x\n{mark}"),
        format!("-x\n{mark}"),
        format!("+x\n{mark}"),
    ] {
        let chunk = &chunks(&format!("@@\n{body}*** End of File\n"))[0];
        assert!(chunk.end_of_file, "{body}");
        assert_ne!(chunk.no_newline, NoNewline::default(), "{body}");
    }
}

#[test]
fn marker_texts_inside_bodies_are_content() {
    let text = wrapped("*** Add File: a\n+*** End Patch\n  *** Delete File: d\n");
    assert_eq!(operations(&text).len(), 2);
    let found = chunks("@@\n *** End Patch\n-x\n *** Add File: z\n");
    assert_eq!(found[0].lines.len(), 3);
    // Only the last line of all may be an indented end marker.
    let text = "*** Begin Patch\n*** Update File: f\n-x\n  *** End Patch\n\n\n";
    assert_eq!(operations(text).len(), 1);
}

#[test]
fn the_same_machine_reads_line_by_line() {
    let text = wrapped("*** Add File: a\n+x\n*** Delete File: b\n");
    let mut parser = Parser::new();
    let mut done = Vec::new();
    for line in text.trim_end().split('\n') {
        parser.feed(line).unwrap();
        done.push(parser.operations().len());
    }
    assert_eq!(done, [0, 0, 0, 2, 2]);
}
