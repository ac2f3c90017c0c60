//! A patch that arrives line by line is the patch that arrives at once.
#![no_main]

use apply_patch::parse;
use apply_patch::syntax::Parser;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &str| {
    let text = format!("*** Begin Patch\n{body}\n*** End Patch");
    let mut parser = Parser::new();
    let fed = text.split('\n').try_for_each(|line| parser.feed(line));
    let streamed = fed.and_then(|()| parser.finish());
    match (streamed, parse(&text)) {
        (Ok(streamed), Ok(parsed)) => assert_eq!(streamed, parsed.patch),
        (Err(streamed), Err(parsed)) => assert_eq!(streamed.to_string(), parsed.to_string()),
        (streamed, parsed) => panic!("streamed: {streamed:?}, at once: {parsed:?}"),
    }
});
