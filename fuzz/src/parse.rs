//! A text is a patch or an error, however it arrives.

use apply_patch::parse;
use apply_patch::syntax::ast::{Body, Operation, Patch};
use apply_patch::syntax::{ParseError, Parser};

use crate::spelling::spell;

/// Checks a text as it is, and as the body of a patch.
pub fn check(text: &str) {
    let as_it_is = parse(text);
    assert_eq!(parse(text), as_it_is, "parsing is not deterministic");
    match &as_it_is {
        Ok(parsed) if parsed.unwrapped.is_empty() => streams_alike(text.trim()),
        Ok(_) => {}
        // Messages quote the input, so they are part of what must not panic.
        Err(error) => drop((error.to_string(), error.details())),
    }
    let enveloped = format!("*** Begin Patch\n{text}\n*** End Patch");
    streams_alike(&enveloped);
    for patch in [as_it_is, parse(&enveloped)].into_iter().flatten() {
        respells(&patch.patch);
    }
}

/// A patch that arrives line by line is the patch that arrives at once.
fn streams_alike(text: &str) {
    match (streamed(text), parse(text)) {
        (Ok(streamed), Ok(parsed)) => assert_eq!(streamed, parsed.patch),
        (Err(streamed), Err(parsed)) => assert_eq!(streamed.to_string(), parsed.to_string()),
        (streamed, parsed) => panic!("streamed: {streamed:?}, at once: {parsed:?}"),
    }
}

/// Feeds line by line; an operation that was shown once stays as it is.
fn streamed(text: &str) -> Result<Patch<'_>, ParseError> {
    let mut parser = Parser::new();
    let mut shown: Vec<Operation<'_>> = Vec::new();
    for line in text.split('\n') {
        parser.feed(line)?;
        let operations = parser.operations();
        shown.extend_from_slice(&operations[shown.len()..]);
    }
    let patch = parser.finish()?;
    assert_eq!(patch.operations[..shown.len()], shown, "taken back");
    Ok(patch)
}

/// A patch that is written down again means the same.
fn respells(patch: &Patch<'_>) {
    let text = spell(patch);
    let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text:?}"));
    assert_eq!(unnumbered(&again.patch), unnumbered(patch), "{text:?}");
}

fn unnumbered<'a>(patch: &Patch<'a>) -> Patch<'a> {
    let mut patch = patch.clone();
    for operation in &mut patch.operations {
        operation.line = 0;
        if let Body::Update { move_to, chunks } = &mut operation.body {
            chunks.iter_mut().for_each(|chunk| chunk.line = 0);
            move_to.iter_mut().for_each(|to| to.line = 0);
        }
    }
    patch
}
