//! Whatever text arrives, it is a patch or an error, at once as well as line by line.
#![allow(clippy::panic, reason = "a test may end with a panic")]

use apply_patch::parse;
use apply_patch::syntax::{ParseError, Parser};
use proptest::prelude::*;

/// Lines that nearly make a patch, and some that nearly do not.
const LINES: [&str; 44] = [
    "*** Begin Patch",
    "*** End Patch",
    " *** End Patch",
    "*** End Patch \t",
    "*** Environment ID: x",
    "*** Environment ID:",
    "*** Add File: a",
    "*** Add File: ",
    "  *** Add File: b",
    "*** Delete File: a",
    "*** Delete File: d/e",
    "*** Update File: a",
    "*** Update File: b\u{a0}",
    " *** Update File: c",
    "*** Move to: b",
    "*** Move to:",
    "*** End of File",
    "*** End of File ",
    "\\ No newline at end of file",
    "\\ Kein Zeilenumbruch am Dateiende",
    "@@",
    "@@ ",
    "@@ fn f() {",
    "@@ fn f() { @@",
    "@@ -1,2 +1,3 @@ f",
    "@@ -99999999999999999999,1 +1 @@",
    "@@x",
    " context",
    "-removed",
    "+added",
    "+",
    "-",
    " ",
    "",
    "\t",
    "\u{2028}",
    "\u{feff}*** Begin Patch",
    "```diff",
    "```",
    "apply_patch <<'EOF'",
    "<<-EOF",
    "EOF",
    "--- a/f",
    "{\"patch\": \"*** Begin Patch",
];

fn line() -> impl Strategy<Value = String> {
    let word = || proptest::sample::select(&LINES[..]);
    prop_oneof![
        8 => word().prop_map(str::to_owned),
        1 => any::<String>(),
        // A known line with one character in the wrong place.
        1 => (word(), any::<char>(), any::<prop::sample::Index>()).prop_map(|(line, c, at)| {
            let mut line: Vec<char> = line.chars().collect();
            line.insert(at.index(line.len() + 1), c);
            line.into_iter().collect()
        }),
    ]
}

fn near_patch() -> impl Strategy<Value = String> {
    let end = proptest::sample::select(&["\n", "\n", "\n", "\r\n", "\r\r\n", "\r"][..]);
    let lines = proptest::collection::vec((line(), end), 0..24);
    (lines, any::<bool>()).prop_map(|(lines, enclosed)| {
        let body: String = lines
            .into_iter()
            .flat_map(|(line, end)| [line, end.to_owned()])
            .collect();
        match enclosed {
            true => format!("*** Begin Patch\n{body}\n*** End Patch"),
            false => body,
        }
    })
}

/// An error names a line of the text, and its messages can be written.
fn check_error(text: &str, error: &ParseError) -> Result<(), TestCaseError> {
    let message = error.to_string();
    prop_assert!(message.starts_with("Invalid patch"), "{message}");
    let lines = text.split('\n').count();
    prop_assert!(
        error.line().is_none_or(|line| (1..=lines).contains(&line)),
        "{error:?}"
    );
    // They quote the input, so they are part of what must not panic.
    prop_assert!(
        error.details().iter().all(|line| !line.is_empty()),
        "{error:?}"
    );
    Ok(())
}

/// Parses at once and line by line; the two must agree.
fn check(text: &str) -> Result<(), TestCaseError> {
    let parsed = parse(text);
    if let Err(error) = &parsed {
        check_error(text, error)?;
    }
    if matches!(&parsed, Ok(parsed) if !parsed.unwrapped.is_empty()) {
        // The machine itself knows no wrappers.
        return Ok(());
    }
    let mut parser = Parser::new();
    let mut shown = Vec::new();
    let fed = text.trim().split('\n').try_for_each(|line| {
        parser.feed(line)?;
        shown.extend_from_slice(&parser.operations()[shown.len()..]);
        Ok(())
    });
    match (fed.and_then(|()| parser.finish()), parsed) {
        (Ok(streamed), Ok(parsed)) => {
            prop_assert_eq!(&streamed.operations[..shown.len()], &shown, "taken back");
            prop_assert_eq!(streamed, parsed.patch);
        }
        (Err(streamed), Err(parsed)) => {
            // The envelope is looked at first, and by the whole text only.
            let enclosed = text.trim().starts_with("*** Begin Patch\n")
                && text.trim().ends_with("\n*** End Patch");
            prop_assert!(!enclosed || streamed.to_string() == parsed.to_string());
        }
        (streamed, parsed) => prop_assert!(false, "streamed: {streamed:?}, at once: {parsed:?}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_a_patch_or_an_error(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn what_is_nearly_a_patch_reads_alike_at_once_and_line_by_line(text in near_patch()) {
        check(&text)?;
    }
}
